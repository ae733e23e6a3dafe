/* pfs_names.h - names and attributes on the PFS.
 *
 * All access is by openat2 below a root descriptor opened before the mount (RESOLVE_BENEATH, no
 * links followed, submounts not crossed), so MOUNTPOINT = PFS_DIR works.  Every function blocks on
 * the PFS: threads that may wait only (pools; FUSE workers by request_run; never the network thread or
 * libuv's pool).  0 or -errno.
 *
 * A pfs_node is a name in the tree: parent and name, with a cached O_PATH descriptor (LRU, bounded
 * by the descriptor limit).  When the tree changed behind our back a path leads nowhere or to
 * another fid: -ESTALE, and the kernel looks up again.
 */
#ifndef EDDY_PLACEMENT_PFS_NAMES_H
#define EDDY_PLACEMENT_PFS_NAMES_H

#include "placement/pfs/pfs_fid.h"
#include <dirent.h>
#include <sys/statvfs.h>
#include <sys/types.h>

/* Opens the root.  hidden: the name in the root that is never visible (".eddyfs-UID").  limits:
 * descriptors to keep open. */
int pfs_open(const char *dir, const char *hidden, unsigned max_fds, char *err, size_t errlen);
void pfs_close(void);
int pfs_root_fd(void); /* for who opens by path below it */

/* On whose behalf: with several users (root, allow_other) the thread takes fsuid, fsgid and groups
 * for the call. NULL: the daemon itself. */
struct cred {
    uid_t uid;
    gid_t gid;
    unsigned ngroups;
    const gid_t *groups;
};

struct pfs_node;
struct pfs_node *pfs_root(void);
/* The child of parent by this name: an object, no PFS call.  Referenced. */
struct pfs_node *pfs_child(struct pfs_node *parent, const char *name);
/* The directory it is in: referenced; NULL: the root, or it has no name.  Any thread, no PFS call. */
struct pfs_node *pfs_parent(struct pfs_node *n);
/* The same after a lookup said that the name is fid: if the object by that name expects another fid
 * (the name was used again) the old object loses the name (-ESTALE from then on, as after pfs_gone)
 * and a new one is made. Use it for whatever statx has answered.  *other (may be NULL): the old one then,
 * referenced, else NULL. */
struct pfs_node *pfs_child_as(struct pfs_node *parent, const char *name, struct fid fid,
                              struct pfs_node **other);
struct pfs_node *pfs_ref(struct pfs_node *n);
/* A number that the caller keeps with it, 0 to begin with; cleared only if it is still that one.  Any
 * thread. */
uint64_t pfs_tag(const struct pfs_node *n);
void pfs_tag_set(struct pfs_node *n, uint64_t tag);
void pfs_tag_clear(struct pfs_node *n, uint64_t tag);
/* Is there a known child by this name: its tag, and in *seen_ms what pfs_child_seen said last (0: nothing);
 * 0: no.  Any thread, no PFS call. */
uint64_t pfs_child_tag(struct pfs_node *parent, const char *name, uint64_t *seen_ms);
/* A look that began at ms (boot_ms) found under this name the file that the child by that name has the tag of. */
void pfs_child_seen(struct pfs_node *parent, const char *name, uint64_t tag, uint64_t ms);
/* Nothing is there by this name, a look found: what was seen before does not count any more. */
void pfs_child_absent(struct pfs_node *parent, const char *name);
/* The kernel was told so: if it asks again before that is over it wants to know exactly, as for O_EXCL. */
void pfs_child_told(struct pfs_node *parent, const char *name);
void pfs_unref(struct pfs_node *n);
/* It has another name now (rename done). Any thread, no PFS call. */
void pfs_moved(struct pfs_node *n, struct pfs_node *parent, const char *name);
/* Relative path, malloc'd ("" for the root). Any thread, no PFS call. */
char *pfs_path(struct pfs_node *n);
/* The fid that node must have; pfs functions answer -ESTALE if it has another one.  Set after the
 * first statx. */
void pfs_expect(struct pfs_node *n, struct fid fid);
/* The name is gone (unlinked, or replaced by a rename): its descriptor is dropped from the cache
 * now (or .nfs files stay), the object loses its name: functions answer -ESTALE, and pfs_child
 * makes a new object.  pfs_moved gives it a name again. */
void pfs_gone(struct pfs_node *n);

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
/* Of flags only O_EXCL and the access mode count (truncating and appending are done above).  Made:
 * opened read-write whatever the mode is, *created.  Was there: -EEXIST with O_EXCL, else opened
 * read-write or as flags say, with the permissions of c; -ESTALE if it is no regular file (the
 * kernel looks up again). */
int pfs_create(struct pfs_node *parent, const char *name, int flags, mode_t mode,
               const struct cred *c, int *fd, struct statx *stx, bool *created);
int pfs_link(struct pfs_node *n, struct pfs_node *parent, const char *name, const struct cred *c,
             struct statx *stx);
/* *removed: what it was just before; stx_nlink 1: that was its last name (then no file data is
 * flushed any more).  *held, for pfs_unlink_done: where it is not -1 the file is there until then, so
 * that its blocks are freed only then, which may take longer than all the rest, and its inode's number
 * is no other file's. */
int pfs_unlink(struct pfs_node *parent, const char *name, const struct cred *c,
               struct statx *removed, int *held);
void pfs_unlink_done(int held);
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

struct pfs_dir;
/* renamed: if its name leads elsewhere, the directory that it was, wherever that is now; else -ESTALE. */
int pfs_opendir(struct pfs_node *n, bool renamed, struct pfs_dir **out);
/* Next entry at or after `offset` (0 = first); offsets are the PFS's cookies.  0: *e valid until
 * the next call; -ENODATA: end. The hidden name is left out. */
struct pfs_dirent {
    const char *name;
    uint64_t ino;
    unsigned char type;
    int64_t next;
};
int pfs_readdir(struct pfs_dir *d, int64_t offset, struct pfs_dirent *e);
int pfs_stat_at(struct pfs_dir *d, const char *name, struct statx *stx);
/* Those of the n extended attributes in `wanted` (a bit for each) that the file fid, by this name, does not have. */
unsigned pfs_absent_at(struct pfs_dir *d, const char *name, struct fid fid,
                       const char *const *attributes, unsigned n, unsigned wanted);
int pfs_fsyncdir(struct pfs_dir *d);
void pfs_closedir(struct pfs_dir *d);

/* How long the PFS has been silent, ms: the age of the oldest call that waits, or the time since
 * the last one ended if that is shorter (one slow fsync beside quick lookups is no silence).  0 =
 * no call waits.  Any thread. */
uint64_t pfs_waiting_ms(void);
/* Has it been silent for `ms` at `now` (boot_ms)?  Quick where something ended lately.  Any thread. */
bool pfs_silent(uint64_t now, uint64_t ms);
/* Around every PFS call, in pfs_*.c. */
uint64_t pfs_call_begin(void);
void pfs_call_end(uint64_t ticket);

#endif
