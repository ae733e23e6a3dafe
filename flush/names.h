/* names.h - this node's dirty list in the session directory: when it is due (names.c), and written
 * (names_write.c). */
#ifndef EDDY_FLUSH_NAMES_H
#define EDDY_FLUSH_NAMES_H

#include "transport/lock.h"

extern struct names {
    struct lock lock; /* RANK_LEAF */
    bool changed, writing;
    bool held;   /* not all files of a dead daemon are known yet: its own list stays */
    bool on_pfs; /* a list is (perhaps) there */
    uint64_t changed_ms, not_before_ms;
} names;

void names_start(void); /* nothing is written until names_go */
void names_go(void);
uint64_t names_due_ms(uint64_t now); /* ms until the list must be written, 0 = now, UINT64_MAX = not */

void names_write_soon(void); /* in pool_session */
void names_write_now(void);  /* at the end; waits */

#endif
