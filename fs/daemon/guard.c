/* guard.c - is the PFS directory the one that is meant, and the cache where it should be?
 *
 * The mount point of a PFS that is not mounted is an ordinary empty directory.  A daemon that took it for the PFS would be a
 * session of its own, and what the job writes would go to the node's system disk.  So it is refused
 *
 *   - where --require-mount names a mount point, and nothing is mounted there;
 *   - where /etc/fstab says that something is mounted there at the boot, and nothing is;
 *   - where the session was begun with another directory (transport/session.c);
 *   - where the cache directory has bytes that are to be written back, and the PFS directory is not the one that it was used
 *     with.
 */
#include "fs/daemon/guard.h"

#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fs/daemon/control.h"
#include "fs/daemon/options.h"
#include "fs/daemon/paths.h"
#include "fs/mountinfo.h"
#include "fs/settings.h"
#include "placement/store/store_open.h"

#define FSTAB "/etc/fstab"

#define refuse(...) say_refused("\n", __VA_ARGS__)

static bool is_mount_point(const char *path)
{
    struct mounted m;
    if (mounted_find(path, &m))
        return false;
    mounted_free(&m);
    return true;
}

static bool is_in(const char *path, const char *dir)
{
    return !strcmp(path, dir) || path_is_below(path, dir);
}

/* ---- --require-mount ---- */

static int check_required(void)
{
    const char *given = settings.require_mount, *pfs = settings.pfs_dir;
    if (!given)
        return 0;
    char *dir = realpath(given, NULL);
    if (!dir)
        return refuse("--require-mount %s: %s", given, strerror(errno));
    int err = 0;
    if (!is_in(pfs, dir))
        err = refuse("--require-mount %s: the PFS directory %s is not in it", given, pfs);
    else if (!is_mount_point(dir))
        err = refuse("nothing is mounted at %s, as --require-mount asks: mount the PFS on this node first", dir);
    free(dir);
    return err;
}

/* ---- /etc/fstab ---- */

/* Is this entry a mount point that the PFS directory is at or below, and is nothing mounted there? */
static bool is_missing(const struct mntent *e)
{
    if (e->mnt_dir[0] != '/' || !e->mnt_dir[1])
        return false;
    char *dir = realpath(e->mnt_dir, NULL);
    bool missing = dir && is_in(settings.pfs_dir, dir) && !is_mount_point(dir);
    free(dir);
    return missing;
}

/* One that is not mounted at the boot may be meant to be unused: that is only said. */
static int check_fstab(void)
{
    struct mntent e;
    char words[4096];
    int err = 0;
    FILE *f = settings.require_mount ? NULL : setmntent(FSTAB, "re");
    while (f && !err && getmntent_r(f, &e, words, sizeof(words))) {
        if (!is_missing(&e))
            continue;
        if (hasmntopt(&e, "noauto"))
            log_warn("PFS directory %s: nothing is mounted at %s, which " FSTAB " has for %s", settings.pfs_dir, e.mnt_dir,
                     e.mnt_fsname);
        else
            err = refuse("PFS directory %s: nothing is mounted at %s, where " FSTAB " says that %s is: mount it first, or "
                         "give --require-mount / if the directory is meant as it is",
                         settings.pfs_dir, e.mnt_dir, e.mnt_fsname);
    }
    if (f)
        endmntent(f);
    return err;
}

/* ---- the cache directory ---- */

/* File systems that several machines share, by the number that statfs gives; those that linux/magic.h does not have, too. */
static const char *network_name(const char *path)
{
    static const struct {
        uint32_t magic;
        const char *name;
    } known[] = {
        {0x00006969, "NFS"},  {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},  {0x19830326, "BeeGFS"}, {0x00C36400, "CephFS"},
        {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB"},    {0xAAD7AAEA, "PanFS"}, {0x5346414F, "AFS"},
    };
    struct statfs fs;
    if (statfs(path, &fs))
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if ((uint32_t)fs.f_type == known[i].magic)
            return known[i].name;
    return NULL;
}

static void warn_of_size(const char *on)
{
    struct statfs fs;
    char given[32], has[32];
    if (!settings.cache_size || statfs(on, &fs))
        return;
    uint64_t bytes = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
    if (settings.cache_size > bytes)
        log_warn("--cache-size %s is more than the file system of %s has (%s): the cache gets what is free there",
                 size_format(settings.cache_size, given, sizeof(given)), settings.cache_dir,
                 size_format(bytes, has, sizeof(has)));
}

static int check_cache(void)
{
    const char *p = settings.pfs_dir;
    char *real = path_resolve_existing(settings.cache_dir);
    int err = 0;
    if (real && is_in(real, p))
        err = refuse("the cache directory %s is in the PFS directory %s: name one on a disk of this node with --cache-dir",
                     settings.cache_dir, p);
    const char *network = real && !err ? network_name(real) : NULL;
    if (network)
        log_warn("the cache directory %s is on %s: name one on a disk of this node with --cache-dir", settings.cache_dir,
                 network);
    if (real && !err)
        warn_of_size(real);
    free(real);
    return err;
}

/* ---- --immutable ---- */

static void warn_of_immutable(void)
{
    for (unsigned n = 0; n < settings.nimmutable; n++) {
        char *path;
        if (asprintf(&path, "%s/%s", settings.pfs_dir, settings.immutable[n]) < 0)
            die("out of memory");
        if (access(path, F_OK) && (errno == ENOENT || errno == ENOTDIR))
            log_warn("--immutable %s: there is no such file or directory on the PFS now", settings.immutable[n]);
        free(path);
    }
}

int guard_directories(void)
{
    int err = check_required();
    if (!err)
        err = check_fstab();
    if (!err)
        err = check_cache();
    if (!err)
        warn_of_immutable();
    return err;
}

/* ---- whose bytes the cache has ---- */

static int count_file(void *arg, struct file *f)
{
    (void)f;
    ++*(unsigned *)arg;
    return 0;
}

int guard_cache_of(struct fid pfs, char *err, size_t errlen)
{
    struct mount_entry was;
    struct fid then;
    unsigned files = 0;
    int e = mount_entry_read(store_dirfd(), &was);
    if (e && e != -ENOENT)
        log_warn("%s/mount: %s: it is not known with which PFS directory this cache was used", store_dir(), strerror(-e));
    if (e)
        return 0;
    bool other = was.pfs_fid && !fid_parse(was.pfs_fid, &then) && !fid_eq(then, pfs);
    if (other)
        store_each_claimed(count_file, &files);
    if (files && !strcmp(was.pfs_dir, settings.pfs_dir))
        snprintf(err, errlen,
                 "cache directory %s has %u files that are not on the PFS yet, and %s is another directory than it was then: is "
                 "the PFS mounted there?  If it was made anew, `eddy recover --to DIR %s` copies the files",
                 store_dir(), files, settings.pfs_dir, store_dir());
    else if (files)
        snprintf(err, errlen,
                 "cache directory %s has %u files that are not on the PFS yet, of %s, not of %s: `eddy recover %s` writes them "
                 "there, or name another one with --cache-dir",
                 store_dir(), files, was.pfs_dir, settings.pfs_dir, store_dir());
    mount_entry_free(&was);
    return files ? -EXDEV : 0;
}
