/* base.c - log, sizes, clocks, random bytes, digits, memory that must be there.
 *
 * The log: a line is put together in a buffer on the stack and leaves in one write(2), so that
 * lines of several threads (and, in a file opened for appending, of several daemons) never mix.
 * Control characters in a line become '?': a file name with a newline can not forge a line of its
 * own, and one with an escape sequence tells a terminal nothing.
 */
#include "transport/base.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "transport/printable.h"

struct counters counters;

/* ---- log ---- */

#define LOG_LINE_MAX 8192 /* two paths of 4 KiB do not fit: the line is cut */
#define LOG_NODE_MAX 64

static struct {
    pthread_mutex_t mutex; /* guards node and the change of target; not held during write(2) */
    _Atomic int fd;        /* where lines go now */
    int file_fd;           /* the log file's; stays open, so that no writer meets a closed one */
    char node[LOG_NODE_MAX + 1];
    _Atomic int level;
    FILE *kept; /* log_keep: lines for the file that is not open yet */
    char *kept_text;
    size_t kept_len;
} out = {.mutex = PTHREAD_MUTEX_INITIALIZER,
         .fd = STDERR_FILENO,
         .file_fd = -1,
         .level = LOG_LEVEL_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

int log_level_parse(const char *name, enum log_level *level)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
        if (!strcmp(name, level_names[i])) {
            *level = (enum log_level)i;
            return 0;
        }
    return -EINVAL;
}

/* Called with the mutex.  A second file takes the first one's descriptor number over. */
static int log_open_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0)
        return -errno;
    if (out.file_fd < 0) {
        out.file_fd = fd;
        return 0;
    }
    int err = dup3(fd, out.file_fd, O_CLOEXEC) < 0 ? -errno : 0;
    close(fd);
    return err;
}

static void write_line(int fd, const char *line, size_t len)
{
    ssize_t n;
    do
        n = write(fd, line, len);
    while (n < 0 && errno == EINTR);
    /* An error in writing the log cannot be reported anywhere. */
}

/* Called with the mutex. */
static void end_keeping(bool to_file)
{
    if (!out.kept)
        return;
    fclose(out.kept);
    if (to_file && out.kept_text)
        write_line(out.file_fd, out.kept_text, out.kept_len);
    free(out.kept_text);
    out.kept = NULL;
    out.kept_text = NULL;
}

void log_keep(bool keep)
{
    pthread_mutex_lock(&out.mutex);
    end_keeping(false);
    if (keep)
        out.kept = open_memstream(&out.kept_text, &out.kept_len);
    bool failed = keep && !out.kept;
    pthread_mutex_unlock(&out.mutex);
    if (failed)
        die("out of memory for the log");
}

int log_open(const char *path, enum log_level level, const char *node)
{
    pthread_mutex_lock(&out.mutex);
    int err = path ? log_open_file(path) : 0;
    if (!err) {
        end_keeping(path);
        atomic_store(&out.fd, path ? out.file_fd : STDERR_FILENO);
        atomic_store(&out.level, (int)level);
        snprintf(out.node, sizeof(out.node), "%s", node ? node : "");
    }
    pthread_mutex_unlock(&out.mutex);
    return err;
}

bool log_is_file(void)
{
    return atomic_load(&out.fd) != STDERR_FILENO;
}

static size_t append(char *line, size_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static size_t append(char *line, size_t at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line + at, LOG_LINE_MAX - at, fmt, ap);
    va_end(ap);
    return n < 0 ? at : MIN(at + (size_t)n, LOG_LINE_MAX - 1);
}

static size_t append_time(char *line, size_t at)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    char text[40];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    return append(line, at, "%s.%03ldZ ", text, now.tv_nsec / 1000000);
}

static void keep_line(const char *line, size_t len)
{
    pthread_mutex_lock(&out.mutex);
    if (out.kept)
        fwrite(line, 1, len, out.kept);
    pthread_mutex_unlock(&out.mutex);
}

/* In place; the line ends with a NUL.  What a cut at the line's end has left of a character is no character. */
static void blank_controls(char *line)
{
    for (unsigned char *s = (unsigned char *)line; *s;) {
        size_t n = printable_length(s);
        if (!n)
            *s++ = '?';
        s += n;
    }
}

/* ---- the last warnings and errors ---- */

static struct {
    pthread_mutex_t mutex;
    char *lines[LOG_LAST]; /* a ring: number i is at i % LOG_LAST */
    uint64_t n;
} last = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void keep_last(const char *line, size_t len)
{
    pthread_mutex_lock(&last.mutex);
    char **at = &last.lines[last.n++ % LOG_LAST];
    free(*at);
    *at = strndup(line, len);
    pthread_mutex_unlock(&last.mutex);
}

void log_each_last(void (*fn)(void *arg, const char *line), void *arg, uint64_t *n)
{
    pthread_mutex_lock(&last.mutex);
    *n = last.n;
    for (uint64_t i = last.n - MIN(last.n, (uint64_t)LOG_LAST); i < last.n; i++)
        if (last.lines[i % LOG_LAST])
            fn(arg, last.lines[i % LOG_LAST]);
    pthread_mutex_unlock(&last.mutex);
}

static void log_vwrite(enum log_level level, const char *fmt, va_list ap)
{
    int saved = errno; /* for %m, and callers that look at errno afterwards */
    pthread_mutex_lock(&out.mutex);
    char node[LOG_NODE_MAX + 1];
    memcpy(node, out.node, sizeof(node));
    int fd = atomic_load(&out.fd);
    bool to_file = fd == out.file_fd;
    pthread_mutex_unlock(&out.mutex);

    char line[LOG_LINE_MAX];
    size_t time_len = append_time(line, 0), len = time_len;
    len = append(line, len, node[0] ? "eddyfs[%s]: %s: " : "eddyfs%s: %s: ", node,
                 level_names[level]);
    errno = saved;
    int n = vsnprintf(line + len, sizeof(line) - len, fmt, ap);
    if (n > 0)
        len = MIN(len + (size_t)n, sizeof(line) - 1);
    line[len] = '\0';
    blank_controls(line);
    if (level <= LOG_LEVEL_WARN)
        keep_last(line, len);
    line[len++] = '\n';
    if (to_file)
        time_len = 0;
    else
        keep_line(line, len);
    write_line(fd, line + time_len, len - time_len);
    errno = saved;
}

void log_write(enum log_level level, const char *fmt, ...)
{
    if ((int)level > atomic_load_explicit(&out.level, memory_order_relaxed))
        return;
    va_list ap;
    va_start(ap, fmt);
    log_vwrite(level, fmt, ap);
    va_end(ap);
}

bool log_every(_Atomic uint64_t *last, uint64_t ms)
{
    uint64_t now = boot_ms() + 1; /* never 0, which means "not yet" */
    uint64_t then = atomic_load(last);
    if (then && now - then < ms)
        return false;
    return atomic_compare_exchange_strong(last, &then, now); /* one of several threads wins */
}

void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    log_vwrite(LOG_LEVEL_ERROR, fmt, ap);
    va_end(ap);
    abort();
}

/* ---- sizes ---- */

int size_parse(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    uint64_t n = 0;
    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    bool over = false;
    for (; isdigit((unsigned char)*text); text++) {
        over |= __builtin_mul_overflow(n, 10, &n);
        over |= __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n);
    }
    if (*text) {
        const char *unit = strchr(units, toupper((unsigned char)*text));
        if (!unit || text[1])
            return -EINVAL;
        over |= __builtin_mul_overflow(n, (uint64_t)1 << (10 * (unit - units + 1)), &n);
    }
    if (over)
        return -ERANGE;
    *bytes = n;
    return 0;
}

char *size_format(uint64_t bytes, char *buf, size_t len)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double n = (double)bytes;
    size_t unit = 0;
    while (n >= 1023.95 && unit + 1 < ARRAY_LEN(units)) { /* else "%.1f" says 1024.0 */
        n /= 1024;
        unit++;
    }
    if (unit)
        snprintf(buf, len, "%.1f %s", n, units[unit]);
    else
        snprintf(buf, len, "%u B", (unsigned)bytes);
    return buf;
}

/* ---- clocks ---- */

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t boot_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

uint64_t boot_ms(void)
{
    return boot_ns() / 1000000;
}

int64_t real_ns(void)
{
    return (int64_t)clock_ns(CLOCK_REALTIME);
}

/* ---- random bytes ---- */

int random_bytes(void *buf, size_t len)
{
    uint8_t *p = buf;
    while (len) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

uint64_t random_u64(void)
{
    uint64_t n;
    int err = random_bytes(&n, sizeof(n));
    if (err)
        die("no random numbers from the system: %s", strerror(-err));
    return n;
}

static _Atomic uint64_t unlike_state;

static void unlike_start(void)
{
    atomic_store(&unlike_state, random_u64());
}

/* splitmix64 (Steele, Lea, Flood 2014): its steps differ in each state, its mixing loses none. */
uint64_t unlike_u64(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, unlike_start);
    uint64_t n = atomic_fetch_add_explicit(&unlike_state, 0x9e3779b97f4a7c15, memory_order_relaxed);
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
    n = (n ^ n >> 27) * 0x94d049bb133111eb;
    return n ^ n >> 31;
}

/* ---- names, digits, writing ---- */

bool name_is_plain(const char *s)
{
    size_t len = strlen(s);
    if (len < 1 || len > 64 || s[0] == '.')
        return false;
    return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

int write_all(int fd, const void *text, size_t len)
{
    const char *p = text;
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* ---- memory ---- */

static void *must(void *p, size_t n)
{
    if (!p && n)
        die("out of memory: %zu bytes", n);
    return p;
}

void *xmalloc(size_t n)
{
    return must(malloc(n ? n : 1), n);
}

void *xaligned(size_t alignment, size_t n)
{
    return must(aligned_alloc(alignment, n), n);
}

/* glibc's malloc has small blocks ready for each thread.  Its calloc, before 2.41, does not use these, and
 * takes a lock. */
#define SMALL 1024

void *xcalloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        die("out of memory: %zu times %zu bytes", n, size);
    if (bytes > SMALL)
        return must(calloc(1, bytes), bytes);
    void *p = xmalloc(bytes);
    memset(p, 0, bytes);
    return p;
}

void *xrealloc(void *p, size_t n)
{
    return must(realloc(p, n ? n : 1), n);
}

char *xstrdup(const char *s)
{
    return must(strdup(s), strlen(s) + 1);
}
