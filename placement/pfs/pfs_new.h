/* pfs_new.h - a new file on the PFS that replaces no other one: the result of a conflict, or of a rescue to
 * another directory.
 *
 * Blocking, one thread.  0 or -errno.  The file is first written under a temporary name, so that a crash
 * leaves nothing that looks complete.
 */
#ifndef EDDY_PLACEMENT_PFS_PFS_NEW_H
#define EDDY_PLACEMENT_PFS_PFS_NEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "transport/fid.h"

struct pfs_new {
    int dirfd, fd;
    char *dir; /* relative path of its directory, "" for the root */
    char name[256], part[256];
};

/* Begins the file that will be `path` below rootfd (O_PATH or more; no link is followed, nothing outside is
 * reached).  make_dirs: missing directories are made.  The node's name and fid: for the temporary name, so that two files with one
 * path, or with names that are cut, do not meet. */
int pfs_new_begin(struct pfs_new *n, int rootfd, const char *path, const char *node, struct fid fid,
                  bool make_dirs);
int pfs_new_write(struct pfs_new *n, const void *buf, size_t len, uint64_t off);
struct pfs_new_attr {
    uint64_t size;
    int64_t mtime_ns;
    const struct statx *like; /* owner and mode; NULL: the daemon's, 0600 */
};
/* Gives it its attributes, syncs it, and names it.  The name is path itself if that is free and `always` does
 * not require the suffix; else path + suffix, or the first of path + suffix + ".2", ".3" ... that is free.
 * *made: the relative path, malloc'd.  Ends n in any case; after an error nothing is left. */
int pfs_new_end(struct pfs_new *n, const struct pfs_new_attr *attr, const char *suffix, bool always,
                char **made);
void pfs_new_abort(struct pfs_new *n);

#endif
