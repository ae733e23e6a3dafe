/* pfs_size.c - see pfs_size.h.
 *
 *     0 ------ proved ------- ? ------- refused ------
 *                  '--> a size in between is tried, in the middle or at the size that is asked for, until that
 *                       one is below `proved` or above `refused`: about forty tries in the daemon's life
 */
#include "placement/pfs/pfs_size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "placement/pfs/pfs.h"
#include "transport/base.h"

#define NONE UINT64_MAX

static struct {
    int dirfd;
    char name[64];
    _Atomic unsigned tries;
    _Atomic uint64_t proved, refused; /* only ever closer together */
} sizes = {.dirfd = -1, .proved = INT64_MAX, .refused = NONE};

/* ---- one try ---- */

static int try_file(const char *name, uint64_t size)
{
    int fd = openat(sizes.dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int err = unlinkat(sizes.dirfd, name, 0) < 0 ? -errno : 0;
    if (!err && ftruncate(fd, (off_t)size) < 0)
        err = -errno;
    close(fd);
    return err;
}

/* 0; -EFBIG; another error: it cannot be told. */
static int try_size(uint64_t size)
{
    char name[sizeof(sizes.name) + 16];
    snprintf(name, sizeof(name), "%s.%u", sizes.name, atomic_fetch_add(&sizes.tries, 1));
    uint64_t ticket = pfs_call_begin();
    int err = try_file(name, size);
    pfs_call_end(ticket);
    return err == -EINVAL || err == -EOVERFLOW ? -EFBIG : err;
}

/* ---- what is known ---- */

static void note_proved(uint64_t size)
{
    uint64_t was = sizes.proved;
    while (was < size && !atomic_compare_exchange_weak(&sizes.proved, &was, size))
        ;
}

static void note_refused(uint64_t size)
{
    uint64_t was = sizes.refused;
    while (was > size && !atomic_compare_exchange_weak(&sizes.refused, &was, size))
        ;
}

bool pfs_size_is_proved(uint64_t size)
{
    return size <= sizes.proved;
}

uint64_t pfs_size_refused(void)
{
    return sizes.refused;
}

static int try_and_note(uint64_t size)
{
    int err = try_size(size);
    if (!err)
        note_proved(size);
    else if (err == -EFBIG)
        note_refused(size);
    return err;
}

static uint64_t middle(void)
{
    uint64_t low = sizes.proved, high = sizes.refused;
    return low + (high - MIN(low, high)) / 2;
}

int pfs_size_check(uint64_t size)
{
    if (size > INT64_MAX)
        return -EFBIG;
    while (size > sizes.proved && size < sizes.refused) {
        int err = try_and_note(sizes.refused == NONE ? size : MAX(size, middle()));
        if (err && err != -EFBIG)
            return 0; /* the flush will tell */
    }
    return size <= sizes.proved ? 0 : -EFBIG;
}

/* ---- the start ---- */

static bool on_the_pfs(int dirfd)
{
    struct stat a, b;
    return !fstat(dirfd, &a) && !fstat(pfs_root_fd(), &b) && a.st_dev == b.st_dev;
}

static void find_limit(void)
{
    sizes.proved = 0;
    sizes.refused = NONE;
    int err = try_and_note(PFS_SIZE_COMMON);
    while ((!err || err == -EFBIG) && sizes.refused != NONE && sizes.refused - sizes.proved > 1)
        err = try_and_note(middle());
    if (!err || err == -EFBIG)
        return;
    log_info("how large a file of the PFS can be is not known: %s", strerror(-err));
    sizes.proved = INT64_MAX;
    sizes.refused = NONE;
}

void pfs_size_start(int dirfd, const char *name)
{
    snprintf(sizes.name, sizeof(sizes.name), "size-%s", name);
    if (!on_the_pfs(dirfd))
        return;
    sizes.dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
    if (sizes.dirfd >= 0)
        find_limit();
}

void pfs_size_stop(void)
{
    if (sizes.dirfd >= 0)
        close(sizes.dirfd);
    sizes.dirfd = -1;
    sizes.proved = INT64_MAX;
    sizes.refused = NONE;
}
