/* session_end.h - the end of a session: its directory is removed.
 *
 *   1. The last node makes a view that is *closed*: without members, without absent nodes, and the newest one.  It is made as
 *      views are, so either a node that joins is first, or this.  No view is made after it.
 *   2. `settings` is removed, then all else, and last views/, in it the closed view.
 *
 * A directory with a closed view, or without `settings`, is over, for ever: whoever finds one may go on with removing it, and
 * makes another one.  That can be done by several at once, and at any time later, as all but the last rmdir goes by a
 * descriptor of this very directory, and a session's directory gets its name when it is complete (session.c): so what is
 * removed is never a newer session's.
 *
 * A node that read views/ before it was closed, and makes a view after the closed one was removed, looks for `settings`
 * afterwards: its view does not count (-ESTALE), and it opens the session anew.
 */
#ifndef EDDY_TRANSPORT_SESSION_END_H
#define EDDY_TRANSPORT_SESSION_END_H

#include "transport/view.h"

/* May the session in this open directory go?  0: no node is in it, and nothing in it is needed.  -EBUSY: nodes are in it;
 * -ENOTEMPTY: something must stay (a dirty list, an absent node, a mark of `eddy forget`); or -errno. */
int session_may_go(int session_fd);
/* A node that has not joined the open session found this newest view (NULL: none), or this error: does it say that the session is
 * over? */
bool session_is_over(const struct view *newest, int err);
/* The open session, which this node has left in order or never joined: removes what it has of this node, and all of it if no
 * other node needs it.  0: all is gone; else as session_may_go.  Start-up or the end: blocks on the PFS. */
int session_end(uint64_t self);

/* ---- for the tool: a session of which only the directory is known ---- */

/* Is the open directory a session's, or what was left of one?  complete: it has got its name (session.c).  1: it has nothing but what a
 * session has; 0: it is something else, or an empty directory; or -errno. */
int session_is_one(int session_fd, bool complete);
/* Ends the session in an open directory as its last node would have: as session_may_go, and removes it. */
int session_end_dir(int base_fd, const char *name, int session_fd);
/* Its newest view (NULL: none; the caller frees it), for how long no node has touched it by the PFS's clock, and whether there
 * are lists of unflushed files or marks.  0 or -errno. */
int session_look(int session_fd, struct view **newest, uint64_t *age_ms, bool *listed);
/* Ends it though nodes did not leave it, if that view is still the newest: they are fenced then, as by any view without them,
 * and flush nothing without a session.  -EBUSY: there is a newer view; -ENOTEMPTY: a list or a mark. */
int session_give_up(int base_fd, const char *name, int session_fd, const struct view *newest);

#endif
