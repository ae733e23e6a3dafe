/* moves.c - the log of moves: one file for each entry, which one node makes and all read.
 *
 *     moves/00000017    eddyfs move 2
 *                       fid 9a1be0a7734c0d12 00c4f2e91d0a7b35
 *                       exchange 0
 *                       last 0
 *                       from 6 a/b/c1
 *                       to 4 a/c1
 *                       open 0c4f2e91d0a7b359 00000000000001a4 (a node, an incarnation: only of a file that is open)
 *
 * The number before a path is its length in bytes: a path may have any byte but NUL.  An entry is made under
 * another name, then link()ed under the next number: so entries are complete, and each number is given once.
 */
#include "transport/moves.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/marks.h"
#include "transport/session.h"
#include "transport/textfile.h"

#define MOVE_MAX  (2 * PATH_BYTES_MAX + 256)
#define NAME_SIZE 24
#define TRIES     1000 /* numbers that other nodes took first */
#define YOUNG_NS  (3600 * INT64_C(1000000000))

/* ---- the text ---- */

char *move_print(const struct session_move *m, size_t *len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    if (!f)
        die("out of memory for the log of moves");
    fprintf(f,
            "eddyfs move 2\nfid %016" PRIx64 " %016" PRIx64
            "\nexchange %d\nlast %d\nfrom %zu %s\nto %zu %s\n",
            m->fid.hi, m->fid.lo, m->exchange, m->last, strlen(m->from), m->from, strlen(m->to), m->to);
    if (m->open_at)
        fprintf(f, "open %016" PRIx64 " %016" PRIx64 "\n", m->open_at, m->open_inc);
    if (fclose(f))
        die("out of memory for the log of moves");
    return text;
}

/* Malloc'd; NULL after a mistake. */
static char *take_path(struct words *w)
{
    size_t n = (size_t)words_u64(w, PATH_BYTES_MAX);
    words_match(w, " ");
    if (w->bad || (size_t)(w->end - w->p) < n || memchr(w->p, 0, n)) {
        w->bad = true;
        return NULL;
    }
    char *path = xmalloc(n + 1);
    memcpy(path, w->p, n);
    path[n] = 0;
    w->p += n;
    words_match(w, "\n");
    return path;
}

static void take_open(struct words *w, struct session_move *out)
{
    words_match(w, "open ");
    out->open_at = words_hex(w);
    words_match(w, " ");
    out->open_inc = words_hex(w);
    words_match(w, "\n");
}

int move_parse(const char *text, size_t len, struct session_move *out)
{
    struct words w = words_of(text, len);
    *out = (struct session_move){0};
    words_match(&w, "eddyfs move 2\nfid ");
    out->fid.hi = words_hex(&w);
    words_match(&w, " ");
    out->fid.lo = words_hex(&w);
    words_match(&w, "\nexchange ");
    out->exchange = words_u64(&w, 1);
    words_match(&w, "\nlast ");
    out->last = words_u64(&w, 1);
    words_match(&w, "\nfrom ");
    out->from = take_path(&w);
    words_match(&w, "to ");
    out->to = take_path(&w);
    bool open = !w.bad && w.p < w.end;
    if (open)
        take_open(&w, out);
    words_end(&w);
    if (!w.bad && *out->from && !(out->last && *out->to) && (!open || (out->last && out->open_at)))
        return 0;
    move_free(out);
    return -EPROTO;
}

void move_free(struct session_move *m)
{
    free(m->from);
    free(m->to);
    m->from = m->to = NULL;
}

/* ---- the directory ---- */

static int open_dir(void)
{
    int fd = openat(session_dirfd(), "moves", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static void name_of(uint64_t number, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%08" PRIu64, number);
}

/* 0: no entry's name. */
static uint64_t number_of(const char *name)
{
    struct words w = words_of(name, strlen(name));
    uint64_t n = words_u64(&w, UINT64_MAX - 1);
    words_end(&w);
    return w.bad ? 0 : n;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The numbers above `after`, in order, malloc'd.  The directory is read: a look-up may be answered from a
 * cache. */
static int list(int fd, uint64_t after, uint64_t **out, size_t *n)
{
    void *dir;
    *out = NULL;
    *n = 0;
    int err = textfile_opendir(fd, ".", &dir);
    if (err)
        return err;
    size_t room = 0;
    for (struct dirent *d; (d = textfile_readdir(dir, &err));) {
        uint64_t number = number_of(d->d_name);
        if (number <= after)
            continue;
        if (*n == room)
            *out = xrealloc(*out, (room = room * 2 + 16) * sizeof(**out));
        (*out)[(*n)++] = number;
    }
    closedir(dir);
    if (*n)
        qsort(*out, *n, sizeof(**out), by_number);
    return err;
}

static int newest(int fd, uint64_t *number)
{
    uint64_t *all;
    size_t n;
    int err = list(fd, 0, &all, &n);
    *number = n ? all[n - 1] : 0;
    free(all);
    return err;
}

int session_write_move(struct session_move *m)
{
    int fd = open_dir();
    if (fd < 0)
        return fd;
    char name[NAME_SIZE];
    size_t len;
    char *text = move_print(m, &len);
    int err = newest(fd, &m->number);
    for (unsigned tries = 0; !err && tries < TRIES; tries++) {
        name_of(++m->number, name);
        err = textfile_create(fd, name, text, len);
        if (err != -EEXIST)
            break;
        err = 0;
    }
    free(text);
    close(fd);
    return err;
}

/* It stays, empty, until it is trimmed: nodes that have read it read what comes after it, and so the next entry needs another
 * number. */
int session_drop_move(uint64_t number)
{
    int fd = open_dir();
    if (fd < 0)
        return fd;
    char name[NAME_SIZE];
    name_of(number, name);
    int entry = openat(fd, name, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
    int err = entry < 0 && errno != ENOENT ? -errno : 0;
    if (entry >= 0)
        close(entry);
    close(fd);
    return err;
}

/* An entry that was dropped meanwhile, or is malformed, is left out. */
static int each(int fd, uint64_t number, int (*cb)(void *arg, const struct session_move *m), void *arg)
{
    char name[NAME_SIZE], *text;
    size_t len;
    struct session_move m;
    name_of(number, name);
    int err = textfile_read(fd, name, MOVE_MAX, &text, &len);
    if (err == -ENOENT || err == -EPROTO || err == -EFBIG)
        return 0;
    if (err)
        return err;
    if (!move_parse(text, len, &m)) {
        m.number = number;
        err = cb(arg, &m);
        move_free(&m);
    }
    free(text);
    return err;
}

int session_each_move(uint64_t after, int (*cb)(void *arg, const struct session_move *m), void *arg)
{
    int fd = open_dir();
    if (fd < 0)
        return fd;
    uint64_t *all;
    size_t n;
    int err = list(fd, after, &all, &n);
    for (size_t i = 0; !err && i < n; i++)
        err = each(fd, all[i], cb, arg);
    free(all);
    close(fd);
    return err;
}

/* ---- trimming ---- */

/* Entries older than this are not needed: an hour ago, or when the oldest list of dirty files was written. */
static int needed_since(int64_t *ns)
{
    void *dir;
    int64_t now = real_ns() + session_clock_offset_ns();
    *ns = now - YOUNG_NS;
    int err = textfile_opendir(session_dirfd(), "dirty", &dir);
    if (err)
        return err;
    for (struct dirent *d; (d = textfile_readdir(dir, &err));) {
        uint64_t id;
        int64_t mtime_ns;
        if (id_parse(d->d_name, &id) && !textfile_mtime(dirfd(dir), d->d_name, &mtime_ns))
            *ns = MIN(*ns, mtime_ns - YOUNG_NS);
    }
    closedir(dir);
    return err;
}

int session_trim_moves(void)
{
    int64_t since, mtime_ns;
    uint64_t *all = NULL;
    size_t n = 0;
    int fd = open_dir();
    if (fd < 0)
        return fd;
    int err = needed_since(&since);
    if (!err)
        err = list(fd, 0, &all, &n);
    for (size_t i = 0; !err && i + 1 < n; i++) { /* the newest keeps the numbers going up */
        char name[NAME_SIZE];
        name_of(all[i], name);
        if (textfile_mtime(fd, name, &mtime_ns) || mtime_ns >= since)
            break;
        if (unlinkat(fd, name, 0) && errno != ENOENT)
            err = -errno;
    }
    free(all);
    close(fd);
    return err;
}
