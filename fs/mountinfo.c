/* mountinfo.c - reading /proc/self/mountinfo:
 *
 *   36 35 0:52 / /mnt/data rw,nosuid - fuse.eddyfs eddyfs rw,user_id=1000,group_id=1000
 *   id    dev    mount point  ...     type                  options of the file system
 */
#include "fs/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

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

static uid_t user_of(const char *options)
{
    const char *user = strstr(options, "user_id=");
    return user ? (uid_t)strtoul(user + strlen("user_id="), NULL, 10) : 0;
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

static int run_fusermount(const char *mountpoint)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        execlp("fusermount3", "fusermount3", "-u", "-z", "-q", mountpoint, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPERM;
}

int unmount_lazily(const char *mountpoint)
{
    if (!mounted_eddyfs(mountpoint, NULL) || !umount2(mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW))
        return 0;
    return run_fusermount(mountpoint);
}
