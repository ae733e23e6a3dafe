/* remover.c - see remover.h. */
#include "placement/store/remover.h"

#include "placement/store/state.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "transport/jobs.h"

#define FILES_MAX 8192                /* an object each, about 1 KiB */
#define BYTES_MAX (UINT64_C(1) << 28) /* ... and a 64th of the cache at most */

unsigned remover_pause_ms = 50; /* several times what rm needs for a file on a slow PFS */

static struct {
    struct lock lock; /* RANK_LEAF: all of it, and removed_* of all files */
    pthread_cond_t wake;
    struct file *first, **last; /* oldest first */
    unsigned n;
    uint64_t bytes;
    uint64_t last_ms; /* when the last one was removed, taken or not: boot_ms */
    bool running, stopping;
    void (*end)(struct file *f); /* takes one down */
    pthread_t thread;
} remover = {.last = &remover.first};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    lock_init(&remover.lock, RANK_LEAF);
    lock_cond_init(&remover.wake);
}

/* No other thread has the file: the answer stays true. */
static uint64_t bytes_of(const struct file *f)
{
    uint64_t pages = (core(f)->size + PAGE - 1) / PAGE;
    return MAX(pages, (uint64_t)f->rec->valid) * PAGE;
}

/* ---- the list, with the lock ---- */

static void add(struct file *f)
{
    f->removed_next = NULL;
    f->removed_prev = remover.last;
    *remover.last = f;
    remover.last = &f->removed_next;
    remover.bytes += bytes_of(f);
    if (!remover.n++)
        pthread_cond_signal(&remover.wake);
}

static void take_out(struct file *f)
{
    *f->removed_prev = f->removed_next;
    if (f->removed_next)
        f->removed_next->removed_prev = f->removed_prev;
    else
        remover.last = f->removed_prev;
    f->removed_prev = NULL;
    remover.bytes -= bytes_of(f);
    remover.n--;
}

/* ---- the thread ---- */

/* Waits until there is a file to take down, and takes the oldest off the list.  NULL: none will come. */
static struct file *next(void)
{
    for (;;) {
        uint64_t now = boot_ms(), due = remover.last_ms + remover_pause_ms;
        struct file *f = remover.first;
        if (f && (now >= due || remover.stopping)) {
            take_out(f);
            return f;
        }
        if (remover.stopping)
            return NULL;
        lock_wait(&remover.lock, &remover.wake, f ? due - now : 0);
    }
}

static void *run(void *arg)
{
    struct file *f;
    (void)arg;
    lock_take(&remover.lock);
    while ((f = next())) {
        lock_drop(&remover.lock);
        remover.end(f);
        lock_take(&remover.lock);
    }
    lock_drop(&remover.lock);
    return NULL;
}

void remover_ready(void (*end)(struct file *f))
{
    pthread_once(&once, init);
    lock_take(&remover.lock);
    if (!remover.running && !remover.stopping) {
        remover.end = end;
        remover.running = !thread_start(&remover.thread, run, NULL, "eddy-remove");
    }
    lock_drop(&remover.lock);
}

void remover_stop(void)
{
    pthread_once(&once, init);
    lock_take(&remover.lock);
    bool running = remover.running;
    remover.stopping = true;
    pthread_cond_signal(&remover.wake);
    lock_drop(&remover.lock);
    if (running)
        pthread_join(remover.thread, NULL);
    lock_take(&remover.lock);
    remover.running = remover.stopping = false;
    lock_drop(&remover.lock);
}

/* ---- giving and taking ---- */

static bool has_room(uint64_t bytes)
{
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    return remover.n < FILES_MAX && remover.bytes + bytes <= MIN(BYTES_MAX, room / 64);
}

static bool can_wait(const struct file *f)
{
    return core(f)->flags & CORE_DELETED && bytes_of(f) <= REMOVER_FILE_MAX;
}

bool remover_take(struct file *f)
{
    pthread_once(&once, init);
    bool takes = can_wait(f);
    lock_take(&remover.lock);
    remover.last_ms = boot_ms();
    takes = takes && remover.running && !remover.stopping && has_room(bytes_of(f));
    if (takes)
        add(f);
    lock_drop(&remover.lock);
    return takes;
}

bool remover_give_back(struct file *f)
{
    pthread_once(&once, init);
    lock_take(&remover.lock);
    bool waits = f->removed_prev != NULL;
    if (waits)
        take_out(f);
    lock_drop(&remover.lock);
    return waits;
}
