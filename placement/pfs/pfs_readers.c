/* pfs_readers.c - descriptors for an owner's reads: the owner has fid, path and version, and the file is not
 * open here.
 *
 * An owner reads a file's chunks one after the other, so a few descriptors are kept, by fid and version.  A
 * new version is opened again, since network file systems promise the bytes of another client's close only to
 * opens after it.  A thread closes descriptors after 5 s without use, because a descriptor of a file that was
 * removed elsewhere occupies space on the PFS.  The thread sleeps while there are none.
 */
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_file.h"
#include "transport/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define READERS 64
#define IDLE_MS 5000

struct reader {
    int fd; /* -1: free */
    unsigned users;
    struct fid fid;
    struct version version;
    uint64_t used_ms;
    _Atomic bool seen; /* a read has found that the file has this version */
};

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t changed;
    struct reader all[READERS];
    unsigned open;
    pthread_t reaper;
    bool running, stop;
} readers;
static pthread_once_t readers_once = PTHREAD_ONCE_INIT;

static void readers_init(void)
{
    lock_init(&readers.lock, RANK_LEAF);
    lock_cond_init(&readers.changed);
    for (int i = 0; i < READERS; i++)
        readers.all[i].fd = -1;
}

static int take_fd(struct reader *r)
{
    int fd = r->fd;
    r->fd = -1;
    readers.open--;
    return fd;
}

/* Lock held: a descriptor that was not used for IDLE_MS (all: any unused one), or -1.  *next: ms until there
 * is one. */
static int idle_fd(bool all, uint64_t *next)
{
    uint64_t now = boot_ms();
    *next = IDLE_MS;
    for (int i = 0; i < READERS; i++) {
        struct reader *r = &readers.all[i];
        if (r->fd < 0 || r->users)
            continue;
        uint64_t idle = now - MIN(now, r->used_ms);
        if (all || idle >= IDLE_MS)
            return take_fd(r);
        *next = MIN(*next, IDLE_MS - idle);
    }
    return -1;
}

static void *reaper(void *arg)
{
    (void)arg;
    lock_take(&readers.lock);
    while (!readers.stop) {
        uint64_t next;
        int fd = idle_fd(false, &next);
        if (fd < 0) {
            lock_wait(&readers.lock, &readers.changed, readers.open ? next : 0);
            continue;
        }
        lock_drop(&readers.lock);
        close(fd);
        lock_take(&readers.lock);
    }
    lock_drop(&readers.lock);
    return NULL;
}

void pfs_data_stop(void)
{
    pthread_once(&readers_once, readers_init);
    lock_take(&readers.lock);
    bool running = readers.running;
    readers.stop = true;
    pthread_cond_broadcast(&readers.changed);
    lock_drop(&readers.lock);
    if (running)
        pthread_join(readers.reaper, NULL);
    uint64_t next;
    lock_take(&readers.lock);
    for (int fd; (fd = idle_fd(true, &next)) >= 0;)
        close(fd);
    readers.running = readers.stop = false;
    lock_drop(&readers.lock);
}

static struct reader *find(struct fid fid, const struct version *v)
{
    struct reader *found = NULL;
    lock_take(&readers.lock);
    for (int i = 0; i < READERS && !found; i++) {
        struct reader *r = &readers.all[i];
        if (r->fd >= 0 && fid_eq(r->fid, fid) && version_eq(&r->version, v))
            found = r;
    }
    if (found)
        found->users++;
    lock_drop(&readers.lock);
    return found;
}

static void release(struct reader *r)
{
    int fd = -1;
    lock_take(&readers.lock);
    r->used_ms = boot_ms();
    if (!--r->users && readers.stop)
        fd = take_fd(r);
    pthread_cond_broadcast(&readers.changed);
    lock_drop(&readers.lock);
    if (fd >= 0)
        close(fd);
}

/* A free place: an empty one; else an unused one of the same file; else the unused one that was used longest
 * ago. */
static struct reader *place(struct fid fid)
{
    struct reader *best = NULL;
    for (int i = 0; i < READERS; i++) {
        struct reader *r = &readers.all[i];
        if (r->fd < 0)
            return r;
        if (r->users)
            continue;
        if (fid_eq(r->fid, fid))
            return r;
        if (!best || r->used_ms < best->used_ms)
            best = r;
    }
    return best;
}

/* Lock held. */
static void start_reaper(void)
{
    if (readers.running)
        return;
    int err = pthread_create(&readers.reaper, NULL, reaper, NULL);
    if (err)
        die("no thread for idle descriptors of the PFS: error %d", err);
    readers.running = true;
}

/* Keeps fd for the next reads of this version; the caller uses it now.  NULL: there is no place, and fd stays
 * the caller's. */
static struct reader *insert(struct fid fid, const struct version *v, int fd)
{
    int old = -1;
    lock_take(&readers.lock);
    struct reader *r = readers.stop ? NULL : place(fid);
    if (r) {
        if (r->fd >= 0)
            old = take_fd(r);
        *r = (struct reader){.fd = fd, .users = 1, .fid = fid, .version = *v, .used_ms = boot_ms()};
        readers.open++;
        start_reaper();
        pthread_cond_broadcast(&readers.changed);
    }
    lock_drop(&readers.lock);
    if (old >= 0)
        close(old);
    return r;
}

int pfs_read_chunk_at(struct fid fid, const char *path, struct pfs_chunk_read *r)
{
    pthread_once(&readers_once, readers_init);
    const struct version want = r->version;
    struct reader *reader = find(fid, &want);
    if (reader) {
        int err = pfs_read_version(reader->fd, reader->seen, r, NULL);
        if (!err)
            reader->seen = true;
        release(reader);
        if (err != -ESTALE || !version_eq(&r->version, &want))
            return err;
    }
    struct statx stx;
    int fd;
    int err = pfs_open_path(fid, path, O_RDONLY, &fd, &stx);
    if (err == -ENOENT)
        return -ESTALE;
    if (err)
        return err;
    reader = insert(fid, &want, fd);
    struct version now = version_of(&stx);
    err = pfs_read_version(fd, version_eq(&now, &want), r, NULL);
    if (reader && !err)
        reader->seen = true;
    if (reader)
        release(reader);
    else
        close(fd);
    return err;
}
