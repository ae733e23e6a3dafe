/* mountinfo.c - reading /proc/self/mountinfo:
 *
 *   36 35 0:52 / /mnt/data rw,nosuid - fuse.eddyfs eddyfs rw,user_id=1000,group_id=1000
 *   id    dev    mount point  ...     type                  options of the file system
 */
#include "fs/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "fs/unmount_helper.h"
#include "transport/base.h"

/* Blanks, newlines and backslashes in a path are \ooo there; in place. */
static void unescape(char *s)
{
    char *to = s;
    while (*s) {
        unsigned c;
        if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
            *to++ = (char)c;
            s += 4;
        } else {
            *to++ = *s++;
        }
    }
    *to = '\0';
}

/* A word of its own: another option's value may have the same text in it. */
static uid_t user_of(const char *options)
{
    static const char name[] = "user_id=";
    for (const char *word = options; word; word = strchr(word, ',')) {
        word += *word == ',';
        if (!strncmp(word, name, strlen(name)))
            return (uid_t)strtoul(word + strlen(name), NULL, 10);
    }
    return 0;
}

/* The n-th word from *line on, NUL-terminated; NULL when there are too few. */
static char *skip_to(char **line, int n)
{
    char *word = NULL;
    for (int i = 0; i <= n; i++)
        if (!(word = strsep(line, " \n")))
            return NULL;
    return word;
}

/* The strings point into line, which is changed. */
static bool parse(char *line, struct mounted *m)
{
    char *id = skip_to(&line, 0), *dev = skip_to(&line, 1);
    m->path = skip_to(&line, 1);
    if (!m->path || sscanf(id, "%u", &m->id) != 1 ||
        sscanf(dev, "%u:%u", &m->major, &m->minor) != 2)
        return false;
    char *word;
    do
        word = skip_to(&line, 0);
    while (word && strcmp(word, "-") != 0);
    m->type = skip_to(&line, 0);
    char *options = skip_to(&line, 1);
    if (!word || !m->type || !options)
        return false;
    m->user = user_of(options);
    unescape(m->path);
    return true;
}

int mounted_each(int (*cb)(void *arg, const struct mounted *m), void *arg)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    if (!f)
        return -errno;
    char *line = NULL;
    size_t size = 0;
    int result = 0;
    while (!result && getline(&line, &size, f) > 0) {
        struct mounted m;
        if (parse(line, &m))
            result = cb(arg, &m);
    }
    free(line);
    fclose(f);
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
