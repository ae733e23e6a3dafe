/* ask.c - who asks for a flush and waits for it: one file, all of them, room for a writer. */
#include "flush/flush_int.h"

#include "placement/store.h"

#include <errno.h>

#define PROGRESS_MS   200
#define ROOM_RETRY_MS 1000 /* failed files are tried again for room this often at most */

/* ---- one file ---- */

/* Lock held: waits until a pass that began after `wanted` - 1 has ended, and begins it if nobody
 * does. */
static int wait_for_pass(struct file *f, uint64_t wanted)
{
    while (f->flush_queued) {
        if (f->flush_ended >= wanted)
            return f->flush_error;
        if (flush.stop)
            return -ECANCELED;
        if (f->flushing)
            lock_wait(&flush.lock, &flush.ended, 0);
        else
            pass_start(f, true);
    }
    return 0; /* clean: the pass that ran when we came found nothing after it */
}

int flush_file(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    if (!info.dirty)
        return 0;
    queue_add(f); /* in case the store's word is still on its way */
    lock_take(&flush.lock);
    /* What is dirty now is all taken by a pass that begins from now on. */
    uint64_t wanted = f->flush_begun + 1;
    f->flush_urgent++;
    if (f->flushing) {
        f->flush_again = true;
        lock_drop(&flush.lock);
        bell_ring(); /* if it waits for a lull: go on */
        lock_take(&flush.lock);
    }
    int err = flush.stop ? -ECANCELED : wait_for_pass(f, wanted);
    f->flush_urgent--;
    lock_drop(&flush.lock);
    return err;
}

/* ---- all ---- */

struct left {
    uint64_t files, failed;
};

/* Lock held: of the files that were dirty when the order was at `upto`, how many are to be done,
 * how many failed. */
static struct left count_left(uint64_t upto)
{
    struct left l = {0, 0};
    const struct file_list *lists[] = {&flush.ready, &flush.running};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (const struct file *f = lists[i]->first; f; f = f->flush_next)
            l.files += f->flush_seq <= upto;
    for (const struct file *f = flush.failed.first; f; f = f->flush_next)
        l.failed += f->flush_seq <= upto;
    return l;
}

static bool report(bool (*progress)(void *arg, const struct flush_progress *p), void *arg,
                   uint64_t flushed_before, struct left left)
{
    uint64_t done = counted(flushed_bytes) - flushed_before;
    struct flush_progress p = {done, done + flush_dirty_bytes(), left.files + left.failed};
    return !progress || progress(arg, &p);
}

/* Lock held: everybody's flushing from now on; running passes must be followed by a whole one if
 * the file is dirty then. */
static uint64_t begin_all(void)
{
    flush.urgent_all++;
    retry_due(true, boot_ms());
    for (struct file *f = flush.running.first; f; f = f->flush_next)
        f->flush_again = true;
    return flush.seq;
}

/* Lock held: something may have changed for flush_all.  Counting looks at every file, so it is not
 * done for each that ends. */
static void wait_for_news(void)
{
    uint64_t until = boot_ms() + PROGRESS_MS;
    while (flush.ready.n + flush.running.n && !flush.stop) {
        uint64_t now = boot_ms();
        if (now >= until)
            break;
        lock_wait(&flush.lock, &flush.ended, until - now);
    }
}

int flush_all(bool (*progress)(void *arg, const struct flush_progress *p), void *arg)
{
    uint64_t before = counted(flushed_bytes);
    flush_sample();
    lock_take(&flush.lock);
    uint64_t upto = begin_all();
    lock_drop(&flush.lock);
    bell_ring();
    struct left left;
    int err = 0;
    lock_take(&flush.lock);
    for (;;) {
        left = count_left(upto);
        bool stop = flush.stop;
        lock_drop(&flush.lock);
        bool go_on = report(progress, arg, before, left);
        lock_take(&flush.lock);
        if (!left.files)
            break;
        if (!go_on || stop) {
            err = -ECANCELED;
            break;
        }
        wait_for_news();
    }
    flush.urgent_all--;
    lock_drop(&flush.lock);
    bell_ring(); /* back to lulls */
    return err ? err : left.failed ? -EIO : 0;
}

/* ---- room ---- */

/* Lock held: is there anything that could become clean?  *ring: the flusher must be told. */
static bool something_to_do(bool *ring)
{
    uint64_t now = boot_ms();
    if (!flush.ready.n && !flush.running.n && now - flush.room_tried_ms >= ROOM_RETRY_MS) {
        flush.room_tried_ms = now;
        retry_due(true, now);
        *ring = flush.ready.n;
    }
    return flush.ready.n || flush.running.n;
}

/* Lock held: the answer when nothing can become clean.  Who comes for the first time since
 * something did had no room before that, and has it now; who comes again without has it not. */
static int no_room(uint64_t last_seen)
{
    if (flush.progress != last_seen)
        return 0;
    for (const struct file *f = flush.failed.first; f; f = f->flush_next)
        if (f->flush_error && f->flush_error != -EUCLEAN)
            return f->flush_error;
    return -ENOSPC;
}

/* Lock held. */
static int wait_for_room(uint64_t last_seen)
{
    uint64_t progress = flush.progress;
    bool ring = true;
    while (progress == flush.progress) {
        if (flush.stop)
            return -ECANCELED;
        if (!something_to_do(&ring))
            return no_room(last_seen);
        if (ring) {
            lock_drop(&flush.lock);
            bell_ring();
            lock_take(&flush.lock);
            ring = false;
        } else {
            lock_wait(&flush.lock, &flush.ended, 0);
        }
    }
    return 0;
}

int flush_make_room(struct file *f)
{
    static _Thread_local uint64_t last_seen =
        UINT64_MAX; /* progress when this thread was here last */
    (void)f;        /* oldest first, whoever asks: his own file is on the list as well */
    lock_take(&flush.lock);
    flush.urgent_all++;
    int err = wait_for_room(last_seen);
    last_seen = flush.progress;
    flush.urgent_all--;
    lock_drop(&flush.lock);
    bell_ring(); /* back to lulls */
    return err;
}
