/* pfs_write.h - writing a file back to the PFS (pfs_write.c, pfs_mode.c); for flush/copyout.c. */
#ifndef EDDY_PLACEMENT_PFS_PFS_WRITE_H
#define EDDY_PLACEMENT_PFS_PFS_WRITE_H

#include "placement/store/file.h"

#include <sys/stat.h>

/* Gets a writable descriptor; *stx: what the PFS has before.  A file without owner-write permission gets
 * u+w meanwhile, and its mode is restored later (the mode is persisted in the record first, so that
 * recovery restores it, too). -ENOENT/-ESTALE: it is not at its path any more. */
int pfs_write_begin(struct file *f, struct statx *stx);
uint64_t pfs_write_unit(struct file *f); /* bytes: the best writes are multiples, at multiples */
int pfs_write(struct file *f, const void *buf, size_t len, uint64_t off); /* full or error */
/* makes zeros; writes them where it cannot punch */
int pfs_punch(struct file *f, uint64_t off, uint64_t len);
int pfs_truncate(struct file *f, uint64_t size);
/* At least `size` > 0 bytes, and changes none that others write meanwhile, here or behind it.  -EOPNOTSUPP: the PFS cannot do
 * that. */
int pfs_make_longer(struct file *f, uint64_t size);
int pfs_sync(struct file *f);
/* Sets mtime and restores the mode; *stx: what the PFS has then.  A refused utimens is no error. */
int pfs_write_end(struct file *f, int64_t mtime_ns, struct statx *stx);
/* If pfs_write_begin failed half-way, or a flush ends without a version: as pfs_write_end,
 * without times. */
void pfs_write_abort(struct file *f);
/* At recovery: restores the mode of a file that a dead daemon had raised (store_raised_mode). */
int pfs_restore_mode(struct file *f);

#endif
