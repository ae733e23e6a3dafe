#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL

/* What mounts share: when (CLOCK_MONOTONIC) all that was asked for so far has gone through. */
struct shared {
    _Atomic uint64_t busy_until_ns;
};

static struct limits limit;
static struct shared alone;
static struct shared *shared = &alone;

static int map_shared(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *map;
    int err = 0;

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, sizeof(struct shared)) != 0)
        err = -errno;
    map = err ? MAP_FAILED
              : mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!err && map == MAP_FAILED)
        err = -errno;
    if (!err)
        shared = map;
    close(fd);
    return err;
}

int limits_start(const struct limits *limits)
{
    limit = *limits;
    return limit.shared_path ? map_shared(limit.shared_path) : 0;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

int fault_check(enum op op, const struct node *node, const char *name)
{
    uint64_t delay_us = limit.delay_us;

    (void)node;
    (void)name;
    count_op(op);
    if (!op_moves_data(op))
        delay_us += limit.delay_meta_us;
    if (delay_us)
        sleep_until(now_ns() + delay_us * 1000);
    return 0;
}

void limits_take(uint64_t bytes)
{
    uint64_t busy_until, end;

    if (!limit.bandwidth || !bytes)
        return;
    busy_until = shared->busy_until_ns;
    do {
        uint64_t now = now_ns();
        uint64_t start = busy_until > now ? busy_until : now;

        end = start + bytes * SECOND_NS / limit.bandwidth;
    } while (!atomic_compare_exchange_weak(&shared->busy_until_ns, &busy_until, end));
    sleep_until(end);
}
