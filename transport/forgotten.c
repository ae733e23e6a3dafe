/* forgotten.c - forgotten/: what an operator has forgotten (`eddy forget`, docs/protocol.md, rule
 * 17).  A mark is a file FID.NODE, or ALL.NODE for all files of a node:
 *
 *     forgotten/9a1be0a7734c0d1200c4f2e91d0a7b35.00c4f2e91d0a7b35
 *     eddyfs forgotten 1
 *     incarnation 3
 *     number 17
 *
 * The node's claims on the file are void up to this request; with ALL, up to any request of this incarnation.
 * The home makes marks.  The node removes its own marks when it has put the files' data aside.
 */
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

#define MARK_NAME_MAX 64
#define MARK_FILE_MAX 256

static void print_name(const struct mark *m, char name[MARK_NAME_MAX])
{
    if (fid_is_zero(m->fid))
        snprintf(name, MARK_NAME_MAX, "ALL.%016" PRIx64, m->node);
    else
        snprintf(name, MARK_NAME_MAX, "%016" PRIx64 "%016" PRIx64 ".%016" PRIx64, m->fid.hi,
                 m->fid.lo, m->node);
}

static bool parse_name(const char *name, struct mark *m)
{
    struct words w = words_of(name, strlen(name));
    *m = (struct mark){0};
    if (!strncmp(name, "ALL", 3)) {
        words_match(&w, "ALL");
    } else {
        m->fid.hi = words_hex(&w);
        m->fid.lo = words_hex(&w);
        w.bad |= fid_is_zero(m->fid);
    }
    words_match(&w, ".");
    m->node = words_hex(&w);
    words_end(&w);
    return !w.bad;
}

static bool parse_mark(const char *text, size_t len, struct mark *m)
{
    struct words w = words_of(text, len);
    words_match(&w, "eddyfs forgotten 1\nincarnation ");
    m->incarnation = words_u64(&w, UINT64_MAX);
    words_match(&w, "\nnumber ");
    m->number = words_u64(&w, UINT64_MAX);
    words_match(&w, "\n");
    words_end(&w);
    return !w.bad;
}

static int open_marks(void)
{
    int fd = openat(session_dirfd(), "forgotten", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int session_write_mark(const struct mark *m)
{
    char name[MARK_NAME_MAX], text[MARK_FILE_MAX];
    int fd = open_marks();
    if (fd < 0)
        return fd;
    print_name(m, name);
    int n = snprintf(text, sizeof(text),
                     "eddyfs forgotten 1\nincarnation %" PRIu64 "\nnumber %" PRIu64 "\n",
                     m->incarnation, m->number);
    int err = textfile_replace(fd, name, text, (size_t)n);
    close(fd);
    return err;
}

int session_remove_mark(const struct mark *m)
{
    char name[MARK_NAME_MAX];
    int fd = open_marks();
    if (fd < 0)
        return fd;
    print_name(m, name);
    int err = unlinkat(fd, name, 0) && errno != ENOENT ? -errno : 0;
    close(fd);
    return err;
}

static bool has_mark(const struct mark *list, uint32_t n, const struct mark *m)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i].node == m->node && fid_eq(list[i].fid, m->fid))
            return true;
    return false;
}

/* -EPROTO: it is no mark.  A file that is no mark must not prevent reading the others. */
static int read_mark(int dirfd, const char *name, struct mark *m)
{
    char *text = NULL;
    size_t len;
    int err = textfile_read(dirfd, name, MARK_FILE_MAX, &text, &len);
    if (err == -EFBIG || err == -ENXIO || (!err && !parse_mark(text, len, m)))
        err = -EPROTO;
    if (err == -EPROTO)
        log_warn("session directory: forgotten/%s is not a mark of eddy forget: ignored", name);
    free(text);
    return err;
}

int session_read_marks(uint64_t node, struct mark **out, uint32_t *n)
{
    void *dir;
    *out = NULL;
    *n = 0;
    if (session_dirfd() < 0) /* without a session there are no marks */
        return 0;
    int err = textfile_opendir(session_dirfd(), "forgotten", &dir);
    if (err)
        return err;
    for (struct dirent *d; !err && (d = textfile_readdir(dir, &err));) {
        struct mark m;
        if (!parse_name(d->d_name, &m) || (node && m.node != node) || has_mark(*out, *n, &m))
            continue;
        int e = read_mark(dirfd(dir), d->d_name, &m);
        if (e && e != -ENOENT && e != -EPROTO) {
            err = e;
        } else if (!e) {
            *out = xrealloc(*out, (*n + 1) * sizeof(**out));
            (*out)[(*n)++] = m;
        }
    }
    closedir(dir);
    if (err) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return err;
}

bool mark_covers(const struct mark *m, struct fid fid, uint64_t incarnation, uint64_t number)
{
    if (!fid_is_zero(m->fid) && !fid_eq(m->fid, fid))
        return false;
    return incarnation != m->incarnation ? incarnation < m->incarnation : number <= m->number;
}
