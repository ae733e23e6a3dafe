/* session_views.c - the views of the open session, and which nodes of any session did not leave in order; view.c has the files
 * themselves. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "transport/marks.h"
#include "transport/session.h"
#include "transport/session_int.h"
#include "transport/textfile.h"
#include "transport/view.h"

#define UNTOUCHED_S 60
#define QUIET_MS    3000
#define WATCH_MS    6000

static int views_open(int *fd)
{
    *fd = openat(session_dirfd(), "views", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *fd < 0 ? -errno : 0;
}

int session_newest(uint64_t *number)
{
    int fd, err = views_open(&fd);
    if (err)
        return err;
    err = views_newest(fd, number);
    close(fd);
    return err;
}

int session_read_view(uint64_t number, struct view **out)
{
    int fd, err = views_open(&fd);
    if (err)
        return err;
    err = views_read(fd, number, out);
    close(fd);
    return err;
}

int session_make_view(const struct view *v)
{
    return views_make(session_dirfd(), v);
}

int session_touch_view(uint64_t number)
{
    char name[VIEW_NAME_SIZE];
    int fd, err = views_open(&fd);
    if (err)
        return err;
    view_name(number, name);
    if (utimensat(fd, name, NULL, AT_SYMLINK_NOFOLLOW))
        err = -errno;
    close(fd);
    return err;
}

int session_view_age_ms(uint64_t number, uint64_t *ms)
{
    int fd, err = views_open(&fd);
    if (err)
        return err;
    err = views_age_ms(fd, number, ms);
    close(fd);
    return err;
}

/* ---- nodes that did not leave in order ---- */

struct unfinished {
    int (*cb)(void *arg, const char *session, uint64_t node, const char *node_name);
    void *arg;
};

/* Nobody touches it while we look. */
static bool stays_untouched(int dirfd, const char *name, int64_t touched_ns)
{
    uint64_t end = boot_ms() + WATCH_MS;
    int64_t now_ns = touched_ns;
    while (boot_ms() < end && now_ns == touched_ns) {
        poll(NULL, 0, 200);
        if (textfile_mtime(dirfd, name, &now_ns))
            return false;
    }
    return now_ns == touched_ns;
}

/* The members touch the newest view every second or so.  The age is by the PFS's clock, or by ours where nothing can be
 * written: so it is believed only if it is long; else we look whether somebody touches it now. */
static bool is_untouched(int dirfd, const char *name)
{
    int64_t now_ns, touched_ns;
    if (textfile_now(dirfd, &now_ns))
        now_ns = (int64_t)time(NULL) * 1000000000;
    if (textfile_mtime(dirfd, name, &touched_ns))
        return false;
    int64_t age_ms = (now_ns - touched_ns) / 1000000;
    return age_ms > UNTOUCHED_S * 1000 || (age_ms > QUIET_MS && stays_untouched(dirfd, name, touched_ns));
}

static int unfinished_of(const struct unfinished *u, const char *session, const struct view *v,
                         bool untouched)
{
    int err = 0;
    for (uint32_t i = 0; i < v->nabsent && !err; i++)
        err = u->cb(u->arg, session, v->absents[i].id, v->absents[i].name);
    for (uint32_t i = 0; i < v->nmembers && untouched && !err; i++)
        err = u->cb(u->arg, session, v->members[i].id, v->members[i].name);
    return err;
}

static int unfinished_in(void *arg, const char *session, int session_fd)
{
    char name[VIEW_NAME_SIZE];
    uint64_t number = 0;
    struct view *v;
    int fd = openat(session_fd, "views", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) /* not a session */
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
    int err = views_newest(fd, &number);
    if (!err && number)
        err = views_read(fd, number, &v);
    if (!err && number) {
        view_name(number, name);
        err = unfinished_of(arg, session, v, is_untouched(fd, name));
        view_free(v);
    }
    close(fd);
    return err == -ENOENT ? 0 : err; /* it was removed meanwhile */
}

int session_each_unfinished(const char *path,
                            int (*cb)(void *arg, const char *session, uint64_t node,
                                      const char *node_name),
                            void *arg)
{
    struct unfinished u = {cb, arg};
    return session_each(path, unfinished_in, &u);
}
