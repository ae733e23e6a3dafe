/* home.h - the home's side of claims and locks (docs/protocol.md, rules 6-9, 11, 5a).
 *
 * All state belongs to the network thread: there is no lock.  A record per file that has a claim or
 * locks; a file without a record is unclaimed if the home's state is complete.
 */
#ifndef EDDY_PLACEMENT_HOME_H
#define EDDY_PLACEMENT_HOME_H

#include "transport/members.h"

/* Registers the handlers of WANT, WHERE, FREE, COPY, LOCK, SAME. */
void home_start(void);
void home_stop(void);
/* members' callbacks, wired by claim_views.c's claim_members_ops. */
void home_adopted(const struct view *v);
void home_fill_adopted(const struct view *v, uint64_t to, struct msg *m);
void home_heard_adopted(const struct view *v, uint64_t from, const struct msg *m);
void home_all_adopted(const struct view *v);
/* Tries fn(arg) again at the next tick (100 ms); if home_stop comes first, drop(arg) is called
 * instead (NULL: arg is owned elsewhere).  Network thread. */
void home_later(void (*fn)(void *arg), void (*drop)(void *arg), void *arg);

/* For status: records, locks, files lost until a node returns. */
struct home_status {
    unsigned records, locks, lost;
};
void home_status(struct home_status *out); /* any thread */

#endif
