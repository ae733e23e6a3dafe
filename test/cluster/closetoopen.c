/* closetoopen.c - rounds of: write on one mount, close, then open, fstat and read on the other;
 * nothing stale.
 *
 *   closetoopen [-w WATCHERS] ROUNDS DIR_A DIR_B [FLUSH_COMMAND]
 *
 * Sizes grow and shrink; every fifth round the file is replaced by a rename over its name (a name
 * of another node is seen within the attribute time-out, so that read waits for the new inode, and
 * then must be exact).  The writer's and the reader's side change places every seventh round.
 * FLUSH_COMMAND is run every hundredth round.  WATCHERS threads ask for the attributes of the files
 * on both sides all the time, so that answers of different ages are on their way.  Exit code 1 and
 * a line at the first stale byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX (300 * 1024)

static char want[MAX], got[MAX];

static void die(const char *what, int round)
{
    fprintf(stderr, "closetoopen: round %d: %s: %s\n", round, what, strerror(errno));
    exit(1);
}

static void fill(int round, size_t size)
{
    uint64_t x = (uint64_t)round * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < size; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        want[i] = (char)(x >> 56);
    }
}

static void write_file(const char *path, size_t size, int flags, int round)
{
    int fd = open(path, flags, 0644);
    if (fd < 0)
        die("open for writing", round);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, want + done, size - done);
        if (n <= 0)
            die("write", round);
        done += (size_t)n;
    }
    if (!(flags & O_TRUNC) && ftruncate(fd, (off_t)size))
        die("ftruncate", round);
    if (close(fd))
        die("close", round);
}

static void check(int fd, size_t size, int round)
{
    struct stat st;
    ssize_t n, done = 0;
    if (fstat(fd, &st))
        die("fstat", round);
    if ((size_t)st.st_size != size) {
        fprintf(stderr, "closetoopen: round %d: fstat says %lld bytes, written were %zu\n", round,
                (long long)st.st_size, size);
        exit(1);
    }
    while ((n = read(fd, got + done, MAX - (size_t)done)) > 0)
        done += n;
    if (n < 0)
        die("read", round);
    if ((size_t)done != size || memcmp(got, want, size)) {
        fprintf(stderr, "closetoopen: round %d: %zd bytes read, %zu written, %s\n", round, done,
                size, (size_t)done == size ? "stale or wrong bytes" : "wrong size");
        exit(1);
    }
}

/* By name: the new file's inode number must appear within the attribute time-out (here: 3 s). */
static int open_new(const char *path, ino_t ino, int round)
{
    struct timespec t = {0, 10000000};
    for (int i = 0; i < 300; i++) {
        struct stat st;
        int fd = open(path, O_RDONLY);
        if (fd < 0 && errno != ENOENT)
            die("open for reading", round);
        if (fd >= 0 && !fstat(fd, &st) && st.st_ino == ino)
            return fd;
        if (fd >= 0)
            close(fd);
        nanosleep(&t, NULL);
    }
    errno = ETIMEDOUT;
    die("the renamed file does not appear", round);
    return -1;
}

static const char *sides[2];

static void *watch(void *arg)
{
    char path[4096];
    struct statx stx;
    (void)arg;
    for (unsigned n = 0;; n++) {
        snprintf(path, sizeof(path), "%s/c2o.%u", sides[n / 4 % 2], n % 4);
        statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &stx);
    }
    return NULL;
}

static void start_watchers(int n)
{
    pthread_t t;
    while (n--)
        if ((errno = pthread_create(&t, NULL, watch, NULL)))
            die("pthread_create", -1);
}

int main(int argc, char **argv)
{
    int watchers = 0;
    for (int c; (c = getopt(argc, argv, "w:")) != -1;) {
        if (c != 'w')
            return 2;
        watchers = atoi(optarg);
    }
    argc -= optind - 1;
    argv += optind - 1;
    if (argc < 4)
        return 2;
    sides[0] = argv[2];
    sides[1] = argv[3];
    start_watchers(watchers);
    int rounds = atoi(argv[1]);
    for (int round = 0; round < rounds; round++) {
        const char *a = argv[round / 7 % 2 ? 3 : 2], *b = argv[round / 7 % 2 ? 2 : 3];
        char pa[4096], pb[4096], tmp[4096];
        size_t size = (size_t)(round * 7919 % MAX);
        if (round % 11 == 0)
            size = 0;
        if (round % 3)
            size %= 9000;
        snprintf(pa, sizeof(pa), "%s/c2o.%d", a, round % 4);
        snprintf(pb, sizeof(pb), "%s/c2o.%d", b, round % 4);
        snprintf(tmp, sizeof(tmp), "%s/c2o.tmp.%d", a, round);
        fill(round, size);
        int fd;
        if (round % 5 == 4) {
            struct stat st;
            write_file(tmp, size, O_WRONLY | O_CREAT | O_EXCL, round);
            if (stat(tmp, &st) || rename(tmp, pa))
                die("rename", round);
            fd = open_new(pb, st.st_ino, round);
        } else {
            struct stat st;
            write_file(pa, size, O_WRONLY | O_CREAT | (round % 2 ? O_TRUNC : 0), round);
            if (stat(pa, &st))
                die("stat", round);
            fd = open_new(pb, st.st_ino, round);
        }
        check(fd, size, round);
        close(fd);
        if (argc > 4 && round % 100 == 99 && system(argv[4])) {
            fprintf(stderr, "closetoopen: round %d: %s failed\n", round, argv[4]);
            return 1;
        }
    }
    printf("%d rounds\n", rounds);
    return 0;
}
