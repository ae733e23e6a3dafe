/* fsrand - random operations on one file, each done to a plain shadow file too, and compared byte
 * by byte.
 *
 *     fsrand [--seed N] [--ops N] [--max-size BYTES] FILE SHADOW [FILE_ON_ANOTHER_NODE]
 *
 * With a third file the turns change between its two names at each reopening, with a close and an
 * open between (close-to-open).
 *
 * Reads, writes, appends, O_DIRECT, truncations, mapped reads and writes, holes, SEEK_DATA, fsync,
 * reopening.  The seed is printed first, so that a failure can be repeated; the last operations are
 * printed with it.  Exit codes: 0 all same, 1 a difference or an error, 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH_MAX (256u << 10) /* of one operation */
#define DIRECT     4096u        /* alignment of O_DIRECT */
#define HISTORY    40

static const char *path, *other; /* other: the same file through another mount, or NULL */
static int fd, shadow;           /* both open for reading and writing */
static uint64_t state, seed, ops = 100000, max_size = 4u << 20;
static char *got, *expected; /* LENGTH_MAX bytes each, aligned for O_DIRECT */
static char history[HISTORY][96];
static uint64_t now;

/* ---- saying ---- */

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(history[now % HISTORY], sizeof(history[0]), fmt, ap);
    va_end(ap);
}

static void fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void fail(const char *fmt, ...)
{
    va_list ap;
    uint64_t first = now >= HISTORY ? now - HISTORY + 1 : 0;
    for (uint64_t n = first; n <= now; n++)
        printf("  %llu: %s\n", (unsigned long long)n, history[n % HISTORY]);
    printf("fsrand: operation %llu: ", (unsigned long long)now);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf(" (again with --seed %llu)\n", (unsigned long long)seed);
    exit(1);
}

static void must(bool ok, const char *what)
{
    if (!ok)
        fail("%s: %s", what, strerror(errno));
}

/* ---- random numbers: splitmix64 ---- */

static uint64_t next(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t below(uint64_t n)
{
    return n ? next() % n : 0;
}

/* Often beside a page's or a piece's border, where mistakes live. */
static uint64_t offset_below(uint64_t end)
{
    static const uint64_t units[] = {4096, 65536, 1u << 20};
    uint64_t off = below(end);
    if (next() % 2) {
        uint64_t unit = units[below(3)];
        off = off / unit * unit + below(3);
        off = off ? off - 1 : 0;
    }
    return off < end ? off : end ? end - 1 : 0;
}

static size_t length_up_to(uint64_t max)
{
    uint64_t cap = next() % 3 ? 9000 : LENGTH_MAX;
    cap = cap < max ? cap : max;
    return cap ? (size_t)(1 + below(cap)) : 0;
}

static void fill(char *buf, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = (char)next();
}

static uint64_t size_of(int of)
{
    struct stat st;
    must(!fstat(of, &st), "fstat");
    return (uint64_t)st.st_size;
}

/* ---- comparing ---- */

static void compare(const char *a, const char *b, size_t len, uint64_t off, const char *what)
{
    if (!memcmp(a, b, len))
        return;
    size_t i = 0;
    while (a[i] == b[i])
        i++;
    fail("%s differs at %llu: has %02x, expected %02x", what, (unsigned long long)(off + i),
         (unsigned char)a[i], (unsigned char)b[i]);
}

static void read_same(uint64_t off, size_t len, const char *what)
{
    ssize_t a = pread(fd, got, len, (off_t)off), b = pread(shadow, expected, len, (off_t)off);
    must(a >= 0 && b >= 0, what);
    if (a != b)
        fail("%s at %llu of %zu bytes gave %zd, expected %zd", what, (unsigned long long)off, len,
             a, b);
    compare(got, expected, (size_t)a, off, what);
}

static void same_size(void)
{
    uint64_t a = size_of(fd), b = size_of(shadow);
    if (a != b)
        fail("the size is %llu, expected %llu", (unsigned long long)a, (unsigned long long)b);
}

static void all_same(void)
{
    same_size();
    for (uint64_t off = 0, size = size_of(shadow); off < size; off += LENGTH_MAX)
        read_same(off, LENGTH_MAX, "the file");
}

/* ---- operations ---- */

static void op_read(void)
{
    uint64_t off = offset_below(size_of(shadow) + 5000);
    size_t len = length_up_to(LENGTH_MAX);
    note("read %llu +%zu", (unsigned long long)off, len);
    read_same(off, len, "read");
}

static void write_both(uint64_t off, size_t len)
{
    fill(got, len);
    must(pwrite(fd, got, len, (off_t)off) == (ssize_t)len, "write");
    must(pwrite(shadow, got, len, (off_t)off) == (ssize_t)len, "write of the shadow");
}

static void op_write(void)
{
    uint64_t off = offset_below(max_size);
    size_t len = length_up_to(max_size - off);
    note("write %llu +%zu", (unsigned long long)off, len);
    write_both(off, len);
}

static void op_append(void)
{
    uint64_t end = size_of(shadow);
    size_t len = length_up_to(max_size > end ? max_size - end : 0);
    note("append +%zu at %llu", len, (unsigned long long)end);
    if (!len)
        return;
    int to = open(path, O_WRONLY | O_APPEND);
    must(to >= 0, "open to append");
    fill(got, len);
    must(write(to, got, len) == (ssize_t)len, "append");
    must(!close(to), "close after append");
    must(pwrite(shadow, got, len, (off_t)end) == (ssize_t)len, "append to the shadow");
}

static void op_truncate(void)
{
    uint64_t size = offset_below(max_size);
    bool by_path = next() % 2;
    note("truncate to %llu%s", (unsigned long long)size, by_path ? " by path" : "");
    must(!(by_path ? truncate(path, (off_t)size) : ftruncate(fd, (off_t)size)), "truncate");
    must(!ftruncate(shadow, (off_t)size), "truncate of the shadow");
}

static void op_punch(void)
{
    uint64_t off = offset_below(size_of(shadow));
    size_t len = length_up_to(LENGTH_MAX);
    const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    note("punch %llu +%zu", (unsigned long long)off, len);
    must(!fallocate(fd, punch, (off_t)off, (off_t)len), "punch");
    must(!fallocate(shadow, punch, (off_t)off, (off_t)len), "punch of the shadow");
}

static void op_allocate(void)
{
    uint64_t off = offset_below(max_size);
    size_t len = length_up_to(max_size - off);
    int mode = next() % 2 ? FALLOC_FL_KEEP_SIZE : 0;
    note("allocate %llu +%zu%s", (unsigned long long)off, len, mode ? " keep size" : "");
    must(!fallocate(fd, mode, (off_t)off, (off_t)len), "fallocate");
    must(!fallocate(shadow, mode, (off_t)off, (off_t)len), "fallocate of the shadow");
}

/* [off, off + len) of the file as it is now, mapped: *base and *map_len are for munmap. */
static char *map(uint64_t off, size_t len, int prot, char **base, size_t *map_len)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = off / page * page;
    *map_len = (size_t)(off - from) + len;
    *base = mmap(NULL, *map_len, prot, MAP_SHARED, fd, (off_t)from);
    must(*base != MAP_FAILED, "mmap");
    return *base + (off - from);
}

static void op_map(bool writes)
{
    uint64_t size = size_of(shadow), off = offset_below(size);
    size_t len = length_up_to(size - off), map_len;
    char *base;
    note("map %s %llu +%zu", writes ? "write" : "read", (unsigned long long)off, len);
    if (!len)
        return;
    char *at = map(off, len, writes ? PROT_READ | PROT_WRITE : PROT_READ, &base, &map_len);
    if (writes) {
        fill(got, len);
        memcpy(at, got, len);
        must(pwrite(shadow, got, len, (off_t)off) == (ssize_t)len, "write of the shadow");
        if (next() % 8 == 0) /* as often as fsync: each waits for the disk */
            must(!msync(base, map_len, MS_SYNC), "msync");
    } else {
        must(pread(shadow, expected, len, (off_t)off) == (ssize_t)len, "read of the shadow");
        compare(at, expected, len, off, "the mapping");
    }
    must(!munmap(base, map_len), "munmap");
}

static void op_map_read(void)
{
    op_map(false);
}

static void op_map_write(void)
{
    op_map(true);
}

static void op_direct(void)
{
    uint64_t off = offset_below(max_size) / DIRECT * DIRECT;
    size_t len = (1 + (size_t)below(16)) * DIRECT;
    bool writes = next() % 2 && off + len <= max_size;
    note("O_DIRECT %s %llu +%zu", writes ? "write" : "read", (unsigned long long)off, len);
    int by = open(path, O_RDWR | O_DIRECT);
    must(by >= 0, "open with O_DIRECT");
    int usual = fd;
    fd = by;
    if (writes)
        write_both(off, len);
    else
        read_same(off, len, "O_DIRECT read");
    fd = usual;
    must(!close(by), "close after O_DIRECT");
}

/* What SEEK_DATA leaves out must be zeros; where it stops need not be the same as in the shadow. */
static void op_seek(void)
{
    uint64_t size = size_of(shadow), off = offset_below(size);
    note("SEEK_DATA from %llu", (unsigned long long)off);
    if (!size)
        return;
    off_t data = lseek(fd, (off_t)off, SEEK_DATA);
    must(data >= 0 || errno == ENXIO, "SEEK_DATA");
    uint64_t end = data < 0 ? size : (uint64_t)data;
    if (end < off || end > size)
        fail("SEEK_DATA from %llu gave %llu, beyond the size %llu", (unsigned long long)off,
             (unsigned long long)end, (unsigned long long)size);
    for (; off < end; off += LENGTH_MAX) {
        size_t len = end - off < LENGTH_MAX ? (size_t)(end - off) : LENGTH_MAX;
        must(pread(shadow, expected, len, (off_t)off) == (ssize_t)len, "read of the shadow");
        memset(got, 0, len);
        compare(got, expected, len, off, "a hole by SEEK_DATA");
    }
}

static void op_sync(void)
{
    bool data_only = next() % 2;
    note(data_only ? "fdatasync" : "fsync");
    must(!(data_only ? fdatasync(fd) : fsync(fd)), "fsync");
}

static void op_reopen(void)
{
    note("close and open");
    must(!close(fd), "close");
    if (other && next() % 2) {
        const char *mine = path;
        path = other;
        other = mine;
    }
    fd = open(path, O_RDWR);
    must(fd >= 0, "open");
    all_same();
}

static void op_empty(void)
{
    note("open with O_TRUNC");
    int by = open(path, O_WRONLY | O_TRUNC);
    must(by >= 0, "open with O_TRUNC");
    must(!close(by), "close after O_TRUNC");
    must(!ftruncate(shadow, 0), "truncate of the shadow");
}

static const struct {
    void (*fn)(void);
    unsigned weight;
} kinds[] = {
    {op_read, 300},    {op_write, 300},   {op_append, 60},    {op_truncate, 60}, {op_punch, 50},
    {op_allocate, 30}, {op_map_read, 80}, {op_map_write, 80}, {op_direct, 40},   {op_seek, 20},
    {op_sync, 10},     {op_reopen, 8},    {op_empty, 2},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void one(void)
{
    unsigned total = 0, at = 0;
    for (size_t k = 0; k < KINDS; k++)
        total += kinds[k].weight;
    uint64_t pick = below(total);
    while (pick >= kinds[at].weight)
        pick -= kinds[at++].weight;
    kinds[at].fn();
    same_size();
}

/* ---- main ---- */

static uint64_t number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno || end == text || *end) {
        fprintf(stderr, "fsrand: %s is not a number\n", text);
        exit(2);
    }
    return n;
}

static void parse(int argc, char **argv)
{
    static const struct option longs[] = {{"seed", required_argument, NULL, 's'},
                                          {"ops", required_argument, NULL, 'o'},
                                          {"max-size", required_argument, NULL, 'm'},
                                          {0}};
    int c;
    must(getrandom(&seed, sizeof(seed), 0) == sizeof(seed), "getrandom");
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (c == 's')
            seed = number(optarg);
        else if (c == 'o')
            ops = number(optarg);
        else if (c == 'm')
            max_size = number(optarg);
    }
    if ((argc - optind != 2 && argc - optind != 3) || max_size < LENGTH_MAX) {
        fprintf(stderr,
                "usage: fsrand [--seed N] [--ops N] [--max-size BYTES (>= %u)] FILE SHADOW "
                "[FILE_ON_ANOTHER_NODE]\n",
                LENGTH_MAX);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    path = argv[optind];
    other = argc - optind > 2 ? argv[optind + 2] : NULL;
    state = seed;
    printf("fsrand: seed %llu, %llu operations\n", (unsigned long long)seed,
           (unsigned long long)ops);
    fflush(stdout);
    got = aligned_alloc(DIRECT, LENGTH_MAX);
    expected = aligned_alloc(DIRECT, LENGTH_MAX);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    shadow = open(argv[optind + 1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    must(got && expected && fd >= 0 && shadow >= 0, "setting up");
    for (now = 0; now < ops; now++)
        one();
    note("the end");
    all_same();
    must(!close(fd) && !close(shadow), "close");
    return 0;
}
