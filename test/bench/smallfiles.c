/* smallfiles.c - times what many small files cost: fio times the bytes of a file, not its open and
 * close.
 *
 *   smallfiles PHASE DIRECTORY COUNT SIZE
 *
 * PHASE is create (create, write, close), stat, read (open, read, close) or unlink, of the files
 * DIRECTORY/0 ... COUNT-1, in an order that is not that of their creation except for create.
 * Prints the seconds.  read checks every byte.  Exit code 1: something failed, or was not right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static size_t size;
static char *expected, *buffer;
static const char *failed_at;

/* Files differ in their first bytes. */
static void expect(uint32_t n)
{
    memcpy(expected, &n, sizeof(n));
}

static int create_one(int dir, const char *name, uint32_t n)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    ssize_t done;

    if (fd < 0)
        return -errno;
    expect(n);
    done = write(fd, expected, size);
    if (close(fd) != 0)
        return -errno;
    return done == (ssize_t)size ? 0 : -EIO;
}

static int stat_one(int dir, const char *name, uint32_t n)
{
    struct stat st;

    (void)n;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    return st.st_size == (off_t)size ? 0 : -EILSEQ;
}

static int read_one(int dir, const char *name, uint32_t n)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t done;

    if (fd < 0)
        return -errno;
    done = read(fd, buffer, size);
    close(fd);
    expect(n);
    return done == (ssize_t)size && memcmp(buffer, expected, size) == 0 ? 0 : -EILSEQ;
}

static int unlink_one(int dir, const char *name, uint32_t n)
{
    (void)n;
    return unlinkat(dir, name, 0) == 0 ? 0 : -errno;
}

static const struct phase {
    const char *name;
    int (*one)(int dir, const char *name, uint32_t n);
    uint32_t stride; /* a prime: file i * stride modulo the count is the i-th */
} phases[] = {
    {"create", create_one, 1},
    {"stat", stat_one, 7919},
    {"read", read_one, 7919},
    {"unlink", unlink_one, 7919},
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run(const struct phase *phase, int dir, uint32_t count)
{
    static char name[16];

    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = (uint32_t)((uint64_t)i * phase->stride % count);
        int err;

        snprintf(name, sizeof(name), "%u", n);
        err = phase->one(dir, name, n);
        if (err) {
            failed_at = name;
            return err;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct phase *phase = NULL;
    double start;
    int dir, err;

    for (size_t i = 0; argc == 5 && i < sizeof(phases) / sizeof(*phases); i++)
        if (strcmp(argv[1], phases[i].name) == 0)
            phase = &phases[i];
    if (!phase) {
        fprintf(stderr, "usage: smallfiles create|stat|read|unlink DIRECTORY COUNT SIZE\n");
        return 2;
    }
    size = strtoul(argv[4], NULL, 10);
    expected = malloc(size + sizeof(uint32_t));
    buffer = malloc(size + 1);
    dir = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || !expected || !buffer) {
        perror(argv[2]);
        return 1;
    }
    memset(expected, 'x', size);
    start = now();
    err = run(phase, dir, (uint32_t)strtoul(argv[3], NULL, 10));
    if (err) {
        fprintf(stderr, "%s %s/%s: %s\n", argv[1], argv[2], failed_at, strerror(-err));
        return 1;
    }
    printf("%.6f\n", now() - start);
    return 0;
}
