/* pfs_int.h - what only the pfs_*.c files share.
 *
 * pfs_call.c   tickets, credentials, opening below the root
 * pfs_tree.c   names in the tree; pfs_fds.c their cached O_PATH descriptors
 * pfs_reach.c   running an operation on a name's descriptor
 * pfs_names.c, pfs_attr.c, pfs_dir.c   the operations, made of those above
 * pfs_mode.c   a file's mode while its data is written back
 * pfs_open.c   opening files; pfs_keep.c their descriptors
 * pfs_read.c   reading; pfs_readers.c reading if only fid and path are known
 * pfs_write.c  writing back; pfs_layout.c the unit of writes; pfs_size.c how large a file can be
 * pfs_kind.c   the kind of file system
 * pfs_moves.c   where a path leads after the session's moves
 * pfs_near.c   finding a file that was renamed behind our back; pfs_new.c   new files that replace none
 */
#ifndef EDDY_PLACEMENT_PFS_PFS_INT_H
#define EDDY_PLACEMENT_PFS_PFS_INT_H

#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_names.h"

#include <fcntl.h>

#define NAME_BYTES 256 /* a file name with its end */
#define PROC_FD    32  /* "/proc/self/fd/N" */

/* ---- pfs_call.c ---- */
/* openat2 below dirfd: no links, no "..", no other mount.  path may be longer than PATH_MAX; "" is
 * dirfd itself (O_PATH).  A descriptor or -errno. */
int pfs_open_beneath(int dirfd, const char *path, int flags, mode_t mode);
int pfs_statx_fd(int fd, struct statx *stx);
int pfs_statx_at(int dirfd, const char *name, struct statx *stx); /* one name, not followed */
/* Is a path from a record or a peer valid: relative, without ".", ".." and empty names, and not
 * the hidden one? */
bool pfs_path_ok(const char *path);
/* Opens what an O_PATH descriptor refers to: as open, with only the file's own permissions. */
int pfs_reopen(int fd, int flags);
/* For an O_PATH descriptor; only the type in stx_mode.  The look-up of the name has returned it, so
 * the PFS need not be asked again. */
int pfs_type_fd(int fd, struct statx *stx);
char *pfs_proc_fd(int fd, char buf[PROC_FD]);
void pfs_cred_start(void);
int pfs_cred_take(const struct cred *c); /* c NULL: nothing.  -errno: nothing has changed */
void pfs_cred_back(const struct cred *c);

/* ---- pfs_tree.c ---- */
extern char *pfs_hidden;
/* Is there a descriptor of this node? */
bool pfs_has_fd(struct pfs_node *n);
/* Does its descriptor lead to a directory that still exists?  Another node may have given that another name.
 * A process that has it as its working directory goes on, and its path here would lead nowhere.  May block.
 * */
bool pfs_is_there(struct pfs_node *n);
bool pfs_fid_known(struct pfs_node *n, struct fid *out);
/* Parent (referenced) and name; NULL for the root and for a node without a name. */
struct pfs_node *pfs_parent_of(struct pfs_node *n, char name[NAME_BYTES]);
/* 0, or why this name cannot be used below parent: -ENAMETOOLONG, -EINVAL, or `hidden` for the hidden
 * one. */
int pfs_name_check(struct pfs_node *parent, const char *name, int hidden);

/* ---- pfs_reach.c ---- */
struct pfs_reach {
    struct pfs_node *n; /* NULL: the descriptor is the holder's */
    int fd;             /* O_PATH */
};
/* The node's descriptor, fid checked; valid until pfs_leave. */
int pfs_reach(struct pfs_node *n, struct pfs_reach *h);
/* For a caller that opens a regular file, and then checks that it is the one that was meant: the PFS is not
 * asked for its attributes here.  -ESTALE: it is no regular file. */
int pfs_reach_file(struct pfs_node *n, struct pfs_reach *h);
void pfs_leave(struct pfs_reach *h);

/* An operation's arguments and answers; each uses the few that it needs. */
struct pfs_op {
    const char *name, *name2;
    int fd2;
    int flags;
    mode_t mode;
    dev_t dev;
    uid_t uid;
    gid_t gid;
    const struct timespec *ts;
    struct statx *stx;
    struct fid fid;
    bool check_fid;
    void *buf;
    const void *value;
    size_t len, out;
    int fd_out;
    bool created;
    const struct fid *is;
    bool several;
};
typedef int (*pfs_op_fn)(int fd, struct pfs_op *op);
/* Runs fn on a descriptor as c. */
int pfs_run_on(int fd, const struct cred *c, pfs_op_fn fn, struct pfs_op *op);
/* Runs fn on the node's O_PATH descriptor as c; after ESTALE once more, with descriptors opened again
 * by path. */
int pfs_run(struct pfs_node *n, const struct cred *c, pfs_op_fn fn, struct pfs_op *op);

#endif
