/* ops.h - the operations of the mount, by file.  Each has the signature of struct fuse_lowlevel_ops.
 *
 * names.c: lookup forget forget_multi mknod mkdir symlink readlink create
 * moves_unlink.c: unlink rmdir; moves_rename.c: rename; moves_link.c: link
 * getattr.c: getattr; statfs.c: statfs; setattr.c: setattr.  No access: default_permissions, the kernel answers.
 * dir.c: opendir readdir readdirplus releasedir fsyncdir; xattr.c: getxattr setxattr listxattr removexattr
 * handle_open.c: open, and create's second half; handle.c: release; handle_sync.c: flush fsync; lock.c: getlk setlk flock
 * io.c: read write fallocate lseek copy_file_range
 */
#ifndef EDDY_FS_OPS_H
#define EDDY_FS_OPS_H

#include "fs/request.h"

/* All of them (ops.c). */
void ops_all(struct fuse_lowlevel_ops *ops);

void names_ops(struct fuse_lowlevel_ops *ops);
void unlink_ops(struct fuse_lowlevel_ops *ops);
void rename_ops(struct fuse_lowlevel_ops *ops);
void link_ops(struct fuse_lowlevel_ops *ops);
void getattr_ops(struct fuse_lowlevel_ops *ops);
void setattr_ops(struct fuse_lowlevel_ops *ops);
void statfs_ops(struct fuse_lowlevel_ops *ops);
void dir_ops(struct fuse_lowlevel_ops *ops);
void xattr_ops(struct fuse_lowlevel_ops *ops);
void handle_ops(struct fuse_lowlevel_ops *ops);
void handle_open_ops(struct fuse_lowlevel_ops *ops);
void handle_sync_ops(struct fuse_lowlevel_ops *ops);
void io_ops(struct fuse_lowlevel_ops *ops);
void lock_ops(struct fuse_lowlevel_ops *ops);

#define FUSE_IO_MAX (1u << 20) /* bytes of one read or write: max_read, max_write */

#endif
