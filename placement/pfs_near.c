/* pfs_near.c - a file that was renamed while nobody here looked: in the directory where it was. */
#include "placement/pfs_int.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The name in the directory by which this fid is known; false: none. */
static bool find_in(DIR *dir, struct fid fid, char name[NAME_BYTES], struct statx *stx)
{
    for (struct dirent *d; (d = readdir(dir));) {
        if (d->d_type != DT_REG && d->d_type != DT_UNKNOWN)
            continue;
        if (pfs_statx_at(dirfd(dir), d->d_name, stx) || !S_ISREG(stx->stx_mode) ||
            !fid_eq(fid_of(stx), fid))
            continue;
        strcpy(name, d->d_name);
        return true;
    }
    return false;
}

int pfs_find_near(struct file *f, struct statx *stx)
{
    char name[NAME_BYTES], *path = file_path(f), *found;
    char *slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = '\0';
    int fd = !path ? -ENOENT
                   : pfs_open_beneath(pfs_root_fd(), slash ? path : "", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int err = fd < 0 ? fd : !dir ? -errno : find_in(dir, f->fid, name, stx) ? 0 : -ENOENT;
    if (!err) {
        if (asprintf(&found, "%s%s%s", slash ? path : "", slash ? "/" : "", name) < 0)
            die("out of memory");
        file_set_path(f, found);
        free(found);
    }
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    free(path);
    return err;
}
