/* mount_map.c - from a mount point to its cache directory (control.h).
 *
 * A file per mount in RUN_DIR/eddyfs/, named by the hash of the mount point's path; nine lines, with
 * \n for a newline and \\ for a backslash in a path:
 *
 *     /mnt/data
 *     /local/eddyfs-1000/data
 *     /lustre/project/data
 *     4711
 *     /lustre/project/data/.eddyfs-1000
 *     node017
 *     10.1.0.17
 *     0123456789abcdef0123456789abcdef
 *     clean                               or empty (struct mount_entry)
 *
 * Readers may have another environment than the daemon (a cron job, an epilog).  So the daemon writes into
 * the first directory that is usable, and into the first one whose path is in no variable; readers look into
 * all directories and take the newest entry.
 *
 * An entry is only what a user says.  It counts for a mount of that user: the kernel knows whose a mount is.
 * Where nothing is mounted now, root believes a user only of a directory that this user owns.
 */
#include "fs/daemon/control.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "fs/mountinfo.h"
#include "transport/base.h"

#define LINES     9
#define LINES_MIN 6
#define FILE_MAX  (LINES * (2 * PATH_MAX + 1))
#define NAME_SIZE 17

void mount_entry_free(struct mount_entry *e)
{
    free(e->mountpoint);
    free(e->cache_dir);
    free(e->pfs_dir);
    free(e->session);
    free(e->session_dir);
    free(e->node);
    free(e->listen);
    free(e->pfs_fid);
    free(e->ended);
    *e = (struct mount_entry){0};
}

bool mount_entry_ended(const struct mount_entry *e)
{
    return e->ended && !strcmp(e->ended, "clean");
}

static char **line_of(struct mount_entry *e, int n)
{
    char **lines[LINES] = {&e->mountpoint,  &e->cache_dir, &e->pfs_dir, &e->session,
                           &e->session_dir, &e->node,      &e->listen,  &e->pfs_fid, &e->ended};
    return lines[n];
}

/* ---- text ---- */

static char *print_entry(const struct mount_entry *e, size_t *len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    if (!f)
        die("out of memory for the mount map");
    for (int i = 0; i < LINES; i++) {
        const char *line = *line_of((struct mount_entry *)e, i);
        for (; line && *line; line++) {
            if (*line == '\n' || *line == '\\')
                putc('\\', f);
            putc(*line == '\n' ? 'n' : *line, f);
        }
        putc('\n', f);
    }
    if (fclose(f))
        die("out of memory for the mount map");
    return text;
}

/* Takes one line off *text; malloc'd; NULL: it has no end. */
static char *take_line(const char **text)
{
    char *line = xmalloc(strlen(*text) + 1), *to = line;
    const char *p = *text;
    for (; *p && *p != '\n'; p++) {
        if (*p == '\\' && p[1]) {
            p++;
            *to++ = *p == 'n' ? '\n' : *p;
        } else {
            *to++ = *p;
        }
    }
    if (!*p) {
        free(line);
        return NULL;
    }
    *to = '\0';
    *text = p + 1;
    return line;
}

static int parse_entry(const char *text, struct mount_entry *out)
{
    *out = (struct mount_entry){0};
    for (int i = 0; i < LINES; i++)
        if (!(*line_of(out, i) = take_line(&text)) && i < LINES_MIN) {
            mount_entry_free(out);
            return -EPROTO;
        }
    if (out->mountpoint[0] == '/' && out->cache_dir[0] == '/')
        return 0;
    mount_entry_free(out);
    return -EPROTO;
}

static void entry_name(const char *mountpoint, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%016" PRIx64, (uint64_t)XXH3_64bits(mountpoint, strlen(mountpoint)));
}

/* ---- directories ---- */

static bool is_private(int fd, uid_t uid)
{
    struct stat st;
    return !fstat(fd, &st) && st.st_uid == uid && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* A directory below dirfd that belongs to that user, and that no other user can write to; makes it if asked.
 * A descriptor or -errno. */
static int open_private(int dirfd, const char *path, uid_t uid, bool make)
{
    if (make && mkdirat(dirfd, path, 0700) && errno != EEXIST)
        return -errno;
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (is_private(fd, uid))
        return fd;
    close(fd);
    return -EACCES;
}

#define RUN_DIRS 4

static bool is_by_variable(int n)
{
    return n == 0 || n == 2;
}

/* The n-th place for RUN_DIR, malloc'd; NULL: there is no n-th place.  *make: it may be
 * made. */
static char *run_dir(int n, uid_t uid, bool *make)
{
    const char *run = uid == geteuid() ? getenv("XDG_RUNTIME_DIR") : NULL, *tmp = getenv("TMPDIR");
    char *path = NULL;
    int len = 0;
    *make = n >= 2;
    if (n == 0)
        path = run && run[0] == '/' ? xstrdup(run) : NULL;
    else if (n == 1)
        len = asprintf(&path, "/run/user/%u", (unsigned)uid);
    else if (n == 2 && tmp && tmp[0] == '/')
        len = asprintf(&path, "%s/eddyfs-run-%u", tmp, (unsigned)uid);
    else if (n == 3)
        len = asprintf(&path, "/tmp/eddyfs-run-%u", (unsigned)uid);
    return len < 0 ? NULL : path;
}

/* RUN_DIR/eddyfs of the n-th place; a descriptor or -errno. */
static int open_run_dir(int n, uid_t uid, bool make)
{
    bool may_make;
    char *path = run_dir(n, uid, &may_make);
    if (!path)
        return -ENOENT;
    int run = open_private(AT_FDCWD, path, uid, make && may_make);
    free(path);
    if (run < 0)
        return run;
    int fd = open_private(run, "eddyfs", uid, make);
    close(run);
    return fd;
}

/* ---- reading ---- */

/* mtime_ns: when it was written. */
static int read_entry(int dirfd, const char *name, uid_t uid, struct mount_entry *out,
                      int64_t *mtime_ns)
{
    struct stat st;
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    char *text = xmalloc(FILE_MAX + 1);
    ssize_t n = -1;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == uid)
        n = read(fd, text, FILE_MAX);
    close(fd);
    text[MAX(n, 0)] = '\0';
    int err = n < 0 ? -EPROTO : parse_entry(text, out);
    free(text);
    if (err)
        return err;
    out->owner = uid;
    *mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return 0;
}

/* ---- whom to believe ---- */

static bool owns_directory(uid_t uid, const char *path)
{
    struct stat st;
    return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == uid;
}

/* Nothing is looked up through a mount, which may hang. */
static bool is_believed(const struct mount_entry *e)
{
    struct mounted m;
    int err = mounted_find(e->mountpoint, &m);
    bool eddyfs = !err && !strcmp(m.type, EDDYFS_TYPE);
    uid_t user = err ? 0 : m.user;
    if (!err)
        mounted_free(&m);
    if (eddyfs)
        return user == e->owner;
    if (e->owner == geteuid())
        return true;
    return err == -ENOENT && owns_directory(e->owner, e->mountpoint);
}

struct found {
    struct mount_entry *entries;
    int64_t *mtimes;
    size_t n;
    const char *only; /* this mount point; NULL: all */
    bool doubted;     /* there was an entry that is not believed */
};

/* If there are two entries for one mount point, the newer one counts. */
static void found_add(struct found *all, struct mount_entry *e, int64_t mtime)
{
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->entries[i].mountpoint, e->mountpoint) != 0)
            continue;
        struct mount_entry older = *e;
        if (mtime > all->mtimes[i]) {
            older = all->entries[i];
            all->entries[i] = *e;
            all->mtimes[i] = mtime;
        }
        mount_entry_free(&older);
        return;
    }
    all->entries = xrealloc(all->entries, (all->n + 1) * sizeof(*all->entries));
    all->mtimes = xrealloc(all->mtimes, (all->n + 1) * sizeof(*all->mtimes));
    all->entries[all->n] = *e;
    all->mtimes[all->n++] = mtime;
}

static void look_at(struct found *all, int dirfd, const char *name, uid_t uid)
{
    struct mount_entry e;
    char expected[NAME_SIZE];
    int64_t mtime;
    if (read_entry(dirfd, name, uid, &e, &mtime))
        return;
    entry_name(e.mountpoint, expected);
    bool meant = !strcmp(name, expected) && (!all->only || !strcmp(all->only, e.mountpoint));
    if (meant && is_believed(&e)) {
        found_add(all, &e, mtime);
        return;
    }
    all->doubted |= meant;
    mount_entry_free(&e);
}

static void look_in(struct found *all, int dirfd, uid_t uid)
{
    DIR *dir = fdopendir(dirfd);
    if (!dir) {
        close(dirfd);
        return;
    }
    for (struct dirent *d; (d = readdir(dir));)
        if (d->d_name[0] != '.')
            look_at(all, dirfd, d->d_name, uid);
    closedir(dir);
}

static void look_for_user(struct found *all, uid_t uid)
{
    char name[NAME_SIZE];
    for (int n = 0; n < RUN_DIRS; n++) {
        int fd = open_run_dir(n, uid, false);
        if (fd < 0)
            continue;
        if (!all->only) {
            look_in(all, fd, uid);
            continue;
        }
        entry_name(all->only, name);
        look_at(all, fd, name, uid);
        close(fd);
    }
}

/* Every user whose number is in a name of this form in dir; later the directory is checked to be
 * that user's. */
static void look_for_users_in(struct found *all, const char *dir, const char *prefix)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *entry; (entry = readdir(d));) {
        size_t len = strlen(prefix);
        char *end;
        if (strncmp(entry->d_name, prefix, len) != 0 || !isdigit((unsigned char)entry->d_name[len]))
            continue;
        unsigned long uid = strtoul(entry->d_name + len, &end, 10);
        if (!*end && uid <= UINT32_MAX && (uid_t)uid != geteuid())
            look_for_user(all, (uid_t)uid);
    }
    closedir(d);
}

/* A user sees only their own mounts; root, which ends jobs, sees those of all users. */
static void look(struct found *all)
{
    look_for_user(all, geteuid());
    if (geteuid() != 0)
        return;
    look_for_users_in(all, "/run/user", "");
    look_for_users_in(all, "/tmp", "eddyfs-run-");
    if (getenv("TMPDIR"))
        look_for_users_in(all, getenv("TMPDIR"), "eddyfs-run-");
}

static void found_free(struct found *all)
{
    for (size_t i = 0; i < all->n; i++)
        mount_entry_free(&all->entries[i]);
    free(all->entries);
    free(all->mtimes);
}

/* Takes path over, which is NULL when errno says why. */
static int find_path(char *path, struct mount_entry *out)
{
    if (!path)
        return -errno;
    struct found all = {.only = path};
    look(&all);
    if (all.n) {
        *out = all.entries[0];
        all.entries[0] = (struct mount_entry){0};
    }
    int err = all.n ? 0 : all.doubted ? -EPERM : -ENOENT;
    found_free(&all);
    free(path);
    return err;
}

/* Tries the path as written first: resolving its directory may hang with the directory's file
 * system. */
int mount_map_find(const char *mountpoint, struct mount_entry *out)
{
    int err = find_path(mount_path_as_written(mountpoint), out);
    if (err != -ENOENT && err != -EPERM)
        return err;
    int resolved = find_path(mount_path(mountpoint), out);
    return resolved == -ENOENT ? err : resolved;
}

int mount_map_each(int (*cb)(void *arg, const struct mount_entry *e), void *arg)
{
    struct found all = {0};
    int result = 0;
    look(&all);
    for (size_t i = 0; i < all.n && !result; i++)
        result = cb(arg, &all.entries[i]);
    found_free(&all);
    return result;
}

/* ---- writing ---- */

#define ENDED_KEPT_NS (INT64_C(24 * 3600) * 1000000000)

/* Entries whose cache directory is gone are of no use any more.  `eddy wait` may still ask for one that ended in order. */
static bool is_of_use(const struct mount_entry *e, int64_t mtime_ns)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool gone = access(e->cache_dir, F_OK) && (errno == ENOENT || errno == ENOTDIR);
    return !gone || (mount_entry_ended(e) && now.tv_sec * INT64_C(1000000000) - mtime_ns < ENDED_KEPT_NS);
}

static void sweep(int dirfd)
{
    int own = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (!dir) {
        if (own >= 0)
            close(own);
        return;
    }
    for (struct dirent *d; (d = readdir(dir));) {
        struct mount_entry e;
        int64_t mtime;
        if (d->d_name[0] == '.' || read_entry(dirfd, d->d_name, geteuid(), &e, &mtime))
            continue;
        if (!is_of_use(&e, mtime))
            unlinkat(dirfd, d->d_name, 0);
        mount_entry_free(&e);
    }
    closedir(dir);
}

/* Replaced in one step: a reader sees the old or the new one. */
static int replace_entry(int dirfd, const char *name, const char *text, size_t len)
{
    char temporary[32];
    snprintf(temporary, sizeof(temporary), ".%016" PRIx64, random_u64());
    int fd = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int err = write_all(fd, text, len);
    if (!err && fsync(fd)) /* that in a cache directory must survive a power loss with it */
        err = -errno;
    if (close(fd) && !err)
        err = -errno;
    if (!err && renameat(dirfd, temporary, dirfd, name))
        err = -errno;
    if (err)
        unlinkat(dirfd, temporary, 0);
    return err;
}

#define OWN_NAME "mount" /* in the cache directory */

static bool has_text(int dirfd, const char *name, const char *text, size_t len)
{
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    char *now = xmalloc(len + 1);
    ssize_t n = read(fd, now, len + 1);
    bool same = n == (ssize_t)len && !memcmp(now, text, len);
    free(now);
    close(fd);
    return same;
}

int mount_entry_write(int cache_dirfd, const struct mount_entry *e)
{
    size_t len;
    char *text = print_entry(e, &len);
    int err = replace_entry(cache_dirfd, OWN_NAME, text, len);
    /* on a full disk it may be the one of the last mount, which was the same */
    if (err && has_text(cache_dirfd, OWN_NAME, text, len))
        err = 0;
    free(text);
    return err;
}

int mount_entry_read(int cache_dirfd, struct mount_entry *out)
{
    struct stat st;
    int64_t mtime;
    return fstat(cache_dirfd, &st) ? -errno
                                   : read_entry(cache_dirfd, OWN_NAME, st.st_uid, out, &mtime);
}

static int write_into(int n, const char *name, const char *text, size_t len)
{
    int fd = open_run_dir(n, geteuid(), true);
    if (fd < 0)
        return fd;
    sweep(fd);
    int err = replace_entry(fd, name, text, len);
    close(fd);
    return err;
}

int mount_map_write(const struct mount_entry *e)
{
    char name[NAME_SIZE];
    size_t len;
    int err = -ENOENT;
    bool fixed = false; /* it is in one whose path is in no variable */
    char *text = print_entry(e, &len);
    entry_name(e->mountpoint, name);
    for (int n = 0; n < RUN_DIRS; n++) {
        if (is_by_variable(n) ? !err : fixed)
            continue;
        int e2 = write_into(n, name, text, len);
        fixed |= !e2 && !is_by_variable(n);
        if (err && (!e2 || err == -ENOENT))
            err = e2;
    }
    free(text);
    return err;
}
