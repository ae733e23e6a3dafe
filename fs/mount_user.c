/* mount_user.c - a mount that root makes for a user (in a prolog, for example).  It works also on a PFS that
 * gives root no rights.
 *
 * Root opens /dev/fuse and becomes the user.  All that follows is done as the user, except for two things for
 * which the kernel requires CAP_SYS_ADMIN: passthrough, and mount(2), which no fusermount3 checks for us.
 * So the mount point is opened once, as the user, and mounted on by that descriptor:
 * a link that is put in its place meanwhile has no effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/mount.h"
#include "fs/request_pages.h"
#include "fs/settings.h"
#include "fs/user.h"

#define STARTS 16 /* of daemons, by one supervisor */

static int fuse_fd = -1;
static int spare_fds[STARTS]; /* for the daemons to come; nspare of them */
static unsigned nspare;

static int open_fuse(void)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void mount_user_take(void)
{
    if (!settings.as_user)
        return;
    fuse_fd = nspare ? spare_fds[--nspare] : open_fuse();
    while (nspare)
        close(spare_fds[--nspare]);
}

void mount_user_drop(void)
{
    if (nspare)
        close(spare_fds[--nspare]);
}

/* As many as there may be daemons, because perhaps only root can open it. */
static int open_spares(void)
{
    while (nspare < STARTS) {
        int fd = open_fuse();
        if (fd < 0)
            return fd;
        spare_fds[nspare++] = fd;
    }
    return 0;
}

int mount_user_begin(void)
{
    request_pages_raise();
    int e = settings.supervise ? open_spares() : (fuse_fd = open_fuse());
    if (e < 0) {
        fprintf(stderr, "eddyfs: /dev/fuse: %s: is the kernel's FUSE there (modprobe fuse)?\n",
                strerror(-e));
        return e;
    }
    int err = become_user(settings.user, true);
    if (err)
        fprintf(stderr, "eddyfs: --user: cannot become uid %u: %s\n", (unsigned)settings.user,
                strerror(-err));
    return err;
}

/* Checks as fusermount3 does: the user must be able to write to the directory.  If many users can write
 * to it (sticky), the user must own it. */
static int open_mountpoint(char *err, size_t errlen)
{
    struct stat st;
    char path[32];
    int fd = open(settings.mountpoint, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), e = 0;
    if (fd < 0 || fstat(fd, &st)) {
        e = -errno;
    } else {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (access(path, W_OK) || ((st.st_mode & S_ISVTX) && st.st_uid != settings.user))
            e = -EACCES;
    }
    if (!e)
        return fd;
    snprintf(err, errlen, "mount point %s: %s: uid %u must be able to write to it",
             settings.mountpoint, strerror(-e), (unsigned)settings.user);
    if (fd >= 0)
        close(fd);
    return e;
}

static unsigned long flag_of(const char *word)
{
    static const struct {
        const char *word;
        unsigned long flag;
    } flags[] = {{"ro", MS_RDONLY},        {"noexec", MS_NOEXEC},
                 {"noatime", MS_NOATIME},  {"nodiratime", MS_NODIRATIME},
                 {"sync", MS_SYNCHRONOUS}, {"dirsync", MS_DIRSYNC}};
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (!strcmp(word, flags[i].word))
            return flags[i].flag;
    return 0;
}

static bool is_data(const char *word)
{
    return !strcmp(word, "allow_other") || !strncmp(word, "context=", 8) ||
           !strncmp(word, "fscontext=", 10) || !strncmp(word, "max_read=", 9);
}

int mount_user_fuse(void)
{
    return fuse_fd;
}

void mount_user_renew(void)
{
    int fd = open_fuse();
    if (fd < 0)
        return;
    close(fuse_fd);
    fuse_fd = fd;
}

int mount_user(char *const words[], int n, char *err, size_t errlen)
{
    char target[32], *data = NULL;
    size_t len;
    unsigned long flags = MS_NOSUID | MS_NODEV;
    int at = open_mountpoint(err, errlen);
    if (at < 0)
        return at;
    FILE *f = open_memstream(&data, &len);
    if (!f)
        die("out of memory");
    fprintf(f, "fd=%d,rootmode=%o,user_id=%u,group_id=%u,default_permissions", fuse_fd, S_IFDIR,
            (unsigned)getuid(), (unsigned)getgid());
    for (int i = 0; i < n; i++) {
        flags |= flag_of(words[i]);
        if (is_data(words[i]))
            fprintf(f, ",%s", words[i]);
    }
    fclose(f);
    snprintf(target, sizeof(target), "/proc/self/fd/%d", at);
    int e = mount(settings.pfs_dir, target, "fuse.eddyfs", flags, data) ? -errno : 0;
    if (e)
        snprintf(err, errlen, "%s cannot be mounted on: %s", settings.mountpoint, strerror(-e));
    close(at);
    free(data);
    return e ? e : fuse_fd;
}
