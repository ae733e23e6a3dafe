/* home.h - the home's side of claims and locks (docs/protocol.md, rules 6-9, 11, "Locks").
 *
 * There is a record per file that has a claim or locks.  A file without a record is unclaimed if the home's
 * state is complete.  Messages are answered in the network thread; this node's own requests may also be
 * answered in the thread that makes them.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_HOME_H
#define EDDY_PLACEMENT_CLAIMS_HOME_H

#include "placement/claims/look.h"
#include "transport/members.h"
#include "transport/view.h"

/* Registers the handlers of WANT, WHERE, FREE, COPY, LOCK, SAME,
 * FORGET, LEAVE.  known_ms: so long after a look at a name the nodes may open the file by what they know of it. */
void home_start(uint64_t known_ms);
void home_stop(void);
/* members' callbacks, wired by claim_views.c's claim_members_ops. */
void home_adopted(const struct view *v);
/* What ADOPTED says of this node as a home and next, of all files, but for the own claims and locks;
 * its lists are malloc'd. */
void home_fill_adopted(const struct view *v, struct body_adopted *b);
void home_heard_adopted(const struct view *v, uint64_t from, const struct msg *m);
void home_all_adopted(const struct view *v);
/* Calls fn(arg) at the next tick (100 ms).  If home_stop comes first, drop(arg) is called
 * instead (NULL: arg is owned elsewhere).  Network thread. */
void home_later(void (*fn)(void *arg), void (*drop)(void *arg), void *arg);

/* This node's own WHERE and WANT, without a message, if this node is the file's home (for WHERE: or next) in
 * that view, and can answer alone.  False: a message must be sent, which comes after those that were
 * sent before.  Any thread that holds no lock beyond RANK_HOME. */
bool home_where_here(uint64_t view, struct fid fid, enum look look, struct item_at *at);
/* True: the claim is granted, with the version that the PFS has as far as the home knows. */
bool home_want_here(uint64_t view, struct fid fid, uint64_t number, struct body_grant *out);
/* This node's own FREE; false as above. */
bool home_free_here(uint64_t view, const struct body_free *f);

/* Does no node of the session have this file's claim, so that none writes it on the PFS?  False if this
 * node is not its home, or cannot be sure.  Any thread, as above. */
struct home_moment {
    uint64_t view, count, ms;
};
bool home_unclaimed_here(struct fid fid, struct home_moment *now);
/* ... and did no node have it since then? */
bool home_unclaimed_since(struct fid fid, const struct home_moment *then);

/* For status: records, locks, files lost until a node returns; entries of lookers, their memory, and its bound. */
struct home_status {
    unsigned records, locks, lost, lookers;
    size_t lookers_bytes, lookers_bytes_max;
};
void home_status(struct home_status *out); /* any thread */

#endif
