/* session_end.c - see session_end.h. */
#include "transport/session_end.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/session_int.h"
#include "transport/textfile.h"

#define PASSES 3 /* a node that was about to join may add a file meanwhile */

static int open_below(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Calls fn for each name but "." and ".."; ends when it does not return 0, and returns that. */
static int each_name(int dirfd, int (*fn)(int dirfd, const char *name, void *arg), void *arg)
{
    void *dir;
    int err = textfile_opendir(dirfd, ".", &dir);
    if (err)
        return err;
    for (struct dirent *d; !err && (d = textfile_readdir(dir, &err));)
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
            err = fn(dirfd, d->d_name, arg);
    closedir(dir);
    return err;
}

/* ---- is it one? ---- */

/* Its own, or what a crash, or NFS in place of an open file, has left. */
static int is_foreign(int dirfd, const char *name, void *arg)
{
    static const char *const own[] = {"secret", "settings", "probes", "nodes", "views", "forgotten", "moves", "dirty"};
    (void)dirfd;
    (void)arg;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (!strcmp(name, own[i]))
            return 0;
    return strncmp(name, TEXTFILE_TEMP, strlen(TEXTFILE_TEMP)) && strncmp(name, ".nfs", 4);
}

static int is_no_view(int dirfd, const char *name, void *arg)
{
    uint64_t number;
    return !view_number(name, &number) && is_foreign(dirfd, name, arg);
}

/* Of each_name: 1 becomes 0. */
static int none_found(int found)
{
    return found > 0 ? 0 : found < 0 ? found : 1;
}

int session_is_one(int session_fd, bool complete)
{
    int is = none_found(each_name(session_fd, is_foreign, NULL));
    if (is != 1 || !complete)
        return is;
    int fd = open_below(session_fd, "views");
    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
    is = none_found(each_name(fd, is_no_view, NULL));
    close(fd);
    return is;
}

/* A file that no crash has left under a temporary name. */
static int is_needed(int dirfd, const char *name, void *arg)
{
    (void)dirfd;
    (void)arg;
    return *name != '.' ? -ENOTEMPTY : 0;
}

int session_is_rest(int session_fd)
{
    int is = session_is_one(session_fd, true);
    if (is)
        return is;
    is = session_is_one(session_fd, false); /* views/ goes last */
    int err = is == 1 ? each_name(session_fd, is_needed, NULL) : 0;
    return err == -ENOTEMPTY ? 0 : err ? err : is;
}

/* ---- is it over? ---- */

int session_has_settings(int session_fd)
{
    int err = textfile_is_listed(session_fd, "settings");
    return err == -ENOENT || err == -ESTALE ? 0 : err; /* the directory itself is gone */
}

/* *out: the newest view, or NULL.  A view that was removed after it was listed is not the newest any more, or the session is over
 * and its views go. */
static int read_newest(int session_fd, struct view **out)
{
    uint64_t number = 0, before;
    *out = NULL;
    int fd = open_below(session_fd, "views"), err;
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    do {
        before = number;
        err = views_newest(fd, &number);
        if (!err && number)
            err = views_read(fd, number, out);
    } while (err == -ENOENT && number != before);
    close(fd);
    return err;
}

int session_is_open(int session_fd)
{
    struct view *v;
    int has = session_has_settings(session_fd);
    if (has <= 0)
        return has;
    if (read_newest(session_fd, &v)) /* who joins will see what is wrong with it */
        return 1;
    bool closed = v && v->closed;
    view_free(v);
    return !closed;
}

static int check_unneeded(int session_fd)
{
    static const char *const below[] = {"dirty", "forgotten"};
    int err = 0;
    for (size_t i = 0; i < ARRAY_LEN(below) && !err; i++) {
        int fd = open_below(session_fd, below[i]);
        if (fd == -ENOENT)
            continue;
        err = fd < 0 ? fd : each_name(fd, is_needed, NULL);
        if (fd >= 0)
            close(fd);
    }
    return err;
}

/* newest: NULL if there is no view. */
static int may_go_after(int session_fd, const struct view *newest)
{
    if (newest && newest->nmembers)
        return -EBUSY;
    if (newest && newest->nabsent)
        return -ENOTEMPTY;
    return newest && newest->closed ? 0 : check_unneeded(session_fd);
}

int session_may_go(int session_fd)
{
    struct view *v;
    int err = read_newest(session_fd, &v);
    if (!err)
        err = may_go_after(session_fd, v);
    view_free(v);
    return err;
}

/* ---- removing it ---- */

/* but: NULL, or a name that stays. */
static int remove_name(int dirfd, const char *name, void *but)
{
    if (but && !strcmp(name, but))
        return 0;
    return unlinkat(dirfd, name, 0) && errno != ENOENT ? -errno : 0;
}

/* In views/ the closed view goes last: until then it is the newest one. */
static int remove_names(int fd, bool views)
{
    char last[VIEW_NAME_SIZE];
    uint64_t newest;
    int err = views ? views_newest(fd, &newest) : 0;
    if (!err && views) {
        view_name(newest, last);
        err = each_name(fd, remove_name, last);
    }
    return err ? err : each_name(fd, remove_name, NULL);
}

static int remove_dir(int session_fd, const char *name)
{
    int fd = open_below(session_fd, name);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    int err = remove_names(fd, !strcmp(name, "views"));
    close(fd);
    if (!err && unlinkat(session_fd, name, AT_REMOVEDIR) && errno != ENOENT)
        err = -errno;
    return err;
}

/* Directories are left alone, and what somebody else has put there. */
static int remove_file(int session_fd, const char *name, void *arg)
{
    if (is_foreign(session_fd, name, arg))
        return 0;
    return unlinkat(session_fd, name, 0) && errno != ENOENT && errno != EISDIR && errno != EPERM ? -errno : 0;
}

static int remove_once(int base_fd, const char *name, int session_fd)
{
    static const char *const below[] = {"probes", "nodes", "forgotten", "dirty", "moves"};
    int err = unlinkat(session_fd, "settings", 0) && errno != ENOENT ? -errno : 0;
    if (!err)
        err = each_name(session_fd, remove_file, NULL);
    for (size_t i = 0; i < ARRAY_LEN(below) && !err; i++)
        err = remove_dir(session_fd, below[i]);
    if (!err)
        err = remove_dir(session_fd, "views");
    if (!err && unlinkat(base_fd, name, AT_REMOVEDIR) && errno != ENOENT)
        err = -errno;
    return err == -EEXIST ? -ENOTEMPTY : err;
}

int session_remove(int base_fd, const char *name, int session_fd)
{
    int err = -ENOTEMPTY;
    for (int i = 0; i < PASSES && err == -ENOTEMPTY; i++)
        err = remove_once(base_fd, name, session_fd);
    return err;
}

/* ---- the last node ---- */

/* 0: it is closed, by this node or before.  base: the newest view, or NULL. */
static int close_after(int session_fd, const struct view *base)
{
    struct view last = {.number = 1 + (base ? base->number : 0), .closed = true};
    int err = base && base->closed ? 0 : views_make(session_fd, &last);
    return err == -EEXIST ? -EBUSY : err == -ESTALE ? 0 : err;
}

/* The view that is found without nodes is the one that is closed: if a node joins meanwhile, its view has the number. */
static int close_it(int session_fd)
{
    struct view *v;
    int err = read_newest(session_fd, &v);
    if (!err)
        err = may_go_after(session_fd, v);
    if (!err && session_has_settings(session_fd) != 0)
        err = close_after(session_fd, v);
    view_free(v);
    return err;
}

int session_end_dir(int base_fd, const char *name, int session_fd)
{
    int err = close_it(session_fd);
    return err ? err : session_remove(base_fd, name, session_fd);
}

/* ---- of the tool ---- */

int session_look(int session_fd, struct view **newest, uint64_t *age_ms, bool *listed)
{
    int err = read_newest(session_fd, newest), fd = open_below(session_fd, "views");
    *age_ms = 0;
    *listed = check_unneeded(session_fd) != 0;
    if (!err && *newest && fd >= 0)
        err = views_age_ms(fd, (*newest)->number, age_ms);
    if (fd >= 0)
        close(fd);
    return err;
}

int session_give_up(int base_fd, const char *name, int session_fd, const struct view *newest)
{
    int err = check_unneeded(session_fd);
    if (!err)
        err = close_after(session_fd, newest);
    return err ? err : session_remove(base_fd, name, session_fd);
}
