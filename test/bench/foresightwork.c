/* foresightwork.c - a forward and a backward pass over files of a directory: all are written, then read again in some order.
 *
 *     foresightwork DIR MOUNT FILES BYTES SPREAD COMPUTE_MS HINTS ORDER WAIT POINTS
 *
 * BYTES: of a file, on average; SPREAD: how many times larger the last one is than the first, and all between them grow alike (1: all
 * are of one size).  ORDER: sequential, reverse or irregular (the same each time).  WAIT: a command that is run between the passes
 * ("": none).  POINTS: a file that gets "NUMBER BYTES BLOCKED_MS DISTANCE" for each file that is read ("": none).
 *
 * HINTS: none; all, told before the first write; one, the next file's, told when a restore begins; or wrong ones, told before the
 * first write and fetched from then on:
 *     other    all files, in the opposite order          removed  files that are made in the first pass, and removed
 *     never    files of DIR/../never, which nobody reads  later    files that are made in the second pass
 *     stopped  all, and another queue of `never`          many     100 queues, each of all files in an order of its own
 *
 * Between two files it computes for COMPUTE_MS: sleeps.  Prints "write BYTES_PER_S restore BYTES_PER_S distance MEAN longest MS":
 * bytes over the time for which it was blocked (as in the HPDC '23 paper), how many later files' hints were ahead at each restore,
 * and the longest time for which the writing of one file was blocked. */
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/lib/eddy.h"

#define PIECE  (1u << 20)
#define QUEUES 100

static const char *dir, *mount, *hints;
static unsigned files, *order;
static size_t *bytes;
static uint8_t buf[PIECE];
static eddy_queue *queue;
static uint64_t seed = 1;

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

static void check(const char *what, int64_t err)
{
    if (err >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror((int)-err));
    exit(1);
}

static bool is(const char *kind)
{
    return !strcmp(hints, kind);
}

static char *name_of(const char *kind, unsigned n)
{
    static char name[4096];
    snprintf(name, sizeof(name), "%s/%s%u", dir, kind, n);
    return name;
}

/* ---- hints ---- */

static eddy_queue *new_queue(void)
{
    eddy_queue *q;
    check("eddy_queue_open", eddy_queue_open(mount, 0, &q));
    return q;
}

static void hint(eddy_queue *q, const char *kind, unsigned n)
{
    check("eddy_queue_append", eddy_queue_append(q, name_of(kind, n), 0, 0));
}

static void shuffle(unsigned *v)
{
    for (unsigned i = files - 1; i; i--) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        unsigned j = (unsigned)((seed >> 33) % (i + 1)), other = v[i];
        v[i] = v[j];
        v[j] = other;
    }
}

static void hint_never(void)
{
    eddy_queue *q = new_queue();
    for (unsigned i = 0; i < files; i++)
        hint(q, "../never/", i);
    check("eddy_queue_start", eddy_queue_start(q));
}

static void hint_many(void)
{
    unsigned *own = calloc(files, sizeof(*own));
    memcpy(own, order, files * sizeof(*own));
    for (unsigned k = 0; k < QUEUES; k++) {
        eddy_queue *q = new_queue();
        shuffle(own);
        for (unsigned i = 0; i < files; i++)
            hint(q, "ckpt", own[i]);
        check("eddy_queue_start", eddy_queue_start(q));
    }
    free(own);
}

static void hint_before(void)
{
    bool made = is("removed") || is("later");
    if (is("never") || is("stopped"))
        hint_never();
    if (is("many"))
        hint_many();
    if (is("all") || is("one") || is("stopped") || is("other") || made)
        queue = new_queue();
    for (unsigned i = 0; i < files && queue && !is("one"); i++)
        hint(queue, made ? "made" : "ckpt", order[is("other") ? files - 1 - i : i]);
    if (is("other") || made)
        check("eddy_queue_start", eddy_queue_start(queue));
}

/* A file that is hinted, and that nobody reads. */
static void make(unsigned n, bool stays)
{
    int fd = open(name_of("made", n), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, buf, PIECE) != (ssize_t)PIECE || close(fd) || (!stays && unlink(name_of("made", n))))
        fail("make");
}

/* ---- the passes ---- */

static uint64_t write_one(unsigned n)
{
    memset(buf, (int)n + 1, sizeof(buf));
    uint64_t begun = now_ns();
    int fd = open(name_of("ckpt", n), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (size_t done = 0; fd >= 0 && done < bytes[n]; done += PIECE)
        if (write(fd, buf, PIECE) != (ssize_t)PIECE)
            fail("write");
    if (fd < 0 || close(fd))
        fail("write");
    return now_ns() - begun;
}

static uint64_t read_one(unsigned n)
{
    uint64_t begun = now_ns();
    int fd = open(name_of("ckpt", n), O_RDONLY);
    for (size_t done = 0; fd >= 0 && done < bytes[n]; done += PIECE) {
        if (read(fd, buf, PIECE) != (ssize_t)PIECE)
            fail("read");
        if (buf[0] != (uint8_t)(n + 1) || buf[PIECE - 1] != buf[0]) {
            fprintf(stderr, "%s: wrong bytes\n", name_of("ckpt", n));
            exit(1);
        }
    }
    if (fd < 0 || close(fd))
        fail("read");
    return now_ns() - begun;
}

static void set_order(const char *text)
{
    order = calloc(files, sizeof(*order));
    for (unsigned i = 0; i < files; i++)
        order[i] = strcmp(text, "reverse") ? i : files - 1 - i;
    if (!strcmp(text, "irregular"))
        shuffle(order);
}

/* Whole pieces, which are `mean` on average, but for the rounding. */
static void set_bytes(double mean, double spread)
{
    double sum = 0;
    bytes = calloc(files, sizeof(*bytes));
    for (unsigned i = 0; i < files; i++)
        sum += pow(spread, (double)i / (files - 1));
    for (unsigned i = 0; i < files; i++) {
        double pieces = mean * files / sum * pow(spread, (double)i / (files - 1)) / PIECE;
        bytes[i] = pieces < 1 ? PIECE : (size_t)(pieces + 0.5) * PIECE;
    }
}

static uint64_t ahead(void)
{
    struct eddy_queue_stats s = {0};
    return queue && !eddy_queue_stats(queue, &s, sizeof(s)) ? s.ahead : 0;
}

static void compute(unsigned ms)
{
    usleep(ms * 1000);
}

static uint64_t write_all(unsigned ms, uint64_t *longest)
{
    uint64_t blocked = 0;
    for (unsigned i = 0; i < files; i++, compute(ms)) {
        uint64_t took = write_one(i);
        blocked += took;
        *longest = took > *longest ? took : *longest;
        if (is("removed"))
            make(i, false);
    }
    return blocked;
}

static uint64_t read_all(unsigned ms, FILE *points, uint64_t *distance)
{
    uint64_t blocked = 0;
    for (unsigned i = 0; i < files; i++, compute(ms)) {
        if (is("one") && i + 1 < files)
            hint(queue, "ckpt", order[i + 1]);
        if (is("later"))
            make(i, true);
        uint64_t before = ahead(), took = read_one(order[i]);
        *distance += before;
        blocked += took;
        if (points)
            fprintf(points, "%u %zu %.3f %llu\n", i, bytes[order[i]], (double)took / 1e6, (unsigned long long)before);
    }
    return blocked;
}

int main(int argc, char **argv)
{
    if (argc != 11)
        return 2;
    dir = argv[1];
    mount = argv[2];
    files = (unsigned)atoi(argv[3]);
    unsigned ms = (unsigned)atoi(argv[6]);
    hints = argv[7];
    uint64_t longest = 0, distance = 0;
    double all = 0;
    set_bytes(atof(argv[4]), atof(argv[5]));
    set_order(argv[8]);
    for (unsigned i = 0; i < files; i++)
        all += (double)bytes[i];
    hint_before();
    double wrote = (double)write_all(ms, &longest);
    if (*argv[9] && system(argv[9]))
        return 1;
    if (is("all") || is("one") || is("stopped"))
        check("eddy_queue_start", eddy_queue_start(queue));
    FILE *points = *argv[10] ? fopen(argv[10], "w") : NULL;
    double read = (double)read_all(ms, points, &distance);
    if (points && fclose(points))
        fail(argv[10]);
    printf("write %.0f restore %.0f distance %.1f longest %.1f\n", all / (wrote / 1e9), all / (read / 1e9),
           (double)distance / files, (double)longest / 1e6);
    return 0;
}
