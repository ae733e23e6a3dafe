/* queue.c - which files are dirty, in which order.
 *
 * Every dirty file is on one of three lists, which holds a reference to it:
 *
 *     becomes dirty --> READY ----------> RUNNING --- clean: off the lists
 *                         ^ ^  (a run)      | |
 *                         | '--- dirty -----' '-- failed --> FAILED
 *                         |    meanwhile                        |
 *                         '----- back-off over, or asked -------'
 *
 * READY is a list per policy, each in the order in which files became dirty.  What is decided for the
 * first file of a list holds for all of the list, or will later.  run.c moves files (into RUNNING
 * and out of it), and so does retry.c (out of FAILED).
 */
#include "flush/flush.h"
#include "flush/flush_events.h"
#include "flush/lull.h"
#include "flush/queue.h"
#include "placement/claims/claim_forget.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

#include <stdlib.h>

struct flush_state flush;

static void part_begin(struct file *f, struct file_part *part)
{
    ((struct flush_item *)part)->f = f;
}

const struct file_part_ops flush_item_ops = {.size = sizeof(struct flush_item),
                                             .begin = part_begin};

void queue_init(struct item_list *l)
{
    l->first = NULL;
    l->last = &l->first;
    l->n = 0;
}

void queue_append(struct item_list *l, struct flush_item *it)
{
    it->list = l;
    it->next = NULL;
    it->prev = l->last;
    *l->last = it;
    l->last = &it->next;
    l->n++;
}

void queue_prepend(struct item_list *l, struct flush_item *it)
{
    it->list = l;
    it->next = l->first;
    it->prev = &l->first;
    if (l->first)
        l->first->prev = &it->next;
    else
        l->last = &it->next;
    l->first = it;
    l->n++;
}

void queue_remove(struct flush_item *it)
{
    struct item_list *l = it->list;
    *it->prev = it->next;
    if (it->next)
        it->next->prev = it->prev;
    else
        l->last = it->prev;
    it->list = NULL;
    it->next = NULL;
    it->prev = NULL;
    l->n--;
}

/* A file without a policy of its own has the mount's.  A file whose data is to be put beside it is urgent,
 * because it cannot be opened until then. */
static enum flush_policy policy_of(const struct flush_item *it)
{
    if (claim_is_forgotten(it->f))
        return FLUSH_IMMEDIATE;
    return it->policy ? (enum flush_policy)(it->policy - 1) : flush.config.policy;
}

struct item_list *queue_ready(const struct flush_item *it)
{
    return &flush.ready[policy_of(it)];
}

unsigned queue_nready(void)
{
    unsigned n = 0;
    for (unsigned p = 0; p < FLUSH_POLICIES; p++)
        n += flush.ready[p].n;
    return n;
}

static bool add_locked(struct flush_item *it)
{
    if (it->queued)
        return false;
    it->queued = true;
    it->seq = ++flush.seq;
    it->dirty_since_ms = boot_ms();
    return true;
}

/* A loan has the policy of its file. */
static uint8_t policy_for(const struct file *f)
{
    struct file *real = fid_is_loan(f->fid) ? file_find_used(fid_real(f->fid)) : NULL;
    const struct flush_item *it = real ? item_if(real) : NULL;
    uint8_t policy = it ? it->policy : 0;
    if (real)
        file_put(real);
    return policy;
}

/* With the lock.  True: it waits no more, and the list's reference is the caller's. */
static bool leave_lists(struct file *f, struct flush_item *it)
{
    if (!it->list || it->list == &flush.running || claim_is_forgotten(f))
        return false;
    queue_remove(it);
    it->queued = false;
    flush.progress++;
    pthread_cond_broadcast(&flush.ended);
    return true;
}

static bool is_clean(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return !info.dirty;
}

/* What was told of f came late: a run has brought it to the PFS since. */
static void drop_if_clean(struct file *f)
{
    if (!is_clean(f))
        return;
    lock_take(&flush.lock);
    bool left = leave_lists(f, item_of(f));
    lock_drop(&flush.lock);
    if (!left)
        return;
    if (!is_clean(f)) /* it was changed before it left, and told then */
        queue_add(f);
    file_put(f);
}

static void add(struct file *f, bool dirtied)
{
    struct flush_item *it = item_of(file_ref(f));
    uint8_t policy = policy_for(f);
    lock_take(&flush.lock);
    if (policy && !it->queued)
        it->policy = policy;
    bool added = add_locked(it);
    it->dirtied |= dirtied && it->running;
    struct item_list *l = queue_ready(it);
    if (added)
        queue_append(l, it);
    bool wake = added && (l->n == 1 || flush.urgent_all);
    lock_drop(&flush.lock);
    if (!added)
        file_put(f);
    else
        drop_if_clean(f);
    if (added)
        flush_list_changed();
    if (wake) /* it is behind another file: the flusher works, or waits for what that file waits for */
        bell_ring();
}

void queue_add(struct file *f)
{
    add(f, false);
}

void flush_dirtied(struct file *f)
{
    add(f, true);
}

static struct flush_item *before(const struct item_list *l, struct flush_item **place)
{
    return place == &l->first ? NULL : container_of(place, struct flush_item, next);
}

/* Most files are put at one of the ends. */
void queue_insert(struct item_list *l, struct flush_item *it)
{
    if (l->first && l->first->seq > it->seq) {
        queue_prepend(l, it);
        return;
    }
    struct flush_item *b = before(l, l->last);
    while (b && b->seq > it->seq)
        b = before(l, b->prev);
    struct flush_item **place = b ? &b->next : &l->first;
    it->list = l;
    it->next = *place;
    it->prev = place;
    if (*place)
        (*place)->prev = &it->next;
    else
        l->last = &it->next;
    *place = it;
    l->n++;
}

void flush_set_policy(struct file *f, int policy)
{
    struct flush_item *it = item_of(f);
    lock_take(&flush.lock);
    struct item_list *was = queue_ready(it);
    it->policy = (uint8_t)(policy + 1);
    bool moves = it->list == was && was != queue_ready(it);
    if (moves) {
        queue_remove(it);
        queue_insert(queue_ready(it), it);
    }
    lock_drop(&flush.lock);
    store_set_policy(f, (uint8_t)(policy + 1));
    if (moves)
        bell_ring();
}

void flush_forgotten(struct file *f)
{
    struct flush_item *it = item_of(f);
    lock_take(&flush.lock);
    bool waits = it->list && it->list != &flush.running;
    it->again = it->running;
    it->unchecked = true;
    if (waits) {
        queue_remove(it);
        it->retry_at_ms = 0;
        queue_insert(queue_ready(it), it);
    }
    lock_drop(&flush.lock);
    bell_ring(); /* also a run that waits for a lull */
}

/* A removed file does not wait for its turn: until the flusher has seen that it has nothing to flush, its
 * object, its record and its room are in use, and there may be thousands of temporary files before the next
 * lull. */
void flush_deleted(struct file *f)
{
    struct flush_item *it = item_if(f);
    if (!it)
        return;
    lock_take(&flush.lock);
    bool left = leave_lists(f, it);
    lock_drop(&flush.lock);
    if (!left)
        return;
    flush_list_changed();
    file_put(f);
}

enum flush_policy flush_policy_of(struct file *f)
{
    lock_take(&flush.lock);
    enum flush_policy p = policy_of(item_of(f));
    lock_drop(&flush.lock);
    return p;
}

static size_t take_all(struct file **out, const struct item_list *l)
{
    size_t n = 0;
    for (struct flush_item *it = l->first; it; it = it->next)
        out[n++] = file_ref(it->f);
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
