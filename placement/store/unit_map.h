/* unit_map.h - a small number for each unit (LOAN_UNIT bytes) of a file; 0 at first.  Pure.
 *
 * The claimant of a file keeps in such a map which node has borrowed which unit (store_lend.h), a borrower what it
 * knows of that (placement/borrow.h).  Two bytes per unit, in leaves of 4,096 units (256 MiB): a file with a few
 * bytes at each end costs two leaves.
 */
#ifndef EDDY_PLACEMENT_STORE_UNIT_MAP_H
#define EDDY_PLACEMENT_STORE_UNIT_MAP_H

#include "transport/base.h"

#define LOAN_UNIT       (UINT64_C(64) << 10) /* bytes */
#define UNIT_LEAVES_MAX 65536u               /* 512 MiB of memory, 16 TiB of file */

struct unit_leaf;
struct unit_map {
    struct unit_leaf **leaf; /* by their units */
    size_t n;
    uint64_t set; /* units that are not 0 */
};

uint16_t unit_get(const struct unit_map *m, uint64_t unit);
/* -ENOSPC: the map has as many leaves as it may have. */
int unit_set(struct unit_map *m, uint64_t unit, uint16_t number);
/* The last unit in [unit, last] up to which all have the number of the first. */
uint64_t unit_same_until(const struct unit_map *m, uint64_t unit, uint64_t last);
/* The first run of units from *first on with this number, which is not 0: [*first, *last].  False: there is none. */
bool unit_next_run(const struct unit_map *m, uint16_t number, uint64_t *first, uint64_t *last);
/* How many units have this number, which is not 0; all of them are in [first, end). */
struct unit_sum {
    uint64_t units, first, end;
};
struct unit_sum unit_sum_of(const struct unit_map *m, uint16_t number);
/* All units with this number become 0.  Returns how many. */
uint64_t unit_clear(struct unit_map *m, uint16_t number);
void unit_clear_all(struct unit_map *m); /* and frees what it holds */

#endif
