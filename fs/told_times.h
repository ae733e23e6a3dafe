/* told_times.h - the times of a file that applications are told (told_times.c).
 *
 * What was told is of the file, not of one of its node ids.  Any thread.
 */
#ifndef EDDY_FS_TOLD_TIMES_H
#define EDDY_FS_TOLD_TIMES_H

#include <sys/stat.h>

#include "fs/inode.h"
#include "placement/claims/claim.h"

static inline int64_t ns_of(const struct timespec *t)
{
    return ns_of_time(t->tv_sec, t->tv_nsec);
}

/* *st is a claimant's word while the PFS has version *pfs: its ctime becomes what is told, and that is remembered. */
void told_times_word(struct inode *i, struct stat *st, const struct version *pfs);
/* *st is version *pfs, as the PFS has it, and the home said *loc (NULL: it was not asked): its mtime and ctime
 * become what is told, and that is remembered. */
void told_times_pfs(struct inode *i, struct stat *st, const struct version *pfs, const struct location *loc);
/* Is *st of the size of version *v, with the times that are told of it? */
bool told_times_are(const struct stat *st, const struct version *v, const struct told *told);
/* What was told of version *v, or its own times.  Inode locked. */
struct told told_times_before(const struct inode *i, const struct version *v);
/* *told is told of version *v from now on, unless a later version is known.  Takes the inode's lock. */
void told_times_note(struct inode *i, const struct version *v, const struct told *told);
/* Does the home say which times are told of version *v? */
bool told_times_named(const struct location *loc, const struct version *v);

#endif
