/* readtrace.c - reads as the training of a network does: every file once in each epoch, shuffled,
 * several processes side by side.
 *
 *   readtrace make DIRECTORY FILES SIZE            makes the files, 100 to a directory
 *   readtrace read DIRECTORY FILES SIZE READERS EPOCHS
 *
 * A file's bytes follow from its number, so every reader knows the checksum (XXH3) that it must
 * find.  read prints the seconds of each epoch, a line each.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static int top;
static uint32_t files;
static size_t size;
static uint8_t *bytes;
static uint64_t *sums; /* of the files as they must be */

static uint64_t next_random(uint64_t *state) /* splitmix64, Steele, Lea, Flood 2014 */
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void die(const char *what, uint32_t n)
{
    fprintf(stderr, "readtrace: %s: file %u: %s\n", what, n, strerror(errno));
    _exit(1);
}

static void path_of(uint32_t n, char path[32])
{
    snprintf(path, 32, "%u/%u", n / 100, n);
}

static void make_bytes(uint32_t n)
{
    uint64_t state = n;

    for (size_t at = 0; at + sizeof(state) <= size; at += sizeof(state)) {
        uint64_t word = next_random(&state);
        memcpy(bytes + at, &word, sizeof(word));
    }
}

static void make_all(void)
{
    for (uint32_t n = 0; n < files; n++) {
        char path[32];
        int fd;

        snprintf(path, sizeof(path), "%u", n / 100);
        if (mkdirat(top, path, 0755) != 0 && errno != EEXIST)
            die("cannot make the directory", n);
        path_of(n, path);
        make_bytes(n);
        fd = openat(top, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd) != 0)
            die("cannot be written", n);
    }
}

static void know_sums(void)
{
    for (uint32_t n = 0; n < files; n++) {
        make_bytes(n);
        sums[n] = XXH3_64bits(bytes, size);
    }
}

static void read_one(uint32_t n)
{
    char path[32];
    size_t done = 0;
    ssize_t got;
    int fd;

    path_of(n, path);
    fd = openat(top, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die("cannot be opened", n);
    while ((got = read(fd, bytes + done, size - done)) > 0)
        done += (size_t)got;
    if (got < 0 || done != size)
        die("cannot be read whole", n);
    close(fd);
    if (XXH3_64bits(bytes, size) != sums[n]) {
        errno = EILSEQ;
        die("has the wrong bytes", n);
    }
}

/* Fisher-Yates; all readers make the same order and take every so many-th of it. */
static void shuffle(uint32_t *order, uint64_t seed)
{
    for (uint32_t n = 0; n < files; n++)
        order[n] = n;
    for (uint32_t n = files; n > 1; n--) {
        uint32_t other = (uint32_t)(next_random(&seed) % n), kept = order[n - 1];
        order[n - 1] = order[other];
        order[other] = kept;
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns false if a reader failed. */
static int read_epoch(const uint32_t *order, unsigned readers)
{
    int good = 1;

    for (unsigned r = 0; r < readers; r++) {
        pid_t pid = fork();

        if (pid < 0)
            die("fork", r);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* who ends us ends them */
            for (uint32_t n = r; n < files; n += readers)
                read_one(order[n]);
            _exit(0);
        }
    }
    for (unsigned r = 0; r < readers; r++) {
        int status;
        good &= wait(&status) > 0 && status == 0;
    }
    return good;
}

static int read_all(unsigned readers, unsigned epochs)
{
    uint32_t *order = calloc(files, sizeof(*order));

    if (!order)
        return 1;
    know_sums();
    for (unsigned e = 0; e < epochs; e++) {
        double start;

        shuffle(order, e + 1);
        start = now();
        if (!read_epoch(order, readers))
            return 1;
        printf("%.6f\n", now() - start);
        fflush(stdout); /* whoever reads it looks at once what the epoch has cost */
    }
    free(order);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 5 || (argc < 7 && strcmp(argv[1], "make") != 0)) {
        fprintf(stderr, "usage: readtrace make|read DIRECTORY FILES SIZE [READERS EPOCHS]\n");
        return 2;
    }
    top = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files = (uint32_t)strtoul(argv[3], NULL, 10);
    size = strtoul(argv[4], NULL, 10);
    bytes = malloc(size + 1);
    sums = calloc(files, sizeof(*sums));
    if (top < 0 || !bytes || !sums) {
        perror(argv[2]);
        return 1;
    }
    if (strcmp(argv[1], "make") == 0) {
        make_all();
        return 0;
    }
    return read_all((unsigned)strtoul(argv[5], NULL, 10), (unsigned)strtoul(argv[6], NULL, 10));
}
