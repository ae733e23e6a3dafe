/* store_settle.c - brings to the cache's disk what only the page cache has, while the daemon still waits for
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
} settling = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

static int sync_cache(void)
{
    return syncfs(store.dir.fd) < 0 ? -errno : 0;
}

static void *settle(void *arg)
{
    (void)arg;
    int err = sync_cache();
    lock_take(&settling.lock);
    settling.err = settling.err ? settling.err : err;
    settling.runs = false;
    lock_drop(&settling.lock);
    return NULL;
}

void store_settle_begin(void)
{
    lock_take(&settling.lock);
    if (settling.begun && !settling.runs) { /* the thread is done with the lock: this does not wait */
        pthread_join(settling.thread, NULL);
        settling.begun = false;
    }
    if (!settling.begun) /* without a thread store_close does all of it */
        settling.begun = settling.runs =
            !thread_start(&settling.thread, settle, NULL, "eddy-settle");
    lock_drop(&settling.lock);
}

int store_settle_end(bool all)
{
    if (settling.begun)
        pthread_join(settling.thread, NULL);
    int now = all ? sync_cache() : 0, err = settling.err ? settling.err : now;
    settling.begun = settling.runs = false;
    settling.err = 0;
    return all ? err : 0;
}
