/* marks.h - files of `eddy forget`, and the lists of dirty files, in the session directory (forgotten.c, dirtylist.c);
 * session.h has the rules. */
#ifndef EDDY_TRANSPORT_MARKS_H
#define EDDY_TRANSPORT_MARKS_H

#include "transport/base.h"

/* ---- marks of `eddy forget` ---- */
/* Claims of this node on this file (zero: on all files) up to this request are void. */
struct mark {
    struct fid fid;
    uint64_t node, incarnation, number;
};
int session_write_mark(const struct mark *m); /* or replaces it */
int session_remove_mark(const struct mark *m);
/* The marks of this node (0: of all nodes); *out is malloc'd.  A file that is no mark is skipped with a
 * warning. */
int session_read_marks(uint64_t node, struct mark **out, uint32_t *n);
bool mark_covers(const struct mark *m, struct fid fid, uint64_t incarnation, uint64_t number);

/* ---- dirty lists: what `eddy check` reads when no daemon is alive ---- */
struct dirty_name {
    struct fid fid;
    char *path;
    int64_t mtime_ns,
        ctime_ns; /* the last change of its bytes, and of anything; both 0: not known */
};
/* Replaces dirty/ID with a line for each, or removes it when n is 0. */
int session_write_dirty(uint64_t id, const struct dirty_name *names, size_t n);
/* For the tool: for every session below dir: cb(session, node id, node name, path).  0 or
 * -errno. */
int session_each_dirty(const char *dir,
                       int (*cb)(void *arg, const char *session, uint64_t node,
                                 const char *node_name, struct fid fid, const char *path),
                       void *arg);
/* The same for one node's lists, with the times in them. */
int session_each_dirty_of(const char *dir, uint64_t node,
                          int (*cb)(void *arg, const struct dirty_name *name), void *arg);

/* Every directory below dir that may be a session: cb(name, descriptor). */
int session_each(const char *dir, int (*cb)(void *arg, const char *session, int fd), void *arg);
/* For the tool: the nodes of every session below dir that did not leave in order, by the session's newest
 * view.  These are the absent nodes, and all nodes if none has given a sign of life for some seconds (or for a minute, if the
 * clocks differ).  What they changed in their last second may be in no list.  May take 6 s for a session. */
int session_each_unfinished(const char *dir,
                            int (*cb)(void *arg, const char *session, uint64_t node,
                                      const char *node_name),
                            void *arg);

/* For the daemon: as session_each_dirty, one node of this session. */
int session_each_dirty_here(uint64_t node,
                            int (*cb)(void *arg, const char *session, uint64_t node,
                                      const char *node_name, struct fid fid, const char *path),
                            void *arg);

/* The PFS's clock minus this node's CLOCK_REALTIME, ns, measured when the session was opened.  It is never
 * more than the true difference: if something is older than a time on the PFS by this clock, it really is
 * older. */
int64_t session_clock_offset_ns(void);

#endif
