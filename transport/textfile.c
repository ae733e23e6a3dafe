/* textfile.c - small text files that several nodes share.
 *
 * A file that must have one maker is written under a temporary name in the same directory (some
 * file systems link only there), synced, and then given its name with link(), which fails if the
 * name is taken.  Where there are no hard links, renameat2(RENAME_NOREPLACE) does the same.  There
 * is no third way: open(O_EXCL) under the final name would show others a file that is not complete.
 */
#include "transport/textfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_NAME_MAX 128
#define SWEEP_NS      (3600 * INT64_C(1000000000))
#define CLOCK_TRIES   3
#define CLOCK_NS      INT64_C(5000000) /* a try that takes less than this is the last */

/* ---- reading ---- */

static int read_all(int fd, size_t max, char **text, size_t *len)
{
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EPROTO;
    if (st.st_size < 0 || (uint64_t)st.st_size > max)
        return -EFBIG;
    size_t size = (size_t)st.st_size, n = 0;
    char *buf = xmalloc(size + 1);
    while (n < size) {
        ssize_t got = read(fd, buf + n, size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int err = -errno;
            free(buf);
            return err;
        }
        if (!got)
            break; /* the file became shorter: what is there is parsed */
        n += (size_t)got;
    }
    buf[n] = 0;
    *text = buf;
    *len = n;
    return 0;
}

int textfile_read(int dirfd, const char *name, size_t max, char **text, size_t *len)
{
    /* O_NONBLOCK: a FIFO with this name must not stop us */
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP ? -EPROTO : -errno;
    int err = read_all(fd, max, text, len);
    close(fd);
    return err;
}

int textfile_opendir(int dirfd, const char *name, void **dir)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *dir = fdopendir(fd);
    if (*dir)
        return 0;
    int err = -errno;
    close(fd);
    return err;
}

struct dirent *textfile_readdir(void *dir, int *err)
{
    errno = 0;
    struct dirent *d = readdir(dir);
    if (!d && errno)
        *err = -errno;
    return d;
}

int textfile_is_listed(int dirfd, const char *name)
{
    void *dir;
    int err = textfile_opendir(dirfd, ".", &dir);
    if (err)
        return err;
    bool found = false;
    for (struct dirent *d; !found && (d = textfile_readdir(dir, &err));)
        found = !strcmp(d->d_name, name);
    closedir(dir);
    return err ? err : found;
}

/* ---- writing ---- */

static int write_synced(int fd, const void *text, size_t len)
{
    int err = write_all(fd, text, len);
    return !err && fsync(fd) && errno != EINVAL && errno != EOPNOTSUPP ? -errno : err;
}

/* Writes and syncs a file with a temporary name. */
static int write_temp(int dirfd, const char *temp, int flags, const void *text, size_t len)
{
    int fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -errno;
    int err = write_synced(fd, text, len);
    if (close(fd) && !err)
        err = -errno; /* some file systems say ENOSPC and EDQUOT only here */
    if (err)
        unlinkat(dirfd, temp, 0);
    return err;
}

/* Has temp got a second name?  If a network file system sends link() twice, it returns EEXIST after its
 * own success. */
static bool was_linked(int dirfd, const char *temp)
{
    struct statx st;
    return !statx(dirfd, temp, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_NLINK, &st) &&
           st.stx_nlink == 2;
}

static bool means_unsupported(int err)
{
    return err == EPERM || err == EOPNOTSUPP || err == ENOSYS || err == EINVAL || err == EMLINK;
}

static int publish(int dirfd, const char *temp, const char *name)
{
    if (!linkat(dirfd, temp, dirfd, name, 0))
        return 0;
    if (errno == EEXIST)
        return was_linked(dirfd, temp) ? 0 : -EEXIST;
    if (!means_unsupported(errno))
        return -errno;
    if (!renameat2(dirfd, temp, dirfd, name, RENAME_NOREPLACE))
        return 0;
    return means_unsupported(errno) ? -EOPNOTSUPP : -errno;
}

int textfile_create(int dirfd, const char *name, const void *text, size_t len)
{
    char temp[TEMP_NAME_MAX];
    snprintf(temp, sizeof(temp), TEXTFILE_TEMP "%016" PRIx64, random_u64());
    int err = write_temp(dirfd, temp, O_EXCL, text, len);
    if (err)
        return err;
    err = publish(dirfd, temp, name);
    unlinkat(dirfd, temp, 0); /* ENOENT after a rename */
    return err;
}

int textfile_replace(int dirfd, const char *name, const void *text, size_t len)
{
    char temp[TEMP_NAME_MAX];
    /* the same name each time: a crash leaves one, not many */
    snprintf(temp, sizeof(temp), TEXTFILE_TEMP "%s", name);
    int err = write_temp(dirfd, temp, O_TRUNC, text, len);
    if (!err && renameat(dirfd, temp, dirfd, name)) {
        err = -errno;
        unlinkat(dirfd, temp, 0);
    }
    return err;
}

void textfile_sweep(int dirfd, int64_t pfs_now_ns)
{
    void *dir;
    if (textfile_opendir(dirfd, ".", &dir))
        return;
    int err;
    for (struct dirent *e; (e = textfile_readdir(dir, &err));) {
        int64_t mtime_ns;
        if (!strncmp(e->d_name, TEXTFILE_TEMP, strlen(TEXTFILE_TEMP)) &&
            !textfile_mtime(dirfd, e->d_name, &mtime_ns) && mtime_ns < pfs_now_ns - SWEEP_NS)
            unlinkat(dirfd, e->d_name, 0);
    }
    closedir(dir);
}

/* ---- clocks ---- */

int textfile_mtime(int dirfd, const char *name, int64_t *mtime_ns)
{
    struct statx st;
    if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_MTIME, &st))
        return -errno;
    *mtime_ns = st.stx_mtime.tv_sec * INT64_C(1000000000) + st.stx_mtime.tv_nsec;
    return 0;
}

int textfile_now(int dirfd, int64_t *mtime_ns)
{
    char temp[TEMP_NAME_MAX];
    snprintf(temp, sizeof(temp), TEXTFILE_TEMP "now-%016" PRIx64, random_u64());
    int err = write_temp(dirfd, temp, O_EXCL, "\n", 1);
    if (err)
        return err;
    if (utimensat(dirfd, temp, NULL, AT_SYMLINK_NOFOLLOW))
        err = -errno;
    if (!err)
        err = textfile_mtime(dirfd, temp, mtime_ns);
    unlinkat(dirfd, temp, 0);
    return err;
}

/* When the mtime that was just given to the file is seen, the PFS's clock shows that time or a later one.
 * So this mtime minus our own clock's time at that moment is never too much, however long each part of the
 * try took. */
static int look_at_clock(int dirfd, const char *temp, int fd, int64_t *ahead_ns, int64_t *took_ns)
{
    int64_t begun_ns = real_ns(), mtime_ns;
    int err = write_synced(fd, "\n", 1);
    if (!err)
        err = textfile_mtime(dirfd, temp, &mtime_ns);
    if (err)
        return err;
    int64_t now_ns = real_ns();
    *ahead_ns = mtime_ns - now_ns;
    *took_ns = now_ns - begun_ns;
    return 0;
}

int textfile_clock(int dirfd, int64_t *ahead_ns)
{
    char temp[TEMP_NAME_MAX];
    snprintf(temp, sizeof(temp), TEXTFILE_TEMP "clock-%016" PRIx64, random_u64());
    int fd = openat(dirfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int64_t took_ns = INT64_MAX;
    int err = 0;
    *ahead_ns = INT64_MIN;
    for (unsigned i = 0; !err && i < CLOCK_TRIES && took_ns > CLOCK_NS; i++) {
        int64_t ahead = INT64_MIN;
        err = look_at_clock(dirfd, temp, fd, &ahead, &took_ns);
        *ahead_ns = MAX(*ahead_ns, ahead);
    }
    if (close(fd) && !err)
        err = -errno;
    unlinkat(dirfd, temp, 0);
    return err;
}

/* ---- words ---- */

struct words words_of(const char *text, size_t len)
{
    return (struct words){.p = text, .end = text + len};
}

void words_match(struct words *w, const char *literal)
{
    size_t n = strlen(literal);
    if (w->bad || (size_t)(w->end - w->p) < n || memcmp(w->p, literal, n))
        w->bad = true;
    else
        w->p += n;
}

uint64_t words_u64(struct words *w, uint64_t max)
{
    uint64_t v = 0;
    const char *p = w->p;
    bool bad = w->bad;
    for (; !bad && p < w->end && *p >= '0' && *p <= '9'; p++) {
        bad |= __builtin_mul_overflow(v, 10, &v);
        bad |= __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v);
    }
    w->bad = bad || p == w->p || v > max;
    if (w->bad)
        return 0;
    w->p = p;
    return v;
}

uint64_t words_hex(struct words *w)
{
    uint64_t v = 0;
    if (w->bad || w->end - w->p < 16) {
        w->bad = true;
        return 0;
    }
    for (int i = 0; i < 16; i++) {
        int digit = hex_digit(w->p[i]);
        if (digit < 0) {
            w->bad = true;
            return 0;
        }
        v = v << 4 | (uint64_t)digit;
    }
    w->p += 16;
    return v;
}

void words_word(struct words *w, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    if (w->bad)
        return;
    while (w->p + n < w->end && w->p[n] > ' ' && w->p[n] < 0x7f)
        n++;
    if (!n || n >= size) {
        w->bad = true;
        return;
    }
    memcpy(buf, w->p, n);
    buf[n] = 0;
    w->p += n;
}

void words_end(struct words *w)
{
    if (w->p != w->end)
        w->bad = true;
}

void id_print(uint64_t id, char name[ID_NAME_SIZE])
{
    snprintf(name, ID_NAME_SIZE, "%016" PRIx64, id);
}

bool id_parse(const char *name, uint64_t *id)
{
    struct words w = words_of(name, strlen(name));
    *id = words_hex(&w);
    words_end(&w);
    return !w.bad;
}
