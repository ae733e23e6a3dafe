/* store_lending.h - what a file's lender keeps of what it has lent, for store_lend.c and store_lend_back.c.  f->lock must be
 * held, as for all below.
 */
#ifndef EDDY_PLACEMENT_STORE_STORE_LENDING_H
#define EDDY_PLACEMENT_STORE_STORE_LENDING_H

#include "placement/store/store_lend_int.h"

struct borrower {
    struct lend_node node; /* id 0: a free place */
    uint64_t since;        /* the epoch in which the first unit was lent to it; 0: it is not known which */
};
struct lending {
    struct unit_map map; /* the number is the borrower's place, from 1 on */
    struct borrower *who;
    unsigned n;
    unsigned stopped;
    uint64_t before_stop; /* the epoch */
    bool known;     /* what a daemon before this one has lent */
    uint64_t epoch; /* how often something was taken back, or was about to be, counted on from the number of this start */
    uint64_t looks, flush_looks; /* store_pfs_looks: now, and before the look of the flush that runs */
};

/* Makes it, if there is none.  Epochs grow over starts, so that what a dead daemon has lent is of an earlier one. */
struct lending *lending_of(struct file *f);
/* May any unit be lent, as it is not known what the daemon before has lent? */
bool lending_is_vague(const struct file *f);
/* The node's number in the map; 0: it has none. */
uint16_t lending_number_of(const struct lending *l, uint64_t node);
/* The node has the units [first, last].  -ENOSPC: too much is lent. */
int lending_note(struct lending *l, struct lend_node node, uint64_t first, uint64_t last);
/* Something has ended: is the file still shared? */
void lending_look_shared(struct file *f);

#endif
