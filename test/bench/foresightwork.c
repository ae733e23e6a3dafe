/* foresightwork.c - a forward and a backward pass over files of a directory: all are written, then read again in some order.
 *
 *     foresightwork DIR MOUNT FILES BYTES COMPUTE_MS HINTS ORDER WAIT
 *
 * HINTS: all, told before the first write; one, the next file's, told when a restore begins; or none.  ORDER: sequential, reverse or
 * irregular (the same each time).  WAIT: flushed, or at-once: a command that is run between the passes ("" or eddy flush MOUNT).
 * Between two files it computes for COMPUTE_MS: sleeps.  Prints "write BYTES_PER_S restore BYTES_PER_S distance MEAN": bytes over the
 * time for which it was blocked (as in the HPDC '23 paper), and how many later files' hints were ahead at each restore. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/lib/eddy.h"

#define PIECE (1u << 20)

static const char *dir;
static unsigned files, *order;
static size_t bytes;
static uint8_t buf[PIECE];
static eddy_queue *queue;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static char *name_of(unsigned n)
{
    static char name[4096];
    snprintf(name, sizeof(name), "%s/ckpt%u", dir, n);
    return name;
}

static void hint(unsigned n)
{
    int64_t seq = eddy_queue_append(queue, name_of(n), 0, 0);
    if (seq < 0) {
        fprintf(stderr, "eddy_queue_append: %s\n", strerror((int)-seq));
        exit(1);
    }
}

static uint64_t write_one(unsigned n)
{
    memset(buf, (int)n + 1, sizeof(buf));
    uint64_t begun = now_ns();
    int fd = open(name_of(n), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (size_t done = 0; fd >= 0 && done < bytes; done += PIECE)
        if (write(fd, buf, PIECE) != (ssize_t)PIECE)
            fail("write");
    if (fd < 0 || close(fd))
        fail("write");
    return now_ns() - begun;
}

static uint64_t read_one(unsigned n)
{
    uint64_t begun = now_ns();
    int fd = open(name_of(n), O_RDONLY);
    for (size_t done = 0; fd >= 0 && done < bytes; done += PIECE) {
        if (read(fd, buf, PIECE) != (ssize_t)PIECE)
            fail("read");
        if (buf[0] != (uint8_t)(n + 1) || buf[PIECE - 1] != buf[0]) {
            fprintf(stderr, "%s: wrong bytes\n", name_of(n));
            exit(1);
        }
    }
    if (fd < 0 || close(fd))
        fail("read");
    return now_ns() - begun;
}

static void compute(unsigned ms)
{
    usleep(ms * 1000);
}

static void set_order(const char *text)
{
    uint64_t seed = 1;
    order = calloc(files, sizeof(*order));
    for (unsigned i = 0; i < files; i++)
        order[i] = strcmp(text, "reverse") ? i : files - 1 - i;
    for (unsigned i = files - 1; i && !strcmp(text, "irregular"); i--) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        unsigned j = (unsigned)((seed >> 33) % (i + 1)), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
}

static uint64_t ahead(void)
{
    struct eddy_queue_stats s = {0};
    return queue && !eddy_queue_stats(queue, &s, sizeof(s)) ? s.ahead : 0;
}

int main(int argc, char **argv)
{
    if (argc != 9)
        return 2;
    dir = argv[1];
    files = (unsigned)atoi(argv[3]);
    bytes = strtoull(argv[4], NULL, 10) / PIECE * PIECE;
    unsigned ms = (unsigned)atoi(argv[5]);
    const char *hints = argv[6];
    uint64_t wrote = 0, read = 0, distance = 0;
    set_order(argv[7]);
    if (strcmp(hints, "none")) {
        int err = eddy_queue_open(argv[2], 0, &queue);
        if (err) {
            fprintf(stderr, "eddy_queue_open: %s\n", strerror(-err));
            return 1;
        }
    }
    for (unsigned i = 0; i < files && !strcmp(hints, "all"); i++)
        hint(order[i]);
    for (unsigned i = 0; i < files; i++, compute(ms))
        wrote += write_one(i);
    if (*argv[8] && system(argv[8]))
        return 1;
    if (queue && eddy_queue_start(queue))
        return 1;
    for (unsigned i = 0; i < files; i++, compute(ms)) {
        if (!strcmp(hints, "one") && i + 1 < files)
            hint(order[i + 1]);
        distance += ahead();
        read += read_one(order[i]);
    }
    double all = (double)bytes * files;
    printf("write %.0f restore %.0f distance %.1f\n", all / ((double)wrote / 1e9),
           all / ((double)read / 1e9), (double)distance / files);
    return 0;
}
