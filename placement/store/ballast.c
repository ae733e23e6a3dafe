/* ballast.c - the file that only takes up room. */
#include "placement/store/ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "transport/base.h"
#include "transport/lock.h"

#define NAME     "ballast"
#define AGAIN_MS 10000 /* after the disk did not give the room, though it seemed to have it */

static struct {
    struct lock lock; /* RANK_LEAF: below; changes of the numbers */
    int dirfd;
    bool impossible;     /* this file system sets nothing aside */
    uint64_t not_before; /* boot_ms */
    _Atomic uint64_t size, held;
} ballast = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}, .dirfd = -1};

uint64_t ballast_size(void)
{
    return atomic_load(&ballast.size);
}

uint64_t ballast_owed(void)
{
    return atomic_load(&ballast.size) - atomic_load(&ballast.held);
}

/* With the lock. */
static void remove_file(void)
{
    if (unlinkat(ballast.dirfd, NAME, 0) < 0 && errno != ENOENT)
        log_warn("the cache's disk: removing its ballast: %s", strerror(errno));
    atomic_store(&ballast.held, 0);
}

void ballast_start(int dirfd)
{
    lock_take(&ballast.lock);
    ballast.dirfd = dirfd;
    ballast.not_before = 0;
    ballast.impossible = false;
    atomic_store(&ballast.held, 0);
    atomic_store(&ballast.size, 0);
    remove_file();
    lock_drop(&ballast.lock);
}

void ballast_stop(void)
{
    lock_take(&ballast.lock);
    remove_file();
    atomic_store(&ballast.size, 0);
    ballast.dirfd = -1;
    lock_drop(&ballast.lock);
}

void ballast_want(uint64_t bytes)
{
    lock_take(&ballast.lock);
    if (!ballast_size() && !ballast.impossible)
        atomic_store(&ballast.size, bytes);
    lock_drop(&ballast.lock);
}

/* fallocate, since posix_fallocate would write where the file system can not allocate. */
static int allocate(uint64_t bytes)
{
    int fd =
        openat(ballast.dirfd, NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int err = fallocate(fd, 0, 0, (off_t)bytes) < 0 ? -errno : 0;
    close(fd);
    return err;
}

/* With the lock. */
static void failed(int err)
{
    log_info("the cache's disk: no room is set aside for files that applications write through the "
             "kernel: %s",
             strerror(-err));
    remove_file();
    ballast.not_before = boot_ms() + AGAIN_MS;
    ballast.impossible = err == -EOPNOTSUPP;
    if (ballast.impossible)
        atomic_store(&ballast.size, 0);
}

void ballast_make(void)
{
    lock_take(&ballast.lock);
    if (ballast_owed() && boot_ms() >= ballast.not_before) {
        int err = allocate(ballast_size());
        if (err)
            failed(err);
        else
            atomic_store(&ballast.held, ballast_size());
    }
    lock_drop(&ballast.lock);
}

bool ballast_release(void)
{
    lock_take(&ballast.lock);
    bool held = atomic_load(&ballast.held);
    if (held)
        remove_file();
    lock_drop(&ballast.lock);
    return held;
}
