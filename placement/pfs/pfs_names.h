/* pfs_names.h - names and attributes on the PFS; pfs.h has the rules of this room. */
#ifndef EDDY_PLACEMENT_PFS_PFS_NAMES_H
#define EDDY_PLACEMENT_PFS_PFS_NAMES_H

#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_node.h"

#include <sys/statvfs.h>
#include <sys/types.h>

/* The credentials of a call: with several users (root, allow_other) the thread takes fsuid, fsgid and groups
 * for the call.  NULL: those of the daemon itself. */
struct cred {
    uid_t uid;
    gid_t gid;
    unsigned ngroups;
    const gid_t *groups;
};

/* -ENOENT for the hidden name */
int pfs_lookup(struct pfs_node *parent, const char *name, struct statx *stx);
/* fresh: AT_STATX_FORCE_SYNC */
int pfs_stat(struct pfs_node *n, struct statx *stx);
int pfs_readlink(struct pfs_node *n, char **out); /* malloc'd */
int pfs_mkdir(struct pfs_node *parent, const char *name, mode_t mode, const struct cred *c,
              struct statx *stx);
int pfs_mknod(struct pfs_node *parent, const char *name, mode_t mode, dev_t dev,
              const struct cred *c, struct statx *stx);
int pfs_symlink(const char *target, struct pfs_node *parent, const char *name, const struct cred *c,
                struct statx *stx);
/* A file that is open after pfs_create. */
struct pfs_made {
    int fd; /* the caller's */
    struct statx stx;
    bool created; /* false: it was there */
};
/* Of flags only O_EXCL and the access mode count (the caller truncates and appends).  If the file is made, it
 * is opened read-write, whatever its mode is.  If it was there: -EEXIST with O_EXCL;
 * else it is opened read-write, or as flags say, with the permissions of c; -ESTALE if it is no regular file
 * (the kernel looks the name up again). */
int pfs_create(struct pfs_node *parent, const char *name, int flags, mode_t mode,
               const struct cred *c, struct pfs_made *made);
int pfs_link(struct pfs_node *n, struct pfs_node *parent, const char *name, const struct cred *c,
             struct statx *stx);
/* *removed: its attributes just before; stx_nlink 1: that was its last name (then no file data is flushed any
 * more).  is: the only regular file that may be removed, NULL: any; several: it may keep other names.  Any other one
 * stays: -EMLINK, and *removed is set.  *held, for pfs_unlink_done: if it is not -1, the file exists until pfs_unlink_done.  So its blocks
 * are freed only then, which may take longer than all the rest, and until then no other file gets its inode's
 * number. */
int pfs_unlink(struct pfs_node *parent, const char *name, const struct fid *is, bool several,
               const struct cred *c, struct statx *removed, int *held);
void pfs_unlink_done(int held);
/* An O_PATH descriptor, for pfs_unlink_done, of the regular file that the name leads to: with pfs_held_names it says, after the name went,
 * whether the file has another one.  *stx: its attributes.  -EINVAL: it is no regular file; -ENOENT; or another -errno. */
int pfs_hold_name(struct pfs_node *parent, const char *name, struct statx *stx);
/* How many names it has, at most INT_MAX; or -errno.  Asks the PFS. */
int pfs_held_names(int held);
int pfs_rmdir(struct pfs_node *parent, const char *name, const struct cred *c);
int pfs_rename(struct pfs_node *parent, const char *name, struct pfs_node *newparent,
               const char *newname, unsigned flags, const struct cred *c);
int pfs_chmod(struct pfs_node *n, mode_t mode, const struct cred *c);
int pfs_chown(struct pfs_node *n, uid_t uid, gid_t gid, const struct cred *c);
int pfs_utimens(struct pfs_node *n, const struct timespec ts[2], const struct cred *c);
int pfs_getxattr(struct pfs_node *n, const char *name, void *buf, size_t len, size_t *out);
int pfs_listxattr(struct pfs_node *n, char *buf, size_t len, size_t *out);
int pfs_setxattr(struct pfs_node *n, const char *name, const void *value, size_t len, int flags,
                 const struct cred *c);
int pfs_removexattr(struct pfs_node *n, const char *name, const struct cred *c);
int pfs_statfs(struct statvfs *out);
int pfs_access(struct pfs_node *n, int mask, const struct cred *c);

#endif
