/* mount_beneath.c - a daemon that is started again puts its mount beneath the dead one of the daemon before it, and then removes
 * that one.  So no process finds the directory without a mount meanwhile, and writes a file there that nobody sees later.
 * Linux 6.5 can do that (MOVE_MOUNT_BENEATH), with CAP_SYS_ADMIN.
 */
#include "fs/mount_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/settings.h"
#include "transport/base.h"

#ifndef MOVE_MOUNT_BENEATH
#define MOVE_MOUNT_BENEATH 0x00000200
#endif

/* A link, or another mount, that came in its place meanwhile is left alone. */
static bool is_in_mount(int fd, unsigned id)
{
    char path[40];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    return mount_id_is(path, id);
}

/* One of FUSE's own options.  Flags of the mount itself go into *attr. */
static int set_option(int fs, char *word, unsigned *attr)
{
    static const struct {
        const char *word;
        unsigned attr;
    } flags[] = {{"ro", MOUNT_ATTR_RDONLY}, {"noexec", MOUNT_ATTR_NOEXEC}, {"noatime", MOUNT_ATTR_NOATIME}, {"nodiratime", MOUNT_ATTR_NODIRATIME}};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (!strcmp(word, flags[i].word)) {
            *attr |= flags[i].attr;
            return 0;
        }
    if (!strcmp(word, "suid") || !strcmp(word, "dev")) {
        *attr &= ~(unsigned)(word[0] == 's' ? MOUNT_ATTR_NOSUID : MOUNT_ATTR_NODEV);
        return 0;
    }
    char *value = strchr(word, '=');
    if (!value)
        return fsconfig(fs, FSCONFIG_SET_FLAG, word, NULL, 0) ? -errno : 0;
    *value++ = '\0';
    return fsconfig(fs, FSCONFIG_SET_STRING, word, value, 0) ? -errno : 0;
}

static int set_number(int fs, const char *name, const char *format, unsigned n)
{
    char text[16];
    snprintf(text, sizeof(text), format, n);
    return fsconfig(fs, FSCONFIG_SET_STRING, name, text, 0) ? -errno : 0;
}

/* words: each may have several, with commas between them. */
static int set_options(int fs, int fuse_fd, char *const words[], int n, unsigned *attr)
{
    int e = fsconfig(fs, FSCONFIG_SET_STRING, "source", settings.pfs_dir, 0) ? -errno : 0;
    e = e ? e : set_number(fs, "fd", "%u", (unsigned)fuse_fd);
    e = e ? e : set_number(fs, "rootmode", "%o", S_IFDIR);
    e = e ? e : set_number(fs, "user_id", "%u", (unsigned)getuid());
    e = e ? e : set_number(fs, "group_id", "%u", (unsigned)getgid());
    for (int i = 0; i < n && !e; i++) {
        if (!strncmp(words[i], "fsname=", 7)) /* is the source, and may have commas */
            continue;
        char *copy = xstrdup(words[i]), *rest = copy, *word;
        while (!e && (word = strsep(&rest, ",")))
            e = set_option(fs, word, attr);
        free(copy);
    }
    return e;
}

/* A descriptor of the mount, which is nowhere yet. */
static int make_mount(int fuse_fd, char *const words[], int n)
{
    unsigned attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    int fs = fsopen("fuse", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -errno;
    int e = set_options(fs, fuse_fd, words, n, &attr);
    if (!e && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        e = -errno;
    int at = e ? e : fsmount(fs, FSMOUNT_CLOEXEC, attr);
    at = !e && at < 0 ? -errno : at;
    close(fs);
    return at;
}

#define HOW (MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH | MOVE_MOUNT_BENEATH)

/* Flags are looked at before descriptors.  A descriptor of /dev/fuse is good for one mount, so it is not tried with that. */
static int kernel_can(void)
{
    return move_mount(-1, "", -1, "", HOW) && errno == EBADF ? 0 : -errno;
}

int mount_beneath(const struct mounted *dead, int fuse_fd, char *const words[], int n)
{
    int can = kernel_can();
    if (can)
        return can;
    int place = open(dead->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0)
        return -errno;
    int e = is_in_mount(place, dead->id) ? 0 : -ESTALE;
    int mount = e ? e : make_mount(fuse_fd, words, n);
    if (mount < 0)
        e = mount;
    else if (move_mount(mount, "", place, "", HOW))
        e = -errno;
    if (mount >= 0)
        close(mount);
    close(place);
    return e ? e : unmount_just(dead, MNT_DETACH);
}
