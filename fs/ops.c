/* ops.c - the table of operations, filled by the file that each of them is in. */
#include "fs/ops.h"

#include <string.h>

void ops_all(struct fuse_lowlevel_ops *ops)
{
    memset(ops, 0, sizeof(*ops));
    names_ops(ops);
    unlink_ops(ops);
    rename_ops(ops);
    link_ops(ops);
    getattr_ops(ops);
    setattr_ops(ops);
    statfs_ops(ops);
    dir_ops(ops);
    xattr_ops(ops);
    handle_open_ops(ops);
    handle_ops(ops);
    handle_sync_ops(ops);
    io_ops(ops);
    lock_ops(ops);
}
