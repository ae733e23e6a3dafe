/* phasework.c - an application in phases, as the benchmark RDBench: its processes compute, then
 * write, all at the same time, again and again.
 *
 *   phasework DIRECTORY PROCESSES ITERATIONS BYTES SPINS own|shared
 *   phasework SECONDS       prints how many SPINS take so long on a processor of their own
 *
 * Each process computes SPINS, waits for the others, and writes BYTES: to a file of its own each
 * iteration (DIRECTORY/ITERATION.PROCESS), or to its block of one file of all (DIRECTORY/ITERATION).
 * Files are closed in the phase, which ends when all have done so.  Prints a line for each phase:
 * "compute" or "io", and when it began and ended (CLOCK_MONOTONIC, s).  Exit codes: 0, 1 an
 * operation failed, 2 usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20)

struct shared {
    pthread_barrier_t barrier;
    volatile int failed;
};

static struct {
    const char *directory;
    unsigned processes, iterations;
    uint64_t bytes, spins;
    bool one_file;
} job;

static struct shared *shared;
static char *piece;

static double clock_s(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- computing ---- */

static uint64_t spin(uint64_t times)
{
    volatile uint64_t x = 88172645463325252ULL;

    for (uint64_t n = 0; n < times; n++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

static uint64_t spins_of(double seconds)
{
    uint64_t times = 1000000;

    for (;; times *= 2) {
        double start = clock_s(CLOCK_PROCESS_CPUTIME_ID), took;

        spin(times);
        took = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
        if (took >= 0.2)
            return (uint64_t)((double)times * seconds / took);
    }
}

/* ---- writing ---- */

static int open_file(unsigned iteration, unsigned process)
{
    char path[4096];

    if (job.one_file)
        snprintf(path, sizeof(path), "%s/%u", job.directory, iteration);
    else
        snprintf(path, sizeof(path), "%s/%u.%u", job.directory, iteration, process);
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
}

static int write_phase(unsigned iteration, unsigned process)
{
    uint64_t at = job.one_file ? process * job.bytes : 0;
    int fd = open_file(iteration, process), err = fd < 0 ? -errno : 0;

    for (uint64_t done = 0; !err && done < job.bytes;) {
        size_t len = job.bytes - done < PIECE ? (size_t)(job.bytes - done) : PIECE;
        ssize_t n;

        memcpy(piece, &done, sizeof(done)); /* pieces differ */
        n = pwrite(fd, piece, len, (off_t)(at + done));
        if (n <= 0)
            err = n < 0 ? -errno : -EIO;
        else
            done += (uint64_t)n;
    }
    if (fd >= 0 && close(fd) != 0 && !err)
        err = -errno;
    return err;
}

/* ---- phases ---- */

static void say(unsigned process, const char *phase, double began)
{
    if (process == 0) {
        printf("%s %.6f %.6f\n", phase, began, clock_s(CLOCK_MONOTONIC));
        fflush(stdout);
    }
}

static int work(unsigned process)
{
    for (unsigned i = 0; i < job.iterations && !shared->failed; i++) {
        double began;
        int err;

        pthread_barrier_wait(&shared->barrier);
        began = clock_s(CLOCK_MONOTONIC);
        spin(job.spins);
        pthread_barrier_wait(&shared->barrier);
        say(process, "compute", began);
        began = clock_s(CLOCK_MONOTONIC);
        err = write_phase(i, process);
        if (err) {
            fprintf(stderr, "phasework: %s: iteration %u: %s\n", job.directory, i, strerror(-err));
            shared->failed = 1;
        }
        pthread_barrier_wait(&shared->barrier);
        say(process, "io", began);
        pthread_barrier_wait(&shared->barrier); /* all see whether one has failed */
    }
    return shared->failed;
}

static int make_shared(void)
{
    pthread_barrierattr_t attr;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    piece = malloc(PIECE);
    if (shared == MAP_FAILED || !piece)
        return -ENOMEM;
    for (size_t n = 0; n < PIECE; n++)
        piece[n] = (char)(n * 2654435761u >> 13);
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    return -pthread_barrier_init(&shared->barrier, &attr, job.processes);
}

static int run(void)
{
    int status, failed = 0;

    for (unsigned n = 1; n < job.processes; n++) {
        pid_t pid = fork();

        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* who waits for one that is gone waits for ever */
            _exit(work(n));
        }
        if (pid < 0) {
            perror("phasework: fork");
            exit(1);
        }
    }
    failed = work(0);
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}

static bool parse(char **argv)
{
    job.directory = argv[1];
    job.processes = (unsigned)strtoul(argv[2], NULL, 10);
    job.iterations = (unsigned)strtoul(argv[3], NULL, 10);
    job.bytes = strtoull(argv[4], NULL, 10);
    job.spins = strtoull(argv[5], NULL, 10);
    job.one_file = strcmp(argv[6], "shared") == 0;
    return job.processes && job.iterations && (job.one_file || strcmp(argv[6], "own") == 0);
}

int main(int argc, char **argv)
{
    int err;

    if (argc == 2 && strtod(argv[1], NULL) > 0) {
        printf("%llu\n", (unsigned long long)spins_of(strtod(argv[1], NULL)));
        return 0;
    }
    if (argc != 7 || !parse(argv)) {
        fprintf(stderr, "usage: phasework DIRECTORY PROCESSES ITERATIONS BYTES SPINS own|shared\n"
                        "       phasework SECONDS\n");
        return 2;
    }
    err = make_shared();
    if (err) {
        fprintf(stderr, "phasework: %s\n", strerror(-err));
        return 1;
    }
    return run();
}
