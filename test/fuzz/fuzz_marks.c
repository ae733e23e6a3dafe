/* fuzz_marks.c - anything in forgotten/: the first byte says what lies there (a file, a directory, a
 * FIFO, a symbolic link), its name ends with the first newline, the rest is its text.  It is a mark,
 * which written again gives the same file, or it is left out; nothing else may happen. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/marks.h"
#include "transport/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char base[] = "/tmp/eddy-fuzz-marks-XXXXXX";
static int marks_fd;

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void remove_base(void)
{
    static const char *const rest[] = {"s/settings", "s/secret", "s/probes",    "s/nodes",
                                       "s/views",    "s/dirty",  "s/forgotten", "s/target",
                                       "s",          "."};
    char path[128];
    session_close();
    for (size_t i = 0; i + 1 < ARRAY_LEN(rest); i++) {
        snprintf(path, sizeof(path), "%s/%s", base, rest[i]);
        remove(path);
    }
    rmdir(base);
}

static void begin(void)
{
    static const struct session_config config = {.dir = base, .name = "s", .chunk_size = 1 << 20};
    char err[512];
    log_open("/dev/null", LOG_LEVEL_ERROR, "fuzz");
    must(mkdtemp(base));
    atexit(remove_base);
    must(!session_open(&config, err, sizeof(err)));
    marks_fd = openat(session_dirfd(), "forgotten", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(marks_fd >= 0);
}

static bool write_file(int dirfd, const char *name, const void *text, size_t len)
{
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        return false; /* no name that a directory takes */
    must(write(fd, text, len) == (ssize_t)len);
    close(fd);
    return true;
}

enum { A_FILE, A_DIRECTORY, A_FIFO, A_LINK, KINDS };

static bool put(int kind, const char *name, const void *text, size_t len)
{
    switch (kind) {
    case A_DIRECTORY:
        return !mkdirat(marks_fd, name, 0700);
    case A_FIFO:
        return !mkfifoat(marks_fd, name, 0600);
    case A_LINK: /* to a text that would be a mark */
        must(write_file(session_dirfd(), "target", text, len));
        return !symlinkat("../target", marks_fd, name);
    default:
        return write_file(marks_fd, name, text, len);
    }
}

/* What an earlier input left would be found by later ones. */
static void check_empty(void)
{
    int fd = openat(marks_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(fd);
    must(dir);
    for (struct dirent *d; (d = readdir(dir));)
        must(d->d_name[0] == '.');
    closedir(dir);
}

static bool same_mark(const struct mark *a, const struct mark *b)
{
    return fid_eq(a->fid, b->fid) && a->node == b->node && a->incarnation == b->incarnation &&
           a->number == b->number;
}

static void check_covers(const struct mark *m)
{
    struct fid other = {.hi = m->fid.hi + 1, .lo = m->fid.lo};
    must(mark_covers(m, m->fid, m->incarnation, m->number));
    must(mark_covers(m, other, m->incarnation, m->number) == fid_is_zero(m->fid));
    must(!m->incarnation || mark_covers(m, m->fid, m->incarnation - 1, UINT64_MAX));
    must(m->number == UINT64_MAX || !mark_covers(m, m->fid, m->incarnation, m->number + 1));
    must(m->incarnation == UINT64_MAX || !mark_covers(m, m->fid, m->incarnation + 1, 0));
}

/* Its own node finds it as well, another does not; and it can be written again and removed. */
static void check_mark(const struct mark *m)
{
    struct mark *list;
    uint32_t n;
    check_covers(m);
    must(!session_write_mark(m));
    must(!session_read_marks(m->node, &list, &n) && n == 1 && same_mark(list, m));
    free(list);
    must(!session_read_marks(m->node ^ 1 ? m->node ^ 1 : 2, &list, &n) && !n && !list);
    must(!session_remove_mark(m));
    must(!session_read_marks(0, &list, &n) && !n && !list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool begun;
    const uint8_t *end = size ? memchr(data + 1, '\n', size - 1) : NULL;
    char name[NAME_MAX + 1] = "";
    struct mark *list;
    uint32_t n;
    if (!begun)
        begin();
    begun = true;
    if (!end || end - data - 1 > NAME_MAX)
        return 0;
    memcpy(name, data + 1, (size_t)(end - data - 1));
    if (!name[0] || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
        return 0;
    int kind = data[0] % KINDS;
    if (!put(kind, name, end + 1, size - (size_t)(end + 1 - data)))
        return 0;
    must(!session_read_marks(0, &list, &n) && n <= 1);
    must(!n || kind == A_FILE);
    if (n)
        check_mark(list);
    free(list);
    if (!n) /* else it was removed as a mark */
        must(!unlinkat(marks_fd, name, kind == A_DIRECTORY ? AT_REMOVEDIR : 0));
    check_empty();
    return 0;
}
