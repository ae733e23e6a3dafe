/* session.h - the session directory on the PFS: how nodes find each other without a name service.
 *
 *   SESSION_DIR/NAME/           0700, default PFS_DIR/.eddyfs-UID/NAME
 *     secret                    32 random bytes, 0600: proves every peer
 *     settings                  text: protocol major version, chunk size, times (times.h)
 *     probes/                   three probe files and their fids as the first node saw them
 *     nodes/ID                  one per node: name, address, boot id, incarnation (text, replaced by rename)
 *     views/NNNNNN              text; written under another name, then link()ed: exclusive and complete at once
 *     forgotten/FID.NODE        marks of `eddy forget`
 *     dirty/ID                  fids and relative paths of files that are dirty on that node
 *
 * Everything here blocks on the PFS: only pool_session (or start-up, or the eddy tool) calls it,
 * except the getters.  All files are parsed as hostile: bounded size, bounded counts, plain names.
 */
#ifndef EDDY_TRANSPORT_SESSION_H
#define EDDY_TRANSPORT_SESSION_H

#include "transport/base.h"

#define SESSION_MAX_MEMBERS 16384
#define NODE_NAME_MAX       64
#define NODE_ADDR_MAX       64
#define WEIGHT_MAX          (1u << 30)

struct member {
    uint64_t id; /* of the cache directory */
    uint64_t incarnation;
    char name[NODE_NAME_MAX + 1];
    char addr[NODE_ADDR_MAX]; /* "127.0.0.1:40123" or "[::1]:40123": where the hello is answered */
    uint32_t weight;          /* size of its cache in MiB: its share of the ring */
};

struct absent {
    uint64_t id, incarnation;
    char name[NODE_NAME_MAX + 1];
};

/* A view: never changed after it was made or read; never freed. */
struct view {
    uint64_t number;
    uint32_t nmembers, nabsent;
    struct member *members; /* sorted by id */
    struct absent *absents; /* sorted by id */
};

struct session_config {
    const char *dir;  /* the directory that holds sessions (--session-dir) */
    const char *name; /* --session */
    uint32_t chunk_size;
    struct fid pfs; /* the PFS directory's; zero: not looked at */
};

/* Creates or opens the session; makes the secret and settings exclusively (link) or reads and
 * checks them. On error writes a message that says what to do into err.  -EPROTO: other protocol,
 * chunk size, times or PFS directory;
 * -EACCES/-EROFS..: the directory cannot be made (the message names --session-dir). */
int session_open(const struct session_config *c, char *err, size_t errlen);
void session_close(void);
const uint8_t *session_secret(void); /* 32 bytes */
const char *session_name(void);
int session_dirfd(void);

/* Probe files: the first node makes three files in probes/ and records their fids, given by fid_of
 * (placement's fid_of_fd; called with a descriptor opened O_PATH).  Later nodes look them up in
 * another order and compare.  -EXDEV with err set when they differ: a PFS without stable inode
 * numbers. */
typedef int (*session_fid_fn)(int fd, struct fid *out);
int session_probe(session_fid_fn fid_of, char *err, size_t errlen);

/* Writes this node's file nodes/ID.  It does not check whether another node has the same name (members.c
 * does). */
int session_write_node(const struct member *self);
/* Reads one node's file.  -ENOENT; -EPROTO: malformed.  Logs a warning for -EPROTO and any other error. */
int session_read_node(uint64_t id, struct member *out);
int session_remove_node(uint64_t id);

/* The newest view's number (0 = none), by reading the directory, never by a cached look-up. */
int session_newest(uint64_t *number);
int session_read_view(uint64_t number, struct view **out); /* -ENOENT, -EPROTO */
/* Creates views/number exclusively.  -EEXIST: another node was first. */
int session_make_view(const struct view *v);
int session_touch_view(uint64_t number);
/* *ms: milliseconds since the view's file was touched, by the PFS's clock (a file written now gives
 * "now"). */
int session_view_age_ms(uint64_t number, uint64_t *ms);

/* text <-> node file and view, for tests and the fuzzer.  -EPROTO when malformed. */
int node_parse(const char *text, size_t len, struct member *out);
char *node_print(const struct member *m, size_t *len); /* malloc'd */
int view_parse(const char *text, size_t len, struct view **out);
char *view_print(const struct view *v, size_t *len); /* malloc'd */
void view_free(struct view *v);                      /* tests only */
/* It was a member, did not leave cleanly, and has not come back. */
bool view_absent(const struct view *v, uint64_t id);

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
 * view.  These are the absent nodes, and all nodes if none has given a sign of life for a minute.  What they
 * changed in their last second may be in no list. */
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
