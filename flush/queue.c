/* queue.c - which files are dirty, in which order.
 *
 * Every dirty file is on one of three lists, which holds a reference to it:
 *
 *     becomes dirty --> READY ----------> RUNNING --- clean: off the lists
 *                         ^ ^  (a pass)     | |
 *                         | '--- dirty -----' '-- failed --> FAILED
 *                         |    meanwhile                        |
 *                         '----- back-off over, or asked -------'
 *
 * READY is a list per policy, each in the order in which files became dirty: what holds for the
 * first file of one holds for all of it, or will later.  What moves them is in pass.c (into RUNNING
 * and out of it) and retry.c (out of FAILED).
 */
#include "flush/flush_int.h"

#include "placement/store/store.h"

#include <stdlib.h>

struct flush_state flush;

void queue_init(struct file_list *l)
{
    l->first = NULL;
    l->last = &l->first;
    l->n = 0;
}

void queue_append(struct file_list *l, struct file *f)
{
    f->flush_list = l;
    f->flush_next = NULL;
    f->flush_prev = l->last;
    *l->last = f;
    l->last = &f->flush_next;
    l->n++;
}

void queue_prepend(struct file_list *l, struct file *f)
{
    f->flush_list = l;
    f->flush_next = l->first;
    f->flush_prev = &l->first;
    if (l->first)
        l->first->flush_prev = &f->flush_next;
    else
        l->last = &f->flush_next;
    l->first = f;
    l->n++;
}

void queue_remove(struct file *f)
{
    struct file_list *l = f->flush_list;
    *f->flush_prev = f->flush_next;
    if (f->flush_next)
        f->flush_next->flush_prev = f->flush_prev;
    else
        l->last = f->flush_prev;
    f->flush_list = NULL;
    f->flush_next = NULL;
    f->flush_prev = NULL;
    l->n--;
}

/* A file for which nothing else was said has the mount's.  What is to be put beside its file keeps
 * that from being opened. */
static enum flush_policy policy_of(const struct file *f)
{
    if (f->forgotten)
        return FLUSH_IMMEDIATE;
    return f->flush_policy ? (enum flush_policy)(f->flush_policy - 1) : flush.config.policy;
}

struct file_list *queue_ready(const struct file *f)
{
    return &flush.ready[policy_of(f)];
}

unsigned queue_nready(void)
{
    unsigned n = 0;
    for (unsigned p = 0; p < FLUSH_POLICIES; p++)
        n += flush.ready[p].n;
    return n;
}

static bool add_locked(struct file *f)
{
    if (f->flush_queued)
        return false;
    f->flush_queued = true;
    f->flush_seq = ++flush.seq;
    f->dirty_since_ms = boot_ms();
    return true;
}

static void add(struct file *f, bool dirtied)
{
    file_ref(f);
    lock_take(&flush.lock);
    bool added = add_locked(f);
    f->flush_dirtied |= dirtied && f->flushing;
    struct file_list *l = queue_ready(f);
    if (added)
        queue_append(l, f);
    bool wake = added && (l->n == 1 || flush.urgent_all);
    lock_drop(&flush.lock);
    if (!added)
        file_put(f);
    else
        names_changed();
    if (wake) /* behind another one: the flusher is at work, or waits for what that one waits for */
        bell_ring();
}

void queue_add(struct file *f)
{
    add(f, false);
}

void queue_dirtied(struct file *f)
{
    add(f, true);
}

static struct file *before(const struct file_list *l, struct file **place)
{
    return place == &l->first ? NULL : container_of(place, struct file, flush_next);
}

/* Most come to one of the ends. */
void queue_insert(struct file_list *l, struct file *f)
{
    if (l->first && l->first->flush_seq > f->flush_seq) {
        queue_prepend(l, f);
        return;
    }
    struct file *b = before(l, l->last);
    while (b && b->flush_seq > f->flush_seq)
        b = before(l, b->flush_prev);
    struct file **place = b ? &b->flush_next : &l->first;
    f->flush_list = l;
    f->flush_next = *place;
    f->flush_prev = place;
    if (*place)
        (*place)->flush_prev = &f->flush_next;
    else
        l->last = &f->flush_next;
    *place = f;
    l->n++;
}

void flush_set_policy(struct file *f, int policy)
{
    lock_take(&flush.lock);
    struct file_list *was = queue_ready(f);
    f->flush_policy = (uint8_t)(policy + 1);
    bool moves = f->flush_list == was && was != queue_ready(f);
    if (moves) {
        queue_remove(f);
        queue_insert(queue_ready(f), f);
    }
    lock_drop(&flush.lock);
    store_set_policy(f, (uint8_t)(policy + 1));
    if (moves)
        bell_ring();
}

void queue_forgotten(struct file *f)
{
    lock_take(&flush.lock);
    bool waits = f->flush_list && f->flush_list != &flush.running;
    f->flush_again = f->flushing;
    if (waits) {
        queue_remove(f);
        f->retry_at_ms = 0;
        queue_insert(queue_ready(f), f);
    }
    lock_drop(&flush.lock);
    bell_ring(); /* also a pass that waits for a lull */
}

/* It need not wait for its turn for it to be seen that it has nothing: until then its object, its
 * record and its room are taken, and of temporary files there may be thousands before the next lull. */
void queue_deleted(struct file *f)
{
    lock_take(&flush.lock);
    bool waits = f->flush_list && f->flush_list != &flush.running && !f->forgotten;
    if (waits) {
        queue_remove(f);
        f->flush_queued = false;
        flush.progress++;
        pthread_cond_broadcast(&flush.ended);
    }
    lock_drop(&flush.lock);
    if (!waits)
        return;
    names_changed();
    file_put(f);
}

enum flush_policy flush_policy_of(struct file *f)
{
    lock_take(&flush.lock);
    enum flush_policy p = policy_of(f);
    lock_drop(&flush.lock);
    return p;
}

static size_t take_all(struct file **out, const struct file_list *l)
{
    size_t n = 0;
    for (struct file *f = l->first; f; f = f->flush_next)
        out[n++] = file_ref(f);
    return n;
}

struct file **queue_files(size_t *n)
{
    lock_take(&flush.lock);
    struct file **out =
        xcalloc(MAX(flush.running.n + queue_nready() + flush.failed.n, 1u), sizeof(*out));
    *n = take_all(out, &flush.running);
    for (unsigned p = 0; p < FLUSH_POLICIES; p++)
        *n += take_all(out + *n, &flush.ready[p]);
    *n += take_all(out + *n, &flush.failed);
    lock_drop(&flush.lock);
    return out;
}
