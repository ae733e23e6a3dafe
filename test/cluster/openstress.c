/* openstress.c - many threads open, read, write, map, truncate and close a few files in every way,
 * at random; nothing fails that would not fail on a plain disk, and nobody ever reads what was not
 * written.
 *
 *   openstress OPERATIONS THREADS DIR [DIR_ON_ANOTHER_NODE]
 *
 * Every 4 KiB of a file begins with the file's number and the block's number, whoever wrote it and
 * when; it is never anything else, above all not zeros, but beyond the end of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILES  12
#define BLOCK  4096u
#define BLOCKS 400u /* of the largest file */
#define KEPT   4    /* mappings that a thread keeps after the close */

struct block {
    uint32_t magic, file, number, by;
    char rest[BLOCK - 16];
};

static const char *dirs[2];
static unsigned ndirs;
static long operations;

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *fmt, ...)
{
    va_list ap;
    int err = errno;
    va_start(ap, fmt);
    fprintf(stderr, "openstress: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, ": %s\n", strerror(err));
    va_end(ap);
    _exit(1);
}

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void fill(struct block *b, unsigned file, unsigned number, unsigned by)
{
    *b = (struct block){0x65646479, file, number, by, {0}};
    memset(b->rest, (int)('a' + by % 26), sizeof(b->rest));
}

static bool is_right(const struct block *b, unsigned file, unsigned number)
{
    return b->magic == 0x65646479 && b->file == file && b->number == number;
}

static void check(const struct block *b, unsigned file, unsigned number, const char *how)
{
    errno = 0;
    if (!is_right(b, file, number))
        die("file %u block %u (%s): magic %x, file %u, block %u", file, number, how, b->magic,
            b->file, b->number);
}

struct thread {
    pthread_t thread;
    unsigned number;
    uint64_t state;
    struct block buf[16] __attribute__((aligned(4096)));
    struct {
        const struct block *map;
        size_t blocks;
        unsigned file;
    } kept[KEPT];
};

static void write_blocks(struct thread *t, int fd, unsigned file)
{
    unsigned n = 1 + (unsigned)(next(&t->state) % 16),
             at = (unsigned)(next(&t->state) % (BLOCKS - n));
    for (unsigned i = 0; i < n; i++)
        fill(&t->buf[i], file, at + i, t->number);
    ssize_t done = pwrite(fd, t->buf, n * BLOCK, (off_t)at * BLOCK);
    if (done != (ssize_t)(n * BLOCK))
        die("write of %u blocks to file %u: %zd", n, file, done);
}

/* What a read gave that should not be: all of its blocks, and what the same read gives now. */
static void tell_read(const struct thread *t, int fd, unsigned file, unsigned at, ssize_t got)
{
    struct block *again = aligned_alloc(4096, sizeof(t->buf));
    ssize_t n = again ? pread(fd, again, (size_t)got, (off_t)at * BLOCK) : -1;
    fprintf(stderr, "thread %u read %zd bytes of file %u from block %u (flags %x):", t->number, got,
            file, at, (unsigned)fcntl(fd, F_GETFL));
    for (unsigned i = 0; i < got / BLOCK; i++)
        fprintf(stderr, " %u/%u", t->buf[i].number, t->buf[i].by);
    fprintf(stderr, "; once more, %zd:", n);
    for (unsigned i = 0; i < (n > 0 ? n / BLOCK : 0); i++)
        fprintf(stderr, " %u/%u", again[i].number, again[i].by);
    fprintf(stderr, "\n");
    free(again);
}

static void read_blocks(struct thread *t, int fd, unsigned file)
{
    unsigned n = 1 + (unsigned)(next(&t->state) % 16), at = (unsigned)(next(&t->state) % BLOCKS);
    ssize_t got = pread(fd, t->buf, n * BLOCK, (off_t)at * BLOCK);
    if (got < 0)
        die("read of file %u", file);
    for (unsigned i = 0; i < got / BLOCK; i++)
        if (!is_right(&t->buf[i], file, at + i))
            tell_read(t, fd, file, at, got);
    for (unsigned i = 0; i < got / BLOCK; i++)
        check(&t->buf[i], file, at + i, "read");
}

static void check_map(const struct block *map, size_t blocks, unsigned file, uint64_t *state)
{
    for (unsigned i = 0; i < 8; i++) {
        unsigned at = (unsigned)(next(state) % blocks);
        check(&map[at], file, at, "mapped");
    }
}

/* The mapping is kept after the close, until its place is needed. */
static void map_blocks(struct thread *t, int fd, unsigned file, bool write)
{
    unsigned at = (unsigned)(next(&t->state) % KEPT);
    if (t->kept[at].map) {
        check_map(t->kept[at].map, t->kept[at].blocks, t->kept[at].file, &t->state);
        munmap((void *)(uintptr_t)t->kept[at].map, t->kept[at].blocks * BLOCK);
        t->kept[at].map = NULL;
    }
    void *map = mmap(NULL, BLOCKS * BLOCK, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        die("mmap of file %u", file);
    if (write) {
        unsigned n = (unsigned)(next(&t->state) % BLOCKS);
        /* made elsewhere: others look at it, and its first bytes are never other ones */
        fill(t->buf, file, n, t->number);
        memcpy((struct block *)map + n, t->buf, BLOCK);
    }
    check_map(map, BLOCKS, file, &t->state);
    t->kept[at].map = map;
    t->kept[at].blocks = BLOCKS;
    t->kept[at].file = file;
}

static void operate(struct thread *t)
{
    static const int ways[] = {O_RDONLY, O_RDONLY, O_RDONLY,        O_RDWR,
                               O_RDWR,   O_WRONLY, O_RDWR | O_CREAT};
    unsigned file = (unsigned)(next(&t->state) % FILES);
    int way = ways[next(&t->state) % (sizeof(ways) / sizeof(ways[0]))];
    if (next(&t->state) % 10 == 0)
        way |= O_DIRECT;
    char path[4096];
    snprintf(path, sizeof(path), "%s/s%u", dirs[t->number % ndirs], file);
    int fd = open(path, way, 0644);
    if (fd < 0)
        die("open of %s with %x", path, (unsigned)way);
    for (unsigned n = 1 + (unsigned)(next(&t->state) % 4); n; n--) {
        if ((way & O_ACCMODE) != O_RDONLY && next(&t->state) % 2)
            write_blocks(t, fd, file);
        else if ((way & O_ACCMODE) != O_WRONLY && next(&t->state) % 3)
            read_blocks(t, fd, file);
        else if ((way & O_ACCMODE) != O_WRONLY && !(way & O_DIRECT))
            map_blocks(t, fd, file, (way & O_ACCMODE) == O_RDWR && ndirs == 1);
    }
    if (close(fd))
        die("close of %s", path);
}

static void *run(void *arg)
{
    struct thread *t = arg;
    for (long i = 0; i < operations; i++)
        operate(t);
    for (unsigned i = 0; i < KEPT; i++)
        if (t->kept[i].map)
            munmap((void *)(uintptr_t)t->kept[i].map, t->kept[i].blocks * BLOCK);
    return NULL;
}

static void make(unsigned file)
{
    char path[4096];
    struct block b;
    snprintf(path, sizeof(path), "%s/s%u", dirs[0], file);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        die("%s", path);
    for (unsigned n = 0; n < BLOCKS; n++) {
        fill(&b, file, n, 0);
        if (write(fd, &b, BLOCK) != BLOCK)
            die("write of %s", path);
    }
    if (close(fd))
        die("close of %s", path);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    operations = atol(argv[1]);
    unsigned n = (unsigned)atoi(argv[2]);
    for (ndirs = 0; ndirs < 2 && argv[3 + ndirs]; ndirs++)
        dirs[ndirs] = argv[3 + ndirs];
    for (unsigned i = 0; i < FILES; i++)
        make(i);
    struct thread *threads = aligned_alloc(4096, n * sizeof(*threads));
    if (!threads)
        die("memory");
    memset(threads, 0, n * sizeof(*threads));
    for (unsigned i = 0; i < n; i++) {
        threads[i].number = i;
        threads[i].state = 0x9e3779b97f4a7c15u * (i + 1) ^ (uint64_t)getpid();
        if ((errno = pthread_create(&threads[i].thread, NULL, run, &threads[i])))
            die("pthread_create");
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i].thread, NULL);
    free(threads);
    return 0;
}
