/* ranks.c - processes that write one file, or one each, in the patterns of IOR, and read it: what MPI programs do, without
 * MPI.
 *
 *   ranks [options] DIRECTORY...     a rank for each directory: on another node each, the same directory there
 *
 *   --how HOW       each (a file per rank), segmented (rank after rank) or strided (piece after piece); default strided
 *   --piece BYTES   of a write; default 1 MiB
 *   --pieces N      of each rank; default 64
 *   --name NAME     default "ranks"
 *   --no-read       the ranks only write
 *
 * All ranks open, write their pieces in order, and close; then each reads what the next rank has written, before anybody
 * has asked for a flush, and looks at every byte.  Between the phases all wait for the slowest.  Prints the seconds of
 * writing, of writing with open and close, and of reading.  Exit code 1: something failed, or a byte was wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum how { EACH, SEGMENTED, STRIDED };
static enum how how = STRIDED;
static uint64_t piece = 1 << 20, pieces = 64;
static const char *name = "ranks";
static bool reads = true;
static unsigned ranks;

/* Shared by all ranks. */
static struct {
    pthread_barrier_t barrier;
    double begin, written, closed, read_begin, read;
} *all;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void fail(unsigned rank, const char *what)
{
    fprintf(stderr, "ranks: rank %u: %s: %s\n", rank, what, strerror(errno));
    _exit(1);
}

static uint64_t place(unsigned rank, uint64_t n)
{
    switch (how) {
    case SEGMENTED:
        return (rank * pieces + n) * piece;
    case STRIDED:
        return (n * ranks + rank) * piece;
    default:
        return n * piece;
    }
}

/* The word at each offset tells the offset and the rank. */
static void fill(unsigned char *buf, unsigned rank, uint64_t off)
{
    for (uint64_t i = 0; i + 8 <= piece; i += 8) {
        uint64_t word = (off + i) * UINT64_C(0x9e3779b97f4a7c15) ^ rank;
        memcpy(buf + i, &word, 8);
    }
}

static int open_file(const char *dir, unsigned owner, int flags)
{
    char path[4096];
    if (how == EACH)
        snprintf(path, sizeof(path), "%s/%s.%u", dir, name, owner);
    else
        snprintf(path, sizeof(path), "%s/%s", dir, name);
    return open(path, flags, 0644);
}

/* All ranks; the last one to come tells the time. */
static void meet(double *at)
{
    if (pthread_barrier_wait(&all->barrier) == PTHREAD_BARRIER_SERIAL_THREAD && at)
        *at = now();
    pthread_barrier_wait(&all->barrier);
}

static void do_write(unsigned rank, const char *dir, unsigned char *buf)
{
    if (rank == 0 && how != EACH) { /* as MPI_File_open: one rank makes the file */
        int made = open_file(dir, rank, O_RDWR | O_CREAT);
        if (made < 0 || close(made))
            fail(rank, "making the file");
    }
    meet(&all->begin);
    int fd = open_file(dir, rank, O_RDWR | O_CREAT);
    if (fd < 0)
        fail(rank, "open");
    for (uint64_t n = 0; n < pieces; n++) {
        uint64_t off = place(rank, n);
        fill(buf, rank, off);
        if (pwrite(fd, buf, piece, (off_t)off) != (ssize_t)piece)
            fail(rank, "write");
    }
    meet(&all->written);
    if (close(fd))
        fail(rank, "close");
    meet(&all->closed);
}

static void do_read(unsigned rank, const char *dir, unsigned char *buf, unsigned char *want)
{
    unsigned other = (rank + 1) % ranks;
    meet(&all->read_begin);
    int fd = open_file(dir, other, O_RDONLY);
    if (fd < 0)
        fail(rank, "open for reading");
    for (uint64_t n = 0; n < pieces; n++) {
        uint64_t off = place(other, n);
        if (pread(fd, buf, piece, (off_t)off) != (ssize_t)piece)
            fail(rank, "read");
        fill(want, other, off);
        if (memcmp(buf, want, piece)) {
            errno = EILSEQ;
            fail(rank, "a byte is wrong");
        }
    }
    close(fd);
    meet(&all->read);
}

static _Noreturn void run(unsigned rank, const char *dir)
{
    unsigned char *buf = calloc(1, piece), *want = calloc(1, piece);
    do_write(rank, dir, buf);
    if (reads)
        do_read(rank, dir, buf, want);
    _exit(0);
}

static void start(char **dirs)
{
    pthread_barrierattr_t shared;
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&all->barrier, &shared, ranks);
    for (unsigned r = 0; r < ranks; r++)
        if (fork() == 0)
            run(r, dirs[r]);
}

/* A rank that fails leaves the others in the barrier: they are killed. */
static int wait_for_all(void)
{
    int status;
    for (unsigned r = 0; r < ranks; r++) {
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
            signal(SIGTERM, SIG_IGN);
            kill(0, SIGTERM);
            return 1;
        }
    }
    return 0;
}

static void parse(int argc, char **argv)
{
    static const struct option options[] = {{"how", 1, 0, 'h'}, {"piece", 1, 0, 'p'}, {"pieces", 1, 0, 'n'},
                                            {"name", 1, 0, 'f'}, {"no-read", 0, 0, 'r'}, {0, 0, 0, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'h')
            how = !strcmp(optarg, "each") ? EACH : !strcmp(optarg, "segmented") ? SEGMENTED : STRIDED;
        else if (c == 'p')
            piece = strtoull(optarg, NULL, 10);
        else if (c == 'n')
            pieces = strtoull(optarg, NULL, 10);
        else if (c == 'f')
            name = optarg;
        else if (c == 'r')
            reads = false;
        else
            exit(2);
    }
    ranks = (unsigned)(argc - optind);
    if (!ranks || !piece || !pieces)
        exit(2);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    setpgid(0, 0);
    start(argv + optind);
    int err = wait_for_all();
    if (!err)
        printf("%.6f %.6f %.6f\n", all->written - all->begin, all->closed - all->begin,
               reads ? all->read - all->read_begin : 0);
    return err;
}
