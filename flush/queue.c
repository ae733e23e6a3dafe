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
 * READY is in the order in which files became dirty.  What moves them is in pass.c (into RUNNING
 * and out of it) and retry.c (out of FAILED).
 */
#include "flush/flush_int.h"

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

static bool add_locked(struct file *f)
{
    if (f->flush_queued)
        return false;
    f->flush_queued = true;
    f->flush_seq = ++flush.seq;
    f->dirty_since_ms = boot_ms();
    return true;
}

void queue_add(struct file *f)
{
    file_ref(f);
    lock_take(&flush.lock);
    bool added = add_locked(f);
    if (added)
        queue_append(&flush.ready, f);
    bool wake = added && (flush.ready.n == 1 || flush.urgent_all);
    lock_drop(&flush.lock);
    if (!added)
        file_put(f);
    else
        names_changed();
    if (wake) /* with more than one the flusher is at work, or waits for the lull that it needs
                 anyway */
        bell_ring();
}

struct file **queue_files(size_t *n)
{
    const struct file_list *lists[] = {&flush.running, &flush.ready, &flush.failed};
    lock_take(&flush.lock);
    struct file **out =
        xcalloc(MAX(flush.running.n + flush.ready.n + flush.failed.n, 1u), sizeof(*out));
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (struct file *f = lists[i]->first; f; f = f->flush_next)
            out[at++] = file_ref(f);
    lock_drop(&flush.lock);
    *n = at;
    return out;
}
