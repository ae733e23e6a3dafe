/* datafile_sync.c - brings a data file's bytes, and its name, to the disk, and finds errors that Linux may
 * hide.
 *
 * The kernel keeps an error of writing back with the file in memory, and tells it once to each open
 * descriptor.  A descriptor that is opened later may not be told: another one was, or the kernel has
 * forgotten the file.  This concerns bytes that were stored before a descriptor was closed to make room
 * for others, and bytes that a dead daemon stored.  For the file system as a whole the kernel keeps an
 * error until it has told it to a syncfs.  So the next sync of such a file is a syncfs.
 *
 * Names: an fsync of a directory that failed may have lost any name in it that was not synced before.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "placement/store/datafile.h"
#include "placement/store/datafile_int.h"
#include "placement/store/state.h"
#include "placement/store/syncs.h"
#include "transport/waits.h"

static struct {
    struct lock lock;    /* RANK_LEAF; one syncfs runs at a time */
    int fd;              /* no other syncfs uses it */
    uint64_t good;       /* what was stored before the closes up to this number is on the disk */
    uint64_t after, bad; /* but perhaps not that of the closes above the first number, up to the second */
    int err;             /* the error that left that open */
} disk = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}, .fd = -1};

static _Atomic uint64_t closes = 1; /* the first one stands for the daemon before this one */
static struct syncs names;

void datafile_sync_start(void)
{
    static bool made;
    if (!made)
        syncs_init(&names);
    made = true;
    if (disk.fd >= 0)
        close(disk.fd);
    disk.fd = openat(datafiles.dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    disk.good = disk.after = disk.bad = 0;
    closes = 1;
}

void datafile_begin(struct file *f)
{
    if (core_of(f->rec)->flags & CORE_DIRTY)
        f->data_sync.closed = closes;
}

void datafile_naming(struct file *f)
{
    uint64_t lost = syncs_failures(&names);
    lock_take(&datafiles.lock);
    f->data_sync.names_lost = lost;
    lock_drop(&datafiles.lock);
}

void datafile_closing(struct file *f)
{
    if (f->data_sync.stored)
        f->data_sync.closed = ++closes;
    f->data_sync.stored = false;
}

/* With the lock. */
static void sync_disk(void)
{
    uint64_t all = closes;
    int err = disk.fd < 0 ? -EBADF : syncfs(disk.fd) < 0 ? -errno : 0;
    if (!err) {
        disk.good = all;
        return;
    }
    if (!disk.bad)
        disk.after = disk.good;
    disk.bad = all;
    disk.err = err;
}

/* What was stored before that close is on the disk. */
static int sync_closed(uint64_t closed)
{
    int err = 0;
    lock_take(&disk.lock);
    if (closed > MAX(disk.good, disk.bad))
        sync_disk();
    if (disk.after < closed && closed <= disk.bad)
        err = disk.err;
    lock_drop(&disk.lock);
    return err;
}

static int sync_dirs(struct fid fid)
{
    char name[DATAFILE_NAME_BYTES];
    datafile_name(fid, name);
    name[2] = 0;
    int fd = openat(datafiles.dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    uint64_t began = wait_begin();
    int err = fsync(fd) < 0 || fsync(datafiles.dirfd) < 0 ? -errno : 0;
    wait_end(WAIT_DISK, began);
    close(fd);
    return err;
}

/* A new file's name must be on disk too. */
static int sync_name(struct file *f)
{
    struct sync_turn turn;
    lock_take(&datafiles.lock);
    bool there = f->rec->data_synced;
    unsigned replaced = f->data_replaced;
    uint64_t lost = f->data_sync.names_lost;
    lock_drop(&datafiles.lock);
    if (there)
        return 0;
    sync_begin(&names, &turn);
    int err = sync_end(&names, &turn, sync_dirs(f->fid));
    if (!err && lost != syncs_failures(&names))
        err = -EIO;
    lock_take(&datafiles.lock);
    if (!err && replaced == f->data_replaced)
        f->rec->data_synced = 1;
    lock_drop(&datafiles.lock);
    return err;
}

int datafile_sync(struct file *f)
{
    int fd, err = datafile_get_made(f, &fd);
    if (err)
        return err == -ENODATA ? 0 : err;
    lock_take(&datafiles.lock);
    uint64_t closed = f->data_sync.closed;
    f->data_sync.closed = 0;
    f->data_sync.stored = false;
    lock_drop(&datafiles.lock);
    uint64_t began = wait_begin();
    err = fdatasync(fd) < 0 ? -errno : 0;
    wait_end(WAIT_DISK, began);
    datafile_put(f);
    if (!err && closed)
        err = sync_closed(closed);
    return err ? err : sync_name(f);
}
