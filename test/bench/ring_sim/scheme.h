/* scheme.h - the ways to place chunks that ring_sim compares.  One thread. */
#ifndef EDDY_TEST_BENCH_RING_SIM_SCHEME_H
#define EDDY_TEST_BENCH_RING_SIM_SCHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/view.h"

struct scheme {
    const char *name;
    bool has_points; /* on a ring; their number per node (of mean weight) can be chosen */
    bool is_slow;    /* seconds to make: only where it is asked for by name */
    void *(*make)(const struct view *v, unsigned points);
    void (*drop)(void *t);
    uint64_t (*owner)(const void *t, uint64_t place); /* id of the node; place: ring_place */
    void (*shares)(const void *t, double *shares);    /* of the hash space, by member; together 1 */
    size_t (*bytes)(const void *t);
};

extern const struct scheme schemes[];
extern const unsigned nschemes;
const struct scheme *scheme_named(const char *name, size_t len); /* NULL: there is none */

#endif
