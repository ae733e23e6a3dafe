/* dirtylist.c - dirty/: the names of unflushed files, for `eddy check` when all nodes that have such
 * files are dead.
 *
 * There is one file per node, dirty/ID, replaced by rename.  It has a line per file: the fid in 32
 * hexadecimal digits; its mtime and ctime in ns with 16 digits each, if they are known; a blank; the path
 * relative to the PFS directory, with \n for a newline and \\ for a backslash:
 *
 *     9a1be0a7734c0d1200c4f2e91d0a7b35:187a3f01c2d5e600:187a3f01c2d5e600 out/step-0001.h5
 *
 * The reader may be the tool, which is in no session.  It uses what it can read of each session
 * below a directory, and skips everything else.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/marks.h"
#include "transport/session.h"
#include "transport/textfile.h"
#include "transport/view.h"

#define DIRTY_PATH_MAX PATH_BYTES_MAX
#define DIRTY_LINE_MAX (32 + 2 * 17 + 1 + 2 * DIRTY_PATH_MAX + 1)
#define NODE_FILE_MAX  4096

/* ---- writing ---- */

/* Tens of thousands of lines are written again and again while an application makes small files.  So lines
 * are written in pieces, and numbers by hand: printf and putc would take most of that time. */
static void print_hex(FILE *f, uint64_t n)
{
    char hex[16];
    for (unsigned i = sizeof(hex); i; n >>= 4)
        hex[--i] = "0123456789abcdef"[n & 15];
    fwrite(hex, 1, sizeof(hex), f);
}

static void print_path(FILE *f, const char *path)
{
    for (;;) {
        size_t plain = strcspn(path, "\n\\");
        fwrite(path, 1, plain, f);
        path += plain;
        if (!*path)
            return;
        fputs(*path == '\n' ? "\\n" : "\\\\", f);
        path++;
    }
}

static void print_line(FILE *f, const struct dirty_name *name)
{
    print_hex(f, name->fid.hi);
    print_hex(f, name->fid.lo);
    if (name->mtime_ns || name->ctime_ns) {
        putc(':', f);
        print_hex(f, (uint64_t)name->mtime_ns);
        putc(':', f);
        print_hex(f, (uint64_t)name->ctime_ns);
    }
    putc(' ', f);
    print_path(f, name->path);
    putc('\n', f);
}

static char *print_list(const struct dirty_name *names, size_t n, size_t *len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    if (!f)
        die("out of memory for the dirty list");
    for (size_t i = 0; i < n; i++)
        print_line(f, &names[i]);
    if (fclose(f))
        die("out of memory for the dirty list");
    return text;
}

int session_write_dirty(uint64_t id, const struct dirty_name *names, size_t n)
{
    char name[ID_NAME_SIZE];
    int fd = openat(session_dirfd(), "dirty", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = 0;
    id_print(id, name);
    if (n) {
        size_t len;
        char *text = print_list(names, n, &len);
        err = textfile_replace(fd, name, text, len);
        free(text);
    } else if (unlinkat(fd, name, 0) && errno != ENOENT) {
        err = -errno;
    }
    close(fd);
    return err;
}

/* ---- reading ---- */

struct each {
    int (*cb)(void *arg, const char *session, uint64_t node, const char *node_name, struct fid fid,
              const char *path);
    int (*cb_of)(void *arg, const struct dirty_name *name); /* or this one, of `only` */
    void *arg;
    uint64_t only;
    const char *session;
    uint64_t node;
    char node_name[NODE_NAME_MAX + 1];
};

/* Removes a path's escapes in place, and NUL-terminates it; false if print_path cannot have made it. */
static bool unescape(char *path)
{
    char *to = path;
    for (const char *p = path; *p; p++) {
        if (*p != '\\') {
            *to++ = *p;
            continue;
        }
        p++;
        if (*p != 'n' && *p != '\\')
            return false;
        *to++ = *p == 'n' ? '\n' : '\\';
    }
    *to = 0;
    return to > path && to - path <= DIRTY_PATH_MAX;
}

/* One line without its newline. */
static int each_line(struct each *e, char *line, size_t len)
{
    struct words w = words_of(line, len);
    struct dirty_name name = {.fid.hi = words_hex(&w)};
    name.fid.lo = words_hex(&w);
    if (len > 32 && line[32] == ':') {
        words_match(&w, ":");
        name.mtime_ns = (int64_t)words_hex(&w);
        words_match(&w, ":");
        name.ctime_ns = (int64_t)words_hex(&w);
    }
    words_match(&w, " ");
    name.path = line + (w.p - line);
    if (w.bad || memchr(w.p, 0, (size_t)(w.end - w.p)) || !unescape(name.path))
        return 0;
    return e->cb_of ? e->cb_of(e->arg, &name)
                    : e->cb(e->arg, e->session, e->node, e->node_name, name.fid, name.path);
}

/* The rest of a line that is too long for a path. */
static void skip_line(FILE *f)
{
    for (int c; (c = getc(f)) != EOF && c != '\n';)
        ;
}

/* A line without a newline was cut off; it is skipped. */
static int each_in_file(struct each *e, FILE *f)
{
    char *line = xmalloc(DIRTY_LINE_MAX + 1);
    int err = 0;
    size_t len = 0;
    for (int c; !err && (c = getc(f)) != EOF;) {
        if (c == '\n') {
            line[len] = 0;
            err = each_line(e, line, len);
            len = 0;
        } else if (len < DIRTY_LINE_MAX) {
            line[len++] = (char)c;
        } else {
            skip_line(f);
            len = 0;
        }
    }
    free(line);
    return !err && ferror(f) ? -EIO : err;
}

/* 0 and NULL: there is none. */
static int open_list(int dirfd, const char *name, FILE **out)
{
    struct stat st;
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    *out = NULL;
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENXIO ? 0 : -errno;
    int err = fstat(fd, &st) ? -errno : 0;
    if (!err && S_ISREG(st.st_mode) && !(*out = fdopen(fd, "r")))
        err = -errno;
    if (!*out)
        close(fd);
    return err;
}

static void find_node_name(struct each *e, int session_fd)
{
    char path[8 + ID_NAME_SIZE] = "nodes/", *text;
    struct member m;
    size_t len;
    id_print(e->node, path + strlen(path));
    strcpy(e->node_name, "?");
    if (textfile_read(session_fd, path, NODE_FILE_MAX, &text, &len))
        return;
    if (!node_parse(text, len, &m) && m.id == e->node)
        memcpy(e->node_name, m.name, sizeof(e->node_name));
    free(text);
}

static int each_in_list(struct each *e, int dirfd, const char *name, int session_fd)
{
    FILE *f;
    int err = open_list(dirfd, name, &f);
    if (!f)
        return err;
    find_node_name(e, session_fd);
    err = each_in_file(e, f);
    fclose(f);
    return err;
}

int session_each_dirty_here(uint64_t node,
                            int (*cb)(void *arg, const char *session, uint64_t node,
                                      const char *node_name, struct fid fid, const char *path),
                            void *arg)
{
    char name[ID_NAME_SIZE];
    struct each e = {.cb = cb, .arg = arg, .session = session_name(), .node = node};
    int fd = openat(session_dirfd(), "dirty", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    id_print(node, name);
    int err = each_in_list(&e, fd, name, session_dirfd());
    close(fd);
    return err;
}

static int each_in_session(void *arg, const char *session, int session_fd)
{
    struct each *e = arg;
    void *dir;
    int err = textfile_opendir(session_fd, "dirty", &dir);
    if (err == -ENOENT || err == -ENOTDIR || err == -ELOOP)
        return 0; /* not a session */
    if (err)
        return err;
    e->session = session;
    for (struct dirent *d; !err && (d = textfile_readdir(dir, &err));)
        if (id_parse(d->d_name, &e->node) && (!e->cb_of || e->node == e->only))
            err = each_in_list(e, dirfd(dir), d->d_name, session_fd);
    closedir(dir);
    return err;
}

int session_each(const char *path, int (*cb)(void *arg, const char *session, int fd), void *arg)
{
    DIR *dir = opendir(path);
    if (!dir)
        return -errno;
    int err = 0;
    for (struct dirent *d; !err && (d = textfile_readdir(dir, &err));) {
        if (!name_is_plain(d->d_name))
            continue;
        int fd = openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) { /* no directory, or another user's */
            bool passed = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES;
            err = passed ? 0 : -errno;
            continue;
        }
        err = cb(arg, d->d_name, fd);
        close(fd);
    }
    closedir(dir);
    return err;
}

int session_each_dirty(const char *path,
                       int (*cb)(void *arg, const char *session, uint64_t node,
                                 const char *node_name, struct fid fid, const char *path),
                       void *arg)
{
    struct each e = {.cb = cb, .arg = arg};
    return session_each(path, each_in_session, &e);
}

int session_each_dirty_of(const char *path, uint64_t node,
                          int (*cb)(void *arg, const struct dirty_name *name), void *arg)
{
    struct each e = {.cb_of = cb, .arg = arg, .only = node};
    return session_each(path, each_in_session, &e);
}
