/* datafile.c - data files: opened on demand, read and written in full, punched, removed.  What kernel
 * I/O needs of them is in datafile_kernel_io.c; datafile_sync.c brings them to the disk.
 *
 * Open descriptors are on a list, whose length is bounded by a share of RLIMIT_NOFILE: 100,000 dirty files
 * then need no 100,000 descriptors.  When one more is opened, the list is searched: a descriptor that was
 * used again goes to its end, one that was not is closed.  So an open descriptor is used without a lock.
 */
#include "placement/store/datafile.h"
#include "placement/store/datafile_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "placement/store/state.h"
#include "transport/fid.h"

struct datafiles datafiles;

void datafile_start(int data_dirfd)
{
    static bool made;
    if (!made)
        lock_init(&datafiles.lock, RANK_LEAF);
    made = true;
    struct rlimit r;
    bool known = !getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur != RLIM_INFINITY;
    datafiles.dirfd = data_dirfd;
    datafile_sync_start();
    datafiles.open = NULL;
    datafiles.open_last = &datafiles.open;
    datafiles.nopen = 0;
    datafiles.max_open = known ? (unsigned)MIN(r.rlim_cur / 8, (rlim_t)16384) : 16384;
}

static char *put_hex(char *to, uint64_t n, unsigned digits)
{
    for (unsigned i = digits; i; n >>= 4)
        to[--i] = "0123456789abcdef"[n & 15];
    return to + digits;
}

/* Without printf: each open of a small file makes this name some times, and printf would cost more than
 * all the rest. */
void datafile_name(struct fid fid, char name[DATAFILE_NAME_BYTES])
{
    char *at = put_hex(name, fid.lo, 2);
    *at++ = '/';
    at = put_hex(put_hex(at, fid.hi, 16), fid.lo, 16);
    *at = '\0';
}

/* ---- descriptors ---- */

/* data_users is the number of calls that use data_fd now, and two flags: */
#define IS_OPEN  0x80000000u
#define WAS_USED 0x40000000u /* again, since the open or since close_one_idle looked at it */
#define USERS    0x3fffffffu

static void list_remove(struct file *f)
{
    *f->open_prev = f->open_next;
    if (f->open_next)
        f->open_next->open_prev = f->open_prev;
    else
        datafiles.open_last = f->open_prev;
    datafiles.nopen--;
}

static void list_add(struct file *f)
{
    f->open_next = NULL;
    f->open_prev = datafiles.open_last;
    *datafiles.open_last = f;
    datafiles.open_last = &f->open_next;
    datafiles.nopen++;
}

int datafile_take_away(struct file *f)
{
    unsigned n = f->data_users;
    do {
        if (!(n & IS_OPEN))
            return -ENOENT;
        if (n & USERS)
            return -EBUSY;
    } while (!atomic_compare_exchange_weak(&f->data_users, &n, 0));
    int fd = f->data_fd;
    f->data_fd = -1;
    list_remove(f);
    return fd;
}

/* How far its making has come (state.h). */
static uint32_t made(const struct file *f)
{
    return __atomic_load_n(&f->rec->data_made, __ATOMIC_ACQUIRE);
}

bool datafile_is_made(const struct file *f)
{
    return made(f) == DATA_MADE;
}

static void set_made(struct file *f, uint32_t to)
{
    if (made(f) < to)
        __atomic_store_n(&f->rec->data_made, to, __ATOMIC_RELEASE);
}

/* The directory of a data file. */
static int make_dir(const char name[DATAFILE_NAME_BYTES])
{
    char dir[] = {name[0], name[1], 0};
    return mkdirat(datafiles.dirfd, dir, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Gives its inode back, too, if it is empty. */
static void remove_dir(struct fid fid)
{
    char name[DATAFILE_NAME_BYTES];
    datafile_name(fid, name);
    name[2] = 0;
    unlinkat(datafiles.dirfd, name, AT_REMOVEDIR);
}

static int open_data(struct file *f, bool make)
{
    char name[DATAFILE_NAME_BYTES];
    datafile_name(f->fid, name);
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0);
    if (!make && made(f) != DATA_MADE) /* it may be the one that datafile_discard removes */
        return -ENOENT;
    if (make && made(f) != DATA_MADE)
        datafile_naming(f);
    if (make)
        set_made(f, DATA_BEGUN); /* before it is there: see file_put */
    int fd, err = 0;
    while ((fd = openat(datafiles.dirfd, name, flags, 0600)) < 0 && errno == ENOENT && make && !err)
        err = make_dir(name);
    if (fd < 0)
        return err ? err : -errno;
    if (make)
        set_made(f, DATA_MADE);
    return fd;
}

/* Without the lock.  Either a thread that takes the descriptor away finds that it is used, or this function
 * finds that it was taken away. */
bool datafile_use(struct file *f, int *fd)
{
    unsigned n = f->data_users;
    do {
        if (!(n & IS_OPEN))
            return false;
    } while (!atomic_compare_exchange_weak(&f->data_users, &n, (n + 1) | WAS_USED));
    *fd = f->data_fd;
    return true;
}

void datafile_put(struct file *f)
{
    atomic_fetch_sub(&f->data_users, 1);
}

/* If more than max are open, closes the first one that is not in use and was not used again since the last
 * look at it here.  False: not that many are open, or all are in use. */
static bool close_one_idle(unsigned max)
{
    int fd = -1;
    lock_take(&datafiles.lock);
    for (unsigned tries = 2 * datafiles.nopen; fd < 0 && tries && datafiles.nopen > max; tries--) {
        struct file *f = datafiles.open;
        list_remove(f);
        list_add(f);
        if (!(atomic_fetch_and(&f->data_users, ~WAS_USED) & WAS_USED))
            fd = datafile_take_away(f);
        if (fd >= 0)
            datafile_closing(f);
    }
    lock_drop(&datafiles.lock);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Opens the present file.  -EAGAIN, and nothing is open: another file took its place meanwhile. */
static int open_now(struct file *f, bool make, unsigned replaced, int *fd)
{
    int fresh = open_data(f, make);
    while (fresh == -EMFILE && close_one_idle(0))
        fresh = open_data(f, make);
    if (fresh < 0)
        return fresh;
    lock_take(&datafiles.lock);
    bool open = datafile_use(f, fd); /* another thread was quicker */
    bool old = !open && f->data_replaced != replaced;
    if (!open && !old) {
        f->data_fd = *fd = fresh;
        list_add(f);
        atomic_store(&f->data_users, IS_OPEN | 1);
    }
    lock_drop(&datafiles.lock);
    if (open || old)
        close(fresh);
    while (close_one_idle(datafiles.max_open))
        ;
    return old ? -EAGAIN : 0;
}

int datafile_get(struct file *f, bool make, int *fd)
{
    int err = 0;
    do {
        if (datafile_use(f, fd))
            return 0;
        lock_take(&datafiles.lock);
        unsigned replaced = f->data_replaced;
        lock_drop(&datafiles.lock);
        err = open_now(f, make, replaced, fd);
    } while (err == -EAGAIN);
    return err;
}

void datafile_put_stored(struct file *f)
{
    f->data_sync.stored = true; /* before the use ends: a thread that closes the descriptor sees it */
    datafile_put(f);
}

void datafile_close(struct file *f)
{
    lock_take(&datafiles.lock);
    int fd = datafile_take_away(f);
    if (fd >= 0)
        datafile_closing(f);
    lock_drop(&datafiles.lock);
    if (fd >= 0)
        close(fd);
}

/* ---- bytes ---- */

int datafile_get_made(struct file *f, int *fd)
{
    bool should_be = made(f) == DATA_MADE; /* before it is looked for: another thread may make it */
    int err = datafile_get(f, false, fd);
    return err != -ENOENT ? err : should_be ? -EIO : -ENODATA;
}

int datafile_read(int fd, void *buf, size_t len, uint64_t off)
{
    size_t done = 0;
    while (fd >= 0 && done < len) {
        ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(off + done));
        if (n > 0)
            done += (size_t)n;
        else if (!n)
            break;
        else if (errno != EINTR)
            return -errno;
    }
    if (fd < 0 && fd != -ENODATA)
        return fd;
    if (done < len)
        memset((char *)buf + done, 0, len - done);
    return 0;
}

int datafile_pread(struct file *f, void *buf, size_t len, uint64_t off)
{
    int fd, err = datafile_get_made(f, &fd);
    if (err)
        return datafile_read(err, buf, len, off);
    err = datafile_read(fd, buf, len, off);
    datafile_put(f);
    return err;
}

void *datafile_map(int fd, size_t len, uint64_t off)
{
    struct stat st;
    void *map = MAP_FAILED;
    if (!fstat(fd, &st) && (uint64_t)st.st_size >= off + len)
        map = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, (off_t)off);
    return map == MAP_FAILED ? NULL : map;
}

bool datafile_pread_now(struct file *f, void *buf, size_t len, uint64_t off)
{
    int fd;
    struct iovec iov = {buf, len};
    if (!datafile_use(f, &fd))
        return false;
    ssize_t n = preadv2(fd, &iov, 1, (off_t)off, RWF_NOWAIT);
    datafile_put(f);
    return n == (ssize_t)len;
}

int datafile_pwritev(struct file *f, struct iovec *iov, int n, uint64_t off)
{
    int fd, err = datafile_get(f, true, &fd);
    if (err)
        return err;
    while (n && !err) {
        ssize_t done = pwritev(fd, iov, n, (off_t)off);
        if (done < 0) {
            err = errno == EINTR ? 0 : -errno;
            continue;
        }
        off += (uint64_t)done;
        while (n && (size_t)done >= iov->iov_len) {
            done -= (ssize_t)iov->iov_len;
            iov++;
            n--;
        }
        if (n) {
            iov->iov_base = (char *)iov->iov_base + done;
            iov->iov_len -= (size_t)done;
        }
    }
    datafile_put_stored(f);
    return err;
}

int datafile_punch(struct file *f, uint64_t off, uint64_t len)
{
    int fd, err = datafile_get(f, false, &fd);
    if (err)
        return err == -ENOENT ? 0 : err;
    len = MIN(len, (uint64_t)INT64_MAX - off);
    while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len) < 0)
        if (errno != EINTR) {
            err = -errno;
            break;
        }
    datafile_put_stored(f);
    return err;
}

int datafile_truncate(struct file *f, uint64_t size)
{
    int fd, err = datafile_get(f, false, &fd);
    if (err)
        return err == -ENOENT ? 0 : err;
    struct stat st;
    if (fstat(fd, &st) < 0 || ((uint64_t)st.st_size > size && ftruncate(fd, (off_t)size) < 0))
        err = -errno;
    datafile_put_stored(f);
    return err;
}

/* ---- names ---- */

int datafile_remove(struct fid fid)
{
    char name[DATAFILE_NAME_BYTES];
    datafile_name(fid, name);
    return unlinkat(datafiles.dirfd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static void set_discarded(struct file *f, uint32_t to)
{
    __atomic_store_n(&f->rec->data_made, to, __ATOMIC_RELEASE);
}

/* From the first step on no call opens it any more; a call that has just done so finds that it was replaced. */
bool datafile_discard(struct file *f)
{
    set_discarded(f, DATA_BEGUN);
    lock_take(&datafiles.lock);
    f->data_replaced++;
    f->rec->data_synced = 0;
    int fd = datafile_take_away(f);
    if (fd >= 0)
        datafile_closing(f);
    lock_drop(&datafiles.lock);
    if (fd >= 0)
        close(fd);
    int err = fd == -EBUSY ? fd : datafile_remove(f->fid);
    if (err && err != -EBUSY)
        log_warn("a data file can not be removed from the cache: %s", strerror(-err));
    set_discarded(f, err ? DATA_MADE : DATA_NONE);
    if (!err)
        remove_dir(f->fid);
    return !err;
}

int datafile_set_aside(struct fid fid, int suspect_dirfd)
{
    char name[DATAFILE_NAME_BYTES];
    datafile_name(fid, name);
    return renameat(datafiles.dirfd, name, suspect_dirfd, name + 3) < 0 && errno != ENOENT ? -errno
                                                                                           : 0;
}

int datafile_probe(int dirfd)
{
    int fd = openat(dirfd, "probe", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    char page[4096] = {1};
    ssize_t n = pwrite(fd, page, sizeof(page), 0);
    int err = n < 0 ? -errno : n < (ssize_t)sizeof(page) ? -ENOSPC : 0;
    if (!err && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, sizeof(page)) < 0)
        err = -errno;
    close(fd);
    unlinkat(dirfd, "probe", 0);
    return err;
}

int datafile_probe_full(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    off_t behind = (st.st_size / 4096 + 1) * 4096;
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, behind, 4096) < 0 ? -errno : 0;
}

static void sweep_dir(int fd, bool (*known)(struct fid fid))
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        struct fid fid;
        if (!fid_parse(e->d_name, &fid) && !known(fid))
            datafile_remove(fid);
    }
    closedir(dir);
}

void datafile_sweep(bool (*known)(struct fid fid))
{
    for (unsigned i = 0; i < 256; i++) {
        char name[4];
        snprintf(name, sizeof(name), "%02x", i);
        int fd = openat(datafiles.dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0)
            sweep_dir(fd, known);
    }
}
