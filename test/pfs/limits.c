#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL

/* What mounts share: the time (CLOCK_MONOTONIC) when all bytes requested so far have gone through. */
struct shared {
    _Atomic uint64_t busy_until_ns;
};

static _Atomic uint64_t bandwidth, delay_us, delay_meta_us;
static struct shared alone;
static struct shared *shared = &alone;

int limits_share(const char *path)
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

void limits_delay(enum op op)
{
    uint64_t us = delay_us;

    if (!op_moves_data(op))
        us += delay_meta_us;
    if (us)
        sleep_until(now_ns() + us * 1000);
}

void limits_set_bandwidth(uint64_t bytes_per_second)
{
    bandwidth = bytes_per_second;
}

void limits_set_delay_us(uint64_t us)
{
    delay_us = us;
}

void limits_set_delay_meta_us(uint64_t us)
{
    delay_meta_us = us;
}

void limits_take(uint64_t bytes)
{
    uint64_t busy_until, end, rate = bandwidth;

    if (!rate || !bytes)
        return;
    busy_until = shared->busy_until_ns;
    do {
        uint64_t now = now_ns();
        uint64_t start = busy_until > now ? busy_until : now;

        end = start + bytes * SECOND_NS / rate;
    } while (!atomic_compare_exchange_weak(&shared->busy_until_ns, &busy_until, end));
    sleep_until(end);
}
