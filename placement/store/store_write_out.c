/* store_write_out.c - brings to the cache's disk what only the page cache has, while the daemon still waits for
 * the PFS.  At a clean end all of it must be there, and it may be much: all that was written and read last.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "transport/jobs.h"

static struct {
    struct lock lock; /* RANK_LEAF */
    bool begun;       /* the thread is to be joined */
    bool runs;
    pthread_t thread;
    int err; /* the first error: syncfs tells an error of the disk only once */
} writing_out = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

static int sync_cache(void)
{
    return syncfs(store.dir.fd) < 0 ? -errno : 0;
}

static void *write_out(void *arg)
{
    (void)arg;
    int err = sync_cache();
    lock_take(&writing_out.lock);
    writing_out.err = writing_out.err ? writing_out.err : err;
    writing_out.runs = false;
    lock_drop(&writing_out.lock);
    return NULL;
}

void store_write_out_begin(void)
{
    lock_take(&writing_out.lock);
    if (writing_out.begun && !writing_out.runs) { /* the thread is done with the lock: this does not wait */
        pthread_join(writing_out.thread, NULL);
        writing_out.begun = false;
    }
    if (!writing_out.begun) /* without a thread store_close does all of it */
        writing_out.begun = writing_out.runs =
            !thread_start(&writing_out.thread, write_out, NULL, "eddy-writeout");
    lock_drop(&writing_out.lock);
}

int store_write_out_end(bool all)
{
    if (writing_out.begun)
        pthread_join(writing_out.thread, NULL);
    int now = all ? sync_cache() : 0, err = writing_out.err ? writing_out.err : now;
    writing_out.begun = writing_out.runs = false;
    writing_out.err = 0;
    return all ? err : 0;
}
