/* mountinfo.c - /proc/self/mountinfo, read by libmount. */
#include "fs/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/unmount_helper.h"
#include "transport/base.h"

/* The user that mounted it, as a FUSE mount's options say: user_id=1000. */
static uid_t user_of(struct libmnt_fs *fs)
{
    const char *options = mnt_fs_get_fs_options(fs);
    char *value = NULL;
    size_t len = 0;
    if (!options || mnt_optstr_get_option(options, "user_id", &value, &len) || !value)
        return 0;
    return (uid_t)strtoul(value, NULL, 10); /* ends at the next option's comma */
}

/* The strings are libmount's. */
static struct mounted mounted_of(struct libmnt_fs *fs)
{
    dev_t dev = mnt_fs_get_devno(fs);
    return (struct mounted){.id = (unsigned)mnt_fs_get_id(fs),
                            .major = major(dev),
                            .minor = minor(dev),
                            .path = (char *)mnt_fs_get_target(fs),
                            .type = (char *)mnt_fs_get_fstype(fs),
                            .user = user_of(fs)};
}

int mounted_each(int (*cb)(void *arg, const struct mounted *m), void *arg)
{
    struct libmnt_table *table = mnt_new_table();
    struct libmnt_iter *at = mnt_new_iter(MNT_ITER_FORWARD);
    if (!table || !at)
        die("out of memory for the list of mounts");
    int result = mnt_table_parse_file(table, "/proc/self/mountinfo");
    struct libmnt_fs *fs;
    while (!result && !mnt_table_next_fs(table, at, &fs)) {
        struct mounted m = mounted_of(fs);
        if (m.path && m.type)
            result = cb(arg, &m);
    }
    mnt_free_iter(at);
    mnt_unref_table(table);
    return result;
}

struct find {
    const char *path;
    struct mounted *out;
    bool found;
};

/* The last one with this path lies on top. */
static int find_cb(void *arg, const struct mounted *m)
{
    struct find *f = arg;
    if (strcmp(m->path, f->path) != 0)
        return 0;
    if (f->found)
        mounted_free(f->out);
    *f->out = *m;
    f->out->path = xstrdup(m->path);
    f->out->type = xstrdup(m->type);
    f->found = true;
    return 0;
}

int mounted_find(const char *path, struct mounted *out)
{
    struct find f = {.path = path, .out = out};
    int err = mounted_each(find_cb, &f);
    return err ? err : f.found ? 0 : -ENOENT;
}

bool mounted_eddyfs(const char *path, struct mounted *out)
{
    struct mounted m;
    if (mounted_find(path, &m))
        return false;
    bool is = !strcmp(m.type, EDDYFS_TYPE);
    if (is && out)
        *out = m;
    else
        mounted_free(&m);
    return is;
}

void mounted_free(struct mounted *m)
{
    free(m->path);
    free(m->type);
    *m = (struct mounted){0};
}

bool mount_id_is(const char *fdinfo, unsigned id)
{
    char line[128];
    unsigned found = 0;
    FILE *f = fopen(fdinfo, "re");
    if (!f)
        return false;
    while (!found && fgets(line, sizeof(line), f))
        sscanf(line, "mnt_id: %u", &found);
    fclose(f);
    return found == id;
}

/* ---- unmounting ---- */

/* The kernel opens it without asking the daemon. */
static bool leads_to(int dir, const char *name, unsigned id)
{
    char fdinfo[64];
    int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    snprintf(fdinfo, sizeof(fdinfo), "/proc/self/fdinfo/%d", fd);
    bool is = mount_id_is(fdinfo, id);
    close(fd); /* it would keep the mount busy */
    return is;
}

/* From here on only the last name of the path counts.  The mount keeps that name in its directory until it is
 * unmounted, and a link of that name is not followed. */
static int unmount_in(int dir, const char *name, unsigned id, int flags)
{
    char *path;
    if (!leads_to(dir, name, id))
        return -ESTALE;
    if (asprintf(&path, "/proc/self/fd/%d/%s", dir, name) < 0)
        die("out of memory for a path");
    int err = umount2(path, UMOUNT_NOFOLLOW | flags) ? -errno : 0;
    free(path);
    return err;
}

int unmount_just(const struct mounted *m, int flags)
{
    char *dir_path = xstrdup(m->path), *name = strrchr(dir_path, '/');
    *name++ = '\0';
    int dir = open(*dir_path ? dir_path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int err = dir < 0 ? -ESTALE : unmount_in(dir, name, m->id, flags);
    if (dir >= 0)
        close(dir);
    free(dir_path);
    return err;
}

int unmount_lazily(const char *mountpoint)
{
    struct mounted m;
    if (!mounted_eddyfs(mountpoint, &m))
        return 0;
    bool root = !geteuid();
    int err = root || m.user == geteuid() ? unmount_just(&m, MNT_DETACH) : -EPERM;
    mounted_free(&m);
    char said[256];
    return err && !root ? unmount_by_helper(mountpoint, true, said, sizeof(said)) : err;
}
