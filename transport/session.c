/* session.c - opening the session directory: its owner and mode, the secret, the settings, the clock.
 *
 *     secret      32 random bytes
 *     settings    eddyfs 2
 *                 chunk 1048576
 *                 times 3000 10000 4000 30000                suspect, dead, lease, open (times.h)
 *
 * Nodes start at the same moment.  Each that finds no session makes one, complete, under another name, and one rename() wins: it
 * replaces nothing but an empty directory.  Then all nodes read what is there.  So a directory never becomes a session after it
 * got its name, and one without `settings` is over (session_end.h).
 *
 * The other files of the directory: session_probe.c (probes/), view.c (views/), nodes.c (nodes/), dirtylist.c (dirty/), moves.c
 * (moves/).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/marks.h"
#include "transport/message.h"
#include "transport/session.h"
#include "transport/session_end.h"
#include "transport/session_int.h"
#include "transport/textfile.h"
#include "transport/times.h"

#define SECRET_SIZE  32
#define SETTINGS_MAX 4096

static struct {
    int fd; /* the session's directory, -1 when none is open */
    char name[65];
    char *base;
    bool base_is_default;
    uint8_t secret[SECRET_SIZE];
    int64_t clock_offset_ns;
} session = {.fd = -1};

const uint8_t *session_secret(void)
{
    return session.secret;
}

const char *session_name(void)
{
    return session.name;
}

const char *session_base(void)
{
    return session.base ? session.base : "?";
}

bool session_base_is_default(void)
{
    return session.base_is_default;
}

int session_dirfd(void)
{
    return session.fd;
}

int64_t session_clock_offset_ns(void)
{
    return session.clock_offset_ns;
}

int session_fail(const struct session_report *r, int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (r->len)
        vsnprintf(r->text, r->len, fmt, ap);
    va_end(ap);
    return err;
}

/* ---- the directory ---- */

static int fail_make(const struct session_report *r, int err, const char *what)
{
    return session_fail(r, err,
                        "%s%s%s: the session directory cannot be made: %s: "
                        "name a directory on the PFS that you can write to with --session-dir",
                        r->dir, *what ? "/" : "", what, strerror(-err));
}

/* The owner of a directory can rename and remove what is in it, and so can all that can write to it, unless
 * it is sticky.  They can put another session into the place of ours: then some nodes are in one, the others
 * in the other, and each has locks and claims of its own. */
static int check_base(const struct session_report *r, int fd)
{
    struct stat st;
    if (fstat(fd, &st))
        return session_fail(r, -errno, "%s: %s", r->dir, strerror(errno));
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return session_fail(r, -EACCES,
                            "%s: belongs to user %u, not to you (%u), and that user could exchange your "
                            "sessions in it: have it removed, or name another directory with --session-dir",
                            r->dir, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
        return session_fail(
            r, -EACCES,
            "%s: others can write to it (mode %04o), and could exchange your sessions in it: chmod "
            "go-w or +t it if no other user made what is there, or name another directory with "
            "--session-dir",
            r->dir, (unsigned)st.st_mode & 07777);
    return 0;
}

static int open_base(const struct session_report *r, int *fd)
{
    int made = mkdir(r->dir, 0700) ? -errno : 0;
    *fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd >= 0) {
        int bad = check_base(r, *fd);
        if (bad)
            close(*fd);
        return bad;
    }
    int err = -errno;
    if (made && made != -EEXIST)
        return fail_make(r, made, "");
    if (err == -ENOENT) /* the last session in it has just ended */
        return -ESTALE;
    if (err == -ENOTDIR || err == -ELOOP)
        return session_fail(r, -ENOTDIR,
                            "%s: is not a directory, or a link to one: remove it, or name a directory with "
                            "--session-dir",
                            r->dir);
    return session_fail(r, err, "%s: cannot be opened: %s: name another directory with --session-dir",
                        r->dir, strerror(-err));
}

/* A user that can write to the directory can take part.  A user that can replace it can give us a secret of
 * their own.  What is below was made by another user if the directory was open to others before. */
static int check_owner(const struct session_report *r, const char *below, const struct stat *st)
{
    if (st->st_uid != geteuid())
        return session_fail(r, -EACCES,
                            "%s/%s%s: belongs to user %u, not to you (%u): "
                            "choose another name with --session or another directory with --session-dir",
                            r->dir, r->name, below, (unsigned)st->st_uid, (unsigned)geteuid());
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return session_fail(
            r, -EACCES,
            "%s/%s%s: others can write to it (mode %04o): chmod 700 it if no other user made it, "
            "or choose another name with --session",
            r->dir, r->name, below, (unsigned)st->st_mode & 07777);
    return 0;
}

/* below: its name, after a slash. */
static int check_subdir(const struct session_report *r, int fd, const char *below)
{
    struct stat st;
    if (fstatat(fd, below + 1, &st, AT_SYMLINK_NOFOLLOW))
        return session_fail(r, -errno, "%s/%s%s: %s", r->dir, r->name, below, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return session_fail(r, -ENOTDIR, "%s/%s%s: is not a directory: choose another name with --session",
                            r->dir, r->name, below);
    return check_owner(r, below, &st);
}

static int make_subdirs(const struct session_report *r, int fd)
{
    static const char *const below[] = {"/probes",    "/nodes", "/views",
                                        "/forgotten", "/dirty", "/moves"};
    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        if (mkdirat(fd, below[i] + 1, 0700) && errno != EEXIST)
            return session_fail(r, -errno,
                                "%s/%s%s: cannot be made: %s: "
                                "name a directory that you can write to with --session-dir",
                                r->dir, r->name, below[i], strerror(errno));
        int err = check_subdir(r, fd, below[i]);
        if (err)
            return err;
    }
    return 0;
}

/* ---- secret and settings: the first node's ---- */

static int fail_file(const struct session_report *r, int err, const char *file)
{
    if (err == -EOPNOTSUPP)
        return session_fail(r, err,
                            "%s/%s: this file system has neither hard links nor an exclusive rename: name "
                            "a directory on another one that all nodes share with --session-dir",
                            r->dir, r->name);
    return session_fail(r, err,
                        "%s/%s/%s: %s: "
                        "choose another session with --session, or another directory with --session-dir",
                        r->dir, r->name, file, strerror(-err));
}

static int make_secret(const struct session_report *r, int fd)
{
    uint8_t mine[SECRET_SIZE];
    int err = random_bytes(mine, sizeof(mine));
    if (err)
        return session_fail(r, err, "no random bytes for the secret: %s", strerror(-err));
    err = textfile_create(fd, "secret", mine, sizeof(mine));
    explicit_bzero(mine, sizeof(mine));
    return err ? fail_file(r, err, "secret") : 0;
}

static int load_secret(const struct session_report *r, int fd)
{
    char *text;
    size_t len;
    struct stat st;
    int err = textfile_read(fd, "secret", SECRET_SIZE, &text, &len);
    if (err)
        return fail_file(r, err, "secret");
    if (len == SECRET_SIZE)
        memcpy(session.secret, text, SECRET_SIZE);
    explicit_bzero(text, len);
    free(text);
    if (len != SECRET_SIZE)
        return session_fail(r, -EPROTO,
                            "%s/%s/secret: has %zu bytes, not %d: choose another name with --session",
                            r->dir, r->name, len, SECRET_SIZE);
    if (fstatat(fd, "secret", &st, AT_SYMLINK_NOFOLLOW))
        return fail_file(r, -errno, "secret");
    if (st.st_uid != geteuid() || st.st_mode & 077)
        return session_fail(r, -EACCES,
                            "%s/%s/secret: others own it or can read it (mode %04o): "
                            "choose another name with --session",
                            r->dir, r->name, (unsigned)st.st_mode & 07777);
    return 0;
}

static bool times_eq(const struct times *a, const struct times *b)
{
    return a->suspect == b->suspect && a->dead == b->dead && a->lease == b->lease &&
           a->open == b->open;
}

/* A lease is only valid if the other nodes wait for it. */
static int check_times(const struct session_report *r, struct words *w)
{
    words_match(w, "times ");
    struct times t;
    t.suspect = (uint32_t)words_u64(w, UINT32_MAX);
    words_match(w, " ");
    t.dead = (uint32_t)words_u64(w, UINT32_MAX);
    words_match(w, " ");
    t.lease = (uint32_t)words_u64(w, UINT32_MAX);
    words_match(w, " ");
    t.open = (uint32_t)words_u64(w, UINT32_MAX);
    words_match(w, "\n");
    if (w->bad)
        return session_fail(r, -EPROTO,
                            "%s/%s/settings: has no times: it was made by another eddyfs: "
                            "choose another name with --session",
                            r->dir, r->name);
    char theirs[128];
    if (!times_eq(&t, &times))
        return session_fail(r, -EPROTO,
                            "%s/%s: its nodes have other times than this one: give %s on all nodes, or "
                            "choose another name with --session",
                            r->dir, r->name, times_print(&t, theirs, sizeof(theirs)));
    return 0;
}

/* A fid must mean one file.  A session that an older eddyfs made does not say which PFS directory it is for.
 * */
static int check_pfs(const struct session_report *r, struct words *w, struct fid pfs)
{
    struct fid theirs;
    words_match(w, "pfs ");
    theirs.hi = words_hex(w);
    words_match(w, " ");
    theirs.lo = words_hex(w);
    if (w->bad || fid_is_zero(pfs) || fid_eq(theirs, pfs))
        return 0;
    return session_fail(r, -EPROTO,
                        "%s/%s: its nodes have another PFS directory than this one: name the same on all "
                        "nodes, or choose another name with --session",
                        r->dir, r->name);
}

static int check_settings(const struct session_report *r, const char *text, size_t len,
                          const struct session_config *c)
{
    struct words w = words_of(text, len);
    words_match(&w, "eddyfs ");
    uint64_t major = words_u64(&w, UINT32_MAX);
    words_match(&w, "\n");
    if (w.bad)
        return session_fail(r, -EPROTO,
                            "%s/%s/settings: is not an eddyfs session's: "
                            "choose another name with --session",
                            r->dir, r->name);
    if (major != MSG_MAJOR)
        return session_fail(r, -EPROTO,
                            "%s/%s: was made by an eddyfs with protocol %" PRIu64 ", this one has %d: "
                            "use one version on all nodes, or choose another name with --session; if none "
                            "of its nodes "
                            "runs any more, and `eddy check` names no files, remove the directory",
                            r->dir, r->name, major, MSG_MAJOR);
    words_match(&w, "chunk ");
    uint64_t chunk = words_u64(&w, UINT32_MAX);
    words_match(&w, "\n");
    if (w.bad)
        return session_fail(r, -EPROTO,
                            "%s/%s/settings: has no chunk size: choose another name with --session", r->dir,
                            r->name);
    if (chunk != c->chunk_size)
        return session_fail(r, -EPROTO,
                            "%s/%s: has chunks of %" PRIu64 " bytes, not %u: give --chunk-size %" PRIu64
                            " on all nodes, or choose another name with --session",
                            r->dir, r->name, chunk, c->chunk_size, chunk);
    int err = check_times(r, &w);
    return err ? err : check_pfs(r, &w, c->pfs);
}

static int make_settings(const struct session_report *r, int fd, const struct session_config *c)
{
    char mine[256];
    int n = snprintf(mine, sizeof(mine), "eddyfs %d\nchunk %u\ntimes %u %u %u %u\n", MSG_MAJOR,
                     c->chunk_size, times.suspect, times.dead, times.lease, times.open);
    if (!fid_is_zero(c->pfs))
        n += snprintf(mine + n, sizeof(mine) - (size_t)n, "pfs %016" PRIx64 " %016" PRIx64 "\n",
                      c->pfs.hi, c->pfs.lo);
    int err = textfile_create(fd, "settings", mine, (size_t)n);
    return err ? fail_file(r, err, "settings") : 0;
}

static int load_settings(const struct session_report *r, int fd, const struct session_config *c)
{
    char *text;
    size_t len;
    int err = textfile_read(fd, "settings", SETTINGS_MAX, &text, &len);
    if (err)
        return fail_file(r, err, "settings");
    err = check_settings(r, text, len, c);
    free(text);
    return err;
}

static int measure_clock(const struct session_report *r, int fd)
{
    int err = textfile_clock(fd, &session.clock_offset_ns);
    if (err)
        return session_fail(r, err, "%s/%s: cannot be written to: %s: %s", r->dir, r->name, strerror(-err),
                            err == -ENOSPC || err == -EDQUOT
                        ? "make room on the PFS first: nothing in the cache is lost"
                        : "name another directory with --session-dir");
    return 0;
}

/* ---- a new one ---- */

/* In base; it gets its name when it is complete.  0: there is one now, this or another node's. */
static int make_session(const struct session_report *r, int base, const struct session_config *c)
{
    char temp[32];
    snprintf(temp, sizeof(temp), TEXTFILE_TEMP "%016" PRIx64, random_u64());
    if (mkdirat(base, temp, 0700))
        return errno == ENOENT ? -ESTALE : fail_make(r, -errno, r->name); /* the base has just gone with its last session */
    int fd = openat(base, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int err = fd < 0 ? fail_make(r, -errno, r->name) : make_subdirs(r, fd);
    if (!err)
        err = make_secret(r, fd);
    if (!err)
        err = make_settings(r, fd, c);
    if (!err && !renameat(base, temp, base, r->name)) {
        close(fd);
        return 0;
    }
    if (!err && errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
        err = fail_make(r, -errno, r->name);
    if (fd >= 0) {
        session_remove(base, temp, fd);
        close(fd);
    }
    return err;
}

/* ---- open and close ---- */

static int fail_open(const struct session_report *r, int err)
{
    if (err == -ENOTDIR || err == -ELOOP)
        return session_fail(r, -ENOTDIR,
                            "%s/%s: is not a directory, or a link to one: "
                            "remove it, or choose another name with --session",
                            r->dir, r->name);
    return session_fail(r, err, "%s/%s: cannot be opened: %s: choose another directory with --session-dir",
                        r->dir, r->name, strerror(-err));
}

/* The directory of that name; made if there is none. */
static int open_own(const struct session_report *r, int base, const struct session_config *c, int *fd)
{
    struct stat st;
    int err = 0;
    *fd = openat(base, r->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT) {
        err = make_session(r, base, c);
        if (err)
            return err;
        *fd = openat(base, r->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (*fd < 0)
        return errno == ENOENT ? -ESTALE : fail_open(r, -errno);
    err = fstat(*fd, &st) ? session_fail(r, -errno, "%s/%s: %s", r->dir, r->name, strerror(errno))
                          : check_owner(r, "", &st);
    if (err)
        close(*fd);
    return err;
}

/* 0: the directory, which has no settings, has nothing that is not a session's. */
static int check_rest(const struct session_report *r, int fd)
{
    int is = session_is_rest(fd);
    if (is == -ENOENT || is == -ESTALE)
        return -ESTALE;
    if (is < 0)
        return fail_open(r, is);
    return is ? 0
              : session_fail(r, -EEXIST,
                             "%s/%s: is a directory with other files, not a session's, and was left as it is: choose another "
                             "name with --session, or another directory with --session-dir",
                             r->dir, r->name);
}

/* What a session that is over has left goes, and there will be another one: -ESTALE. */
static int pass_over(const struct session_report *r, int base, int fd)
{
    int err = check_rest(r, fd);
    if (err)
        return err;
    err = session_may_go(fd);
    if (err == -EBUSY || err == -ENOTEMPTY) /* a node may be about to take its view back (view.c) */
        return session_fail(r, -ESTALE,
                    "%s/%s: its file settings is missing, and it has nodes or names of files: choose another name with --session",
                            r->dir, r->name);
    if (!err)
        err = session_remove(base, r->name, fd);
    if (err && err != -ENOTEMPTY)
        return session_fail(r, err,
                            "%s/%s: what is left of a session that is over cannot be removed: %s: choose another name with "
                            "--session",
                            r->dir, r->name, strerror(-err));
    return session_fail(r, -ESTALE,
                        "%s/%s: what is left of a session that is over cannot be removed: remove it, or choose another name with "
                        "--session", r->dir, r->name);
}

static int load(const struct session_report *r, int fd, const struct session_config *c)
{
    int err = load_settings(r, fd, c);
    if (!err)
        err = load_secret(r, fd);
    if (!err)
        err = make_subdirs(r, fd); /* an older eddyfs may have made fewer */
    if (!err)
        err = measure_clock(r, fd);
    if (err)
        explicit_bzero(session.secret, sizeof(session.secret));
    return err && !session_has_settings(fd) ? -ESTALE : err;
}

/* -ESTALE: it was over, or ended meanwhile. */
static int open_once(const struct session_report *r, const struct session_config *c, int *fd)
{
    int base, err = open_base(r, &base);
    if (err)
        return err;
    err = open_own(r, base, c, fd);
    if (!err) {
        int is_open = session_is_open(*fd);
        if (is_open < 0)
            err = fail_open(r, is_open);
        else
            err = is_open ? load(r, *fd, c) : pass_over(r, base, *fd);
        if (err)
            close(*fd);
    }
    close(base);
    return err;
}

/* A PFS client may show for some seconds what another node has removed. */
static int open_it(const struct session_report *r, const struct session_config *c, int *fd)
{
    int err = -ESTALE;
    for (int tries = 0; tries < 100 && err == -ESTALE; tries++) {
        if (tries > 2)
            poll(NULL, 0, 100);
        err = open_once(r, c, fd);
    }
    return err;
}

int session_open(const struct session_config *c, char *err_text, size_t err_len)
{
    struct session_report r = {.text = err_text, .len = err_len, .dir = c->dir, .name = c->name};
    if (session.fd >= 0)
        die("session_open: a session is open");
    if (!name_is_plain(c->name))
        return session_fail(&r, -EINVAL,
                            "--session: \"%s\" is not a session's name: "
                            "up to 64 letters, digits, '.', '_', '-', no '.' in front",
                            c->name);
    int fd, err = open_it(&r, c, &fd);
    if (err)
        return err;
    session.fd = fd;
    snprintf(session.name, sizeof(session.name), "%s", c->name);
    session.base = xstrdup(c->dir);
    session.base_is_default = c->dir_is_default;
    return 0;
}

int session_agrees(const struct session_config *c, char *err_text, size_t err_len)
{
    struct session_report r = {.text = err_text, .len = err_len, .dir = c->dir, .name = c->name};
    char *path, *text;
    size_t len;
    if (!name_is_plain(c->name) || asprintf(&path, "%s/%s", c->dir, c->name) < 0)
        return 0; /* session_open says it */
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = 0;
    free(path);
    if (fd >= 0 && !textfile_read(fd, "settings", SETTINGS_MAX, &text, &len)) {
        err = check_settings(&r, text, len, c);
        free(text);
    }
    if (fd >= 0)
        close(fd);
    return err;
}

int session_open_again(const struct session_config *c, char *err_text, size_t err_len)
{
    struct session_report r = {.text = err_text, .len = err_len, .dir = c->dir, .name = c->name};
    int fd, err = open_it(&r, c, &fd);
    if (err)
        return err;
    err = dup3(fd, session.fd, O_CLOEXEC) < 0 ? -errno : 0; /* jobs may have the number */
    close(fd);
    return err;
}

void session_close(void)
{
    if (session.fd >= 0)
        close(session.fd);
    session.fd = -1;
    free(session.base);
    session.base = NULL;
    explicit_bzero(session.secret, sizeof(session.secret));
}
