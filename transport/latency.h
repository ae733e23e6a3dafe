/* latency.h - how long something takes: a histogram that any thread adds to, without a lock.
 *
 * Log-linear: each power of two has LATENCY_STEPS buckets of one width, so a bucket is at most a quarter wider than what it
 * begins with.  (HdrHistogram's way, by G. Tene.)  From 1 us on; the last bucket has all above 137 s.
 */
#ifndef EDDY_TRANSPORT_LATENCY_H
#define EDDY_TRANSPORT_LATENCY_H

#include <stdint.h>

#define LATENCY_STEPS   4
#define LATENCY_BUCKETS 108

struct latency {
    _Atomic uint64_t sum_ns, buckets[LATENCY_BUCKETS];
};

/* What was in it at one moment (each number by itself). */
struct latency_copy {
    uint64_t count, sum_ns, buckets[LATENCY_BUCKETS];
};

unsigned latency_bucket(uint64_t ns);
/* The first ns that is not in this bucket any more; UINT64_MAX: of the last one. */
uint64_t latency_end_ns(unsigned bucket);
void latency_add(struct latency *l, uint64_t ns);
void latency_copy(const struct latency *l, struct latency_copy *out);
/* What came to `now` since `before`. */
void latency_since(const struct latency_copy *now, const struct latency_copy *before, struct latency_copy *out);
/* So long take at most `part` (0 to 1) of them, to a bucket's width; 0: there are none. */
uint64_t latency_quantile_ns(const struct latency_copy *c, double part);

#endif
