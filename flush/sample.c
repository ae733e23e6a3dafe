/* sample.c - files that applications read and write through the kernel.  This daemon does not see these
 * reads and writes, so a thread looks five times a second at each file that is written.  A change is activity
 * (no lull), and makes the file dirty.  When no process can change the file any more, its claim goes back.
 * While any such file is open, the thread also looks at the cache's disk: reads by others are activity.
 * Without such files it sleeps.
 */
#include "flush/flush.h"
#include "flush/flush_events.h"
#include "flush/flush_int.h"
#include "flush/lull.h"
#include "flush/queue.h"
#include "placement/claims/claim_give.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/kernel_io.h"
#include "transport/lock.h"

#define EVERY_MS 200

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t more;
    bool running, any;
    pthread_t thread;
} sampler = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* The lull begins when the last store was, not when it is seen. */
void flush_kernel_wrote(struct file *f)
{
    lull_past(kernel_io_age_ms(f));
    queue_add(f);
}

static void settled(struct file *f)
{
    pfs_drop_clean(f);
    claim_give_back(f);
}

void flush_kernel_opened(void)
{
    lock_take(&sampler.lock);
    if (!sampler.any)
        pthread_cond_signal(&sampler.more);
    sampler.any = true;
    lock_drop(&sampler.lock);
}

/* False: the end.  A file that comes while we look sets `any` again.  Files that come while there are others
 * wait for the next turn: a look at all files for each new one would cost the square of their number. */
static bool wait_for_files(bool left)
{
    uint64_t next = boot_ms() + EVERY_MS, now;
    lock_take(&sampler.lock);
    while (sampler.running && left && (now = boot_ms()) < next)
        lock_wait(&sampler.lock, &sampler.more, next - now);
    while (sampler.running && !left && !sampler.any)
        lock_wait(&sampler.lock, &sampler.more, 0);
    sampler.any = false;
    bool running = sampler.running;
    lock_drop(&sampler.lock);
    return running;
}

unsigned flush_sample(void)
{
    unsigned left = kernel_io_sample(flush_kernel_wrote, settled);
    if (left)
        room_look();
    return left;
}

/* Are there files that the kernel reads or writes? */
static bool sample_all(struct disk_counts *disk)
{
    bool left = flush_sample() > 0, open = kernel_io_open_files() > 0;
    struct disk_counts now = {.known = false};
    if (open)
        disk_look(&now);
    if (disk_busy(disk, &now))
        lull_past(0);
    return left || open;
}

static void *sample(void *arg)
{
    struct disk_counts disk = {.known = false};
    (void)arg;
    for (bool left = false; wait_for_files(left);)
        left = sample_all(&disk);
    return NULL;
}

int sample_start(void)
{
    lock_cond_init(&sampler.more);
    sampler.running = true;
    sampler.any = false;
    return -pthread_create(&sampler.thread, NULL, sample, NULL);
}

void sample_stop(void)
{
    lock_take(&sampler.lock);
    sampler.running = false;
    pthread_cond_signal(&sampler.more);
    lock_drop(&sampler.lock);
    pthread_join(sampler.thread, NULL);
}
