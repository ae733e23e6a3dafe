/* request.h - a FUSE request that may wait: answered exactly once, interruptible, served from
 * memory when the PFS hangs.
 *
 * A FUSE worker makes it with request_start, which runs fn, in a pool or at once.  fn ends with one
 * of the request_* endings.  Meanwhile a watcher (one thread, asleep while nothing waits) may
 * answer first:
 *  - FUSE_INTERRUPT: the kernel sends it for any signal, also for handled ones like SIGALRM.  The watcher
 *    answers EINTR within 1 s if the waiting thread has a pending SIGKILL (a fatal signal:
 *    /proc/TID/status), SIGINT, SIGTERM, SIGQUIT or SIGHUP; for a request that changes something, only if the
 *    process dies of it, as it is made all the same.  Else the wait goes on, and the watcher looks again ten times a second.
 *  - `stalled`: when the PFS has been silent for 2 s (pfs_waiting_ms), the request's own fallback, if it
 *    has one, answers with what was last known.
 * Then fn's own reply is dropped, and its undo, if given, is called (for a lookup count that the
 * kernel never got, for example).
 */
#ifndef EDDY_FS_REQUEST_H
#define EDDY_FS_REQUEST_H

#define FUSE_USE_VERSION 317
#include <fuse_lowlevel.h>

#include "fs/inode.h"
#include "fs/operation.h"
#include "fs/page_cache.h"
#include "placement/pfs/pfs_names.h"
#include "transport/loop.h"

#define REQUEST_NAME_MAX 256

/* How many of the threads that read /dev/fuse may be busy with requests that may wait for the PFS.  There are
 * more threads, so that requests that do not need the PFS are served while it hangs. */
#define REQUEST_READERS_BUSY 6

struct request {
    fuse_req_t req;
    struct inode *inode;  /* referenced; may be NULL */
    struct inode *inode2; /* rename, link */
    char *name2;          /* rename: REQUEST_NAME_MAX bytes, owned */
    uid_t uid;
    gid_t gid;
    pid_t pid;
    mode_t umask;
    struct cred cred; /* groups filled only with several users; owned */
    struct fuse_file_info fi;
    /* arguments, by operation */
    uint64_t off, off2;
    size_t size;
    int flags;
    mode_t mode;
    dev_t rdev;
    struct stat attr;
    char *text; /* symlink target, xattr value ...: owned, freed with the request */
    void *extra;
    struct page_use pages; /* READ, WRITE: those of the kernel that it may hold (fs/io.c) */
    struct handle *handle, *handle2;   /* referenced: handle_use */
    void (*let_go)(struct request *r); /* handle_use's: with the last reference */
    uint64_t began_ms;                 /* boot_ms */
    struct operation operation;
    /* private to request.c */
    void (*fn)(struct request *r);
    bool (*stalled)(struct request *r);
    struct request *next, **prev;
    _Atomic int answered;
    _Atomic bool interrupted;
    _Atomic unsigned refs;
    uint64_t number;                   /* for libfuse's interrupt callback */
    uint64_t interrupted_ms;           /* boot_ms */
    void (*cancel)(struct request *r); /* request_wait */
    _Atomic bool is_lock;
    _Atomic bool may_not_end;
    uint64_t lock_id; /* lock.c */
    gid_t *groups;
    char name[REQUEST_NAME_MAX]; /* last: all before it is zeroed in a new one */
};

void request_system_start(void);
void request_system_stop(void); /* waits until none is left */
/* The mount is gone: nothing will interrupt requests that wait outside a pool any more.  Cancels them. */
void request_cancel_waits(void);

/* New, with the caller's ids from the kernel; nodeid 0 = none.  NULL: the node id is unknown and
 * ESTALE was answered. */
struct request *request_new(fuse_req_t req, fuse_ino_t nodeid);
/* The same of an inode, or NULL, whose reference is taken over. */
struct request *request_on(fuse_req_t req, struct inode *i);
/* This thread reads /dev/fuse. */
void request_reader(void);
/* Runs fn(arg): in this thread if it reads /dev/fuse and enough others are free to go on reading (handing
 * over to another thread costs as much as a small request itself); else in pool p. */
void request_run(struct pool *p, void (*fn)(void *arg), void *arg);
/* Runs fn(r) in the same way if p is pool_names; else in pool p. */
void request_start(struct request *r, struct pool *p, void (*fn)(struct request *r));
/* In place of an ending of fn: r goes on in pool p with this fn. */
void request_move(struct request *r, struct pool *p, void (*fn)(struct request *r));
/* before request_start; returns true if it answered */
void request_on_stall(struct request *r, bool (*stalled)(struct request *r));
/* For waits outside a pool (locks): registered, `cancel` is called at an interrupt in place of
 * EINTR. */
void request_wait(struct request *r, void (*cancel)(struct request *r));

/* From now on an interrupt ends the request only if its task dies: what has been done cannot be undone,
 * and ends with the task. */
void request_may_not_end(struct request *r);

/* Takes the right to answer.  False: the request was answered already; then undo what the answer would have
 * given away.  After true, answer with fuse_reply_* on r->req, then call request_done. */
bool request_take(struct request *r);
void request_done(struct request *r); /* drops fn's reference; the last one frees r */
/* The usual endings: take, answer, done. err is 0 or -errno. */
void request_err(struct request *r, int err);
void request_buf(struct request *r, const void *buf, size_t len);
void request_write(struct request *r, size_t n);

unsigned requests_waiting(void);
/* The caller's credentials for PFS calls: NULL when the mount serves one user. */
const struct cred *request_cred(struct request *r);
/* Is the caller in that group?  May read /proc.  Before the answer. */
bool request_in_group(const struct request *r, gid_t gid);
/* What a write or truncation by the caller takes from a file of this mode and group, as the kernel does
 * (FUSE_HANDLE_KILLPRIV_V2; libfuse does not pass on the kernel's flag): setuid; setgid, unless it means
 * mandatory locking, for want of a right for the group to execute, and the caller is in the group.  Root's
 * takes nothing. */
mode_t request_drops(const struct request *r, mode_t mode, gid_t gid);

#endif
