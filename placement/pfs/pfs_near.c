/* pfs_near.c - finds a file after it, or a directory above it, was renamed elsewhere.
 *
 * Nothing leads from a fid to a name.  So the file is looked for where renames mostly leave it: in the
 * directory where it was; else under the rest of its path in the directories beside one of those above it,
 * the nearest first: a/b/c/f in a/b/?/f, a/?/c/f, ?/b/c/f.
 */
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_int.h"
#include "placement/pfs/pfs_moves.h"
#include "placement/store/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKS_MAX   4096 /* into directories beside: a PFS needs time for each */
#define IN_VAIN_MAX 64   /* searches, one after the other: thousands of files were removed, not moved */

static _Atomic unsigned in_vain;

/* Malloc'd.  either may be empty. */
static char *joined(const char *dir, const char *name)
{
    char *path;
    if (asprintf(&path, "%s%s%s", dir, *dir ? "/" : "", name) < 0)
        die("out of memory");
    return path;
}

static int open_dir(const char *path, DIR **dir)
{
    int fd = pfs_open_beneath(pfs_root_fd(), path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    *dir = fdopendir(fd);
    if (*dir)
        return 0;
    int err = -errno;
    close(fd);
    return err;
}

/* ---- in its directory ---- */

/* The name of this fid in the directory; false: there is none. */
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

static int find_renamed(const char *path, struct fid fid, struct statx *stx, char **found)
{
    DIR *dir;
    char name[NAME_BYTES], *above = xstrdup(path), *slash = strrchr(above, '/');
    *(slash ? slash : above) = '\0';
    int err = open_dir(above, &dir);
    if (!err) {
        err = find_in(dir, fid, name, stx) ? 0 : -ENOENT;
        closedir(dir);
    }
    if (!err)
        *found = joined(above, name);
    free(above);
    return err;
}

/* ---- below a directory that was renamed ---- */

/* Is it an error that says that nothing is there, or nothing that this daemon may see? */
static bool is_absent(int err)
{
    return err == -ENOENT || err == -ENOTDIR || err == -ELOOP || err == -EACCES || err == -EXDEV ||
           err == -ENAMETOOLONG;
}

/* 0; -ENOENT: it does not lead to the file. */
static int leads_there(int dir, const char *path, struct fid fid, struct statx *stx)
{
    int fd = pfs_open_beneath(dir, path, O_PATH, 0);
    if (fd < 0)
        return is_absent(fd) ? -ENOENT : fd;
    int err = pfs_statx_fd(fd, stx);
    close(fd);
    if (!err && (!S_ISREG(stx->stx_mode) || !fid_eq(fid_of(stx), fid)))
        err = -ENOENT;
    return err;
}

/* Looks for the file as `rest` below one of the directories in `above`: *found is its path, malloc'd.
 * -ENOENT. */
static int find_beside(const char *above, const char *rest, struct fid fid, struct statx *stx,
                       unsigned *looks, char **found)
{
    DIR *dir;
    int err = open_dir(above, &dir);
    if (err)
        return is_absent(err) ? -ENOENT : err;
    err = -ENOENT;
    for (struct dirent *d; err == -ENOENT && *looks < LOOKS_MAX && (d = readdir(dir));) {
        bool dots = !strcmp(d->d_name, ".") || !strcmp(d->d_name, "..");
        if (dots || (d->d_type != DT_DIR && d->d_type != DT_UNKNOWN))
            continue;
        char *there = joined(d->d_name, rest);
        ++*looks;
        err = leads_there(dirfd(dir), there, fid, stx);
        if (!err)
            *found = joined(above, there);
        free(there);
    }
    closedir(dir);
    return err;
}

static int find_moved(const char *path, struct fid fid, struct statx *stx, char **found)
{
    if (atomic_load(&in_vain) >= IN_VAIN_MAX)
        return -ENOENT;
    char *above = xstrdup(path), *end = strrchr(above, '/');
    unsigned looks = 0;
    int err = -ENOENT;
    while (end && err == -ENOENT) {
        const char *rest = path + (end - above) + 1;
        *end = '\0';
        end = strrchr(above, '/');
        if (end)
            *end = '\0';
        err = find_beside(end ? above : "", rest, fid, stx, &looks, found);
    }
    free(above);
    if (!err)
        atomic_store(&in_vain, 0);
    else if (err == -ENOENT && looks)
        atomic_fetch_add(&in_vain, 1);
    return err;
}

bool pfs_name_was_removed(struct file *f)
{
    char *path = file_path(f);
    moves_read();
    struct fid fid = fid_real(f->fid);
    bool removed = moves_say_removed(path, fid) || moves_say_gone(fid);
    free(path);
    return removed;
}

bool pfs_was_removed(struct file *f)
{
    moves_read();
    return moves_say_gone(fid_real(f->fid)) == MOVES_GONE;
}

int pfs_find_near(struct file *f, struct statx *stx)
{
    char *path = file_path(f), *found = NULL;
    int err = find_renamed(path, fid_real(f->fid), stx, &found);
    if (err == -ENOENT || err == -ENOTDIR || err == -ELOOP)
        err = find_moved(path, fid_real(f->fid), stx, &found);
    if (!err)
        file_set_path(f, found);
    free(found);
    free(path);
    return err;
}
