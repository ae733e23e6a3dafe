/* hints.c - queues of entries, and what they take. */
#include "placement/foresight/far.h"
#include "placement/foresight/hint_files.h"
#include "placement/foresight/hints_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/foresight/queue_parse.h"

#define WHOLE_CHUNKS (UINT64_C(1) << 20) /* bytes: smaller ranges are parts of chunks */

struct lock hints_lock;
struct queue *hints_queues;
_Atomic uint64_t hints_now;

static struct hints_sums sums;

void hints_init(uint64_t limit_bytes)
{
    static bool made;
    if (!made)
        lock_init(&hints_lock, RANK_LEAF);
    made = true;
    sums = (struct hints_sums){.memory_max = limit_bytes};
}

void hints_end(void)
{
    hint_files_end();
}

void hints_sum(struct hints_sums *out)
{
    *out = sums;
    out->kept = far_kept();
}

bool hints_charge(int64_t bytes)
{
    if (bytes > (int64_t)(sums.memory_max - MIN(sums.memory, sums.memory_max)))
        return false;
    sums.memory += (uint64_t)bytes;
    return true;
}

void hints_staged(uint64_t bytes, uint64_t pinned)
{
    sums.staged += bytes;
    sums.pinned += pinned;
}

/* ---- queues ---- */

struct queue *hints_queue_new(void)
{
    if (sums.queues == QUEUES_MAX)
        return NULL;
    struct queue *q = xcalloc(1, sizeof(*q));
    q->prev_queue = &hints_queues;
    q->next_queue = hints_queues;
    if (hints_queues)
        hints_queues->prev_queue = &q->next_queue;
    hints_queues = q;
    sums.queues++;
    return q;
}

static void unlink_target(struct target *t)
{
    struct target **at = &t->file->targets;
    while (*at != t)
        at = &(*at)->file_next;
    *at = t->file_next;
}

static void free_queue(struct queue *q)
{
    for (uint32_t i = 0; i < q->ntargets; i++)
        free(q->target[i]);
    for (uint32_t i = 0; i < q->npaths; i++)
        hint_file_put(q->path[i]);
    sums.memory -= q->charged;
    free(q->path);
    free(q->target);
    free(q->entry);
    free(q->same);
    free(q->done);
    free(q->kept_at);
    free(q);
}

void hints_queue_end(struct queue *q)
{
    *q->prev_queue = q->next_queue;
    if (q->next_queue)
        q->next_queue->prev_queue = q->prev_queue;
    sums.queues--;
    sums.done++;
    sums.hints -= q->n;
    hints_now -= q->n;
    q->ended = true;
    for (uint32_t i = 0; i < q->ntargets; i++) {
        struct target *t = q->target[i];
        hints_unadmit(t);
        unlink_target(t);
        if (t->hinted)
            hints_tell(t, NEWS_UNKNOWN);
    }
    if (!q->busy)
        free_queue(q);
}

void hints_queue_left(struct queue *q)
{
    if (!--q->busy && q->ended)
        free_queue(q);
}

/* ---- memory ---- */

static uint32_t grown(uint32_t cap, uint32_t need)
{
    uint64_t more = MAX((uint64_t)need, (uint64_t)cap + cap / 2 + 16);
    return (uint32_t)MIN(more, UINT32_MAX - 1);
}

static uint64_t entries_memory(uint32_t n)
{
    const struct queue *q;
    return n * (uint64_t)(sizeof(*q->entry) + sizeof(*q->same) + sizeof(*q->done)) + far_memory(n);
}

/* Sets aside what the message may take. */
static bool charge(struct queue *q, const struct parsed_add *a)
{
    uint64_t bytes = (uint64_t)(a->targets - a->paths) +
                     a->n.paths * (sizeof(struct hinted) + 2 * sizeof(void *) + 16) +
                     a->n.targets * (sizeof(struct target) + sizeof(void *) + 16);
    if (q->n + (uint64_t)a->n.entries > q->cap)
        bytes += entries_memory(grown(q->cap, q->n + a->n.entries)) - entries_memory(q->cap);
    if (a->n.entries >= NO_ENTRY - q->n || !hints_charge((int64_t)bytes))
        return false;
    q->charged += bytes;
    return true;
}

static void grow_pointers(void *array, uint32_t *cap, uint32_t need)
{
    void **v;
    memcpy(&v, array, sizeof(v));
    if (need > *cap) {
        *cap = grown(*cap, need);
        v = xrealloc(v, *cap * sizeof(void *));
        memcpy(array, &v, sizeof(v));
    }
}

static void grow_entries(struct queue *q, uint32_t need)
{
    if (need <= q->cap)
        return;
    uint32_t cap = grown(q->cap, need);
    far_grow(q, cap);
    q->cap = cap;
    q->entry = xrealloc(q->entry, q->cap * sizeof(*q->entry));
    q->same = xrealloc(q->same, q->cap * sizeof(*q->same));
    q->done = xrealloc(q->done, q->cap);
}

/* ---- adding ---- */

static void add_target(struct queue *q, const struct queue_target *w)
{
    struct target *t = xcalloc(1, sizeof(*t));
    *t = (struct target){.file = q->path[w->path],
                         .queue = q,
                         .off = w->off,
                         .len = w->len,
                         .first = NO_ENTRY,
                         .last = NO_ENTRY};
    t->file_next = t->file->targets;
    t->file->targets = t;
    q->target[q->ntargets++] = t;
}

static void add_entry(struct queue *q, uint32_t target)
{
    struct target *t = q->target[target];
    uint32_t i = q->n++;
    q->entry[i] = target;
    q->same[i] = NO_ENTRY;
    q->done[i] = 0;
    if (t->first == NO_ENTRY)
        t->first = i;
    else
        q->same[t->last] = i;
    t->last = i;
}

int hints_add(struct queue *q, const struct parsed_add *a, int64_t *first)
{
    const uint8_t *at = a->paths;
    if (!charge(q, a))
        return -ENOBUFS;
    grow_pointers(&q->path, &q->paths_cap, q->npaths + a->n.paths);
    grow_pointers(&q->target, &q->targets_cap, q->ntargets + a->n.targets);
    grow_entries(q, q->n + a->n.entries);
    for (uint32_t i = 0; i < a->n.paths; i++) {
        size_t len;
        const char *path = queue_next_path(&at, &len);
        q->path[q->npaths++] = hint_file_get(path, len);
    }
    for (uint32_t i = 0; i < a->n.targets; i++) {
        struct queue_target w = queue_target_at(a, i);
        add_target(q, &w);
    }
    if (!q->begun_ms)
        q->begun_ms = boot_ms();
    *first = q->n;
    for (uint32_t i = 0; i < a->n.entries; i++)
        add_entry(q, queue_entry_at(a, i));
    sums.hints += a->n.entries;
    hints_now += a->n.entries;
    count(hints, a->n.entries);
    return 0;
}

/* ---- admitted ---- */

/* sign: 1 or -1, as an unsigned number. */
static void count_target(struct target *t, uint64_t sign)
{
    struct queue *q = t->queue;
    uint64_t bytes = sign * t->counted;
    uint64_t absent = t->life == LIFE_INIT ? sign : 0;
    uint64_t ahead = t->life == LIFE_AHEAD || t->life == LIFE_WRITTEN ? sign : 0;
    uint64_t unflushed = t->life == LIFE_WRITTEN || t->life == LIFE_WRITING ? bytes : 0;
    q->ahead += bytes;
    q->absent += t->life == LIFE_INIT ? bytes : 0;
    q->unflushed += unflushed;
    q->nadmitted += (uint32_t)sign;
    q->nabsent += (uint32_t)absent;
    q->nahead += (uint32_t)ahead;
    sums.admitted += sign;
    sums.absent += absent;
    sums.ahead += ahead;
    sums.ahead_bytes += bytes;
    sums.unflushed += unflushed;
}

void hints_unadmit(struct target *t)
{
    if (!t->admitted)
        return;
    count_target(t, UINT64_MAX);
    t->admitted = false;
    far_note(t);
    hint_file_unadmitted(t->file);
}

void hints_admit(struct target *t, uint64_t bytes)
{
    struct queue *q = t->queue;
    if (t->admitted)
        count_target(t, UINT64_MAX);
    else
        t->file->admitted++;
    if (bytes) {
        q->sized += !t->bytes;
        q->sized_bytes += bytes - t->bytes;
        t->bytes = bytes;
    }
    t->counted = hints_bytes(t);
    t->admitted = true;
    count_target(t, 1);
    far_note(t);
}

void hints_set_life(struct target *t, enum life life)
{
    if (t->admitted)
        count_target(t, UINT64_MAX);
    t->life = life;
    if (t->admitted)
        count_target(t, 1);
    far_note(t);
}

bool hints_step(struct target *t, enum life_event e)
{
    enum life life = t->life;
    bool happens = life_step(&life, e);
    if (happens)
        hints_set_life(t, life);
    return happens;
}

void hints_reached(struct target *t, int err)
{
    t->queue->nreached += !t->reached;
    t->reached = true;
    t->err = err;
    hints_unadmit(t);
}

void hints_again(struct target *t)
{
    if (t->listed)
        return;
    t->listed = true;
    t->again = t->queue->again;
    t->queue->again = t;
}

bool hints_lacks(const struct target *t)
{
    return t->admitted && !t->busy && !t->listed &&
           (t->life == LIFE_INIT || t->life == LIFE_GONE || t->life == LIFE_READING);
}

/* ---- consumed ---- */

/* Passes entries that are opened or done. */
static void pass_unopened(struct queue *q)
{
    while (q->unopened < q->n && q->done[q->unopened])
        q->opened_later -= q->done[q->unopened++] & ENTRY_OPENED;
}

/* The target's first entry is the one that is read next. */
static void find_first(struct target *t)
{
    const struct queue *q = t->queue;
    while (t->first != NO_ENTRY && q->done[t->first] & ENTRY_DONE)
        t->first = q->same[t->first];
}

/* Of parts of chunks it is not known what else is in these. */
static bool is_here_whole(const struct target *t)
{
    return (t->life == LIFE_CONSUMED || t->life == LIFE_WRITTEN) && !t->cut && (!t->len || t->len >= WHOLE_CHUNKS);
}

/* What becomes of a target whose first entry is done: it is wanted later, or never.  What was read is kept for its next entry, as
 * long as nothing that is read before that needs its room (prefetch.c). */
static void settle(struct target *t)
{
    bool passed = t->first < t->queue->next; /* with the entry before: admitted for that */
    hints_unadmit(t);
    if (t->first == NO_ENTRY)
        hints_tell(t, NEWS_NEVER);
    else if (is_here_whole(t) && !t->queue->staged)
        hints_tell(t, NEWS_HINTED);
    else if (!passed)
        hints_tell(t, NEWS_UNKNOWN);
    far_note(t);
    if (passed)
        hints_again(t);
}

void hints_done(struct queue *q, uint32_t i, bool cancelled)
{
    struct target *t = q->target[q->entry[i]];
    if (q->done[i] & ENTRY_DONE)
        return;
    bool was_first = t->first == i;
    q->done[i] |= ENTRY_DONE;
    sums.done++;
    q->cancelled += cancelled;
    q->consumed += !cancelled;
    if (!cancelled)
        count(hints_consumed, 1);
    if (!cancelled)
        q->read_bytes += hints_bytes(t);
    find_first(t);
    if (was_first) {
        hints_step(t, cancelled ? LIFE_GIVE_UP : LIFE_CONSUME);
        settle(t);
    }
    while (q->head < q->n && q->done[q->head] & ENTRY_DONE)
        q->head++;
    pass_unopened(q);
}

void hints_opened(struct target *t)
{
    struct queue *q = t->queue;
    uint32_t i = t->first;
    if (i == NO_ENTRY || q->done[i])
        return;
    q->done[i] |= ENTRY_OPENED;
    q->opened_later++;
    pass_unopened(q);
    while (q->opened_later >= LATER_OPENED)
        hints_done(q, q->unopened, false);
}

/* ---- distance ---- */

uint64_t hints_before(const struct queue *q, uint32_t i)
{
    uint64_t mean = q->sized ? q->sized_bytes / q->sized : MEAN_UNKNOWN;
    return i > q->head ? (i - q->head) * mean : 0;
}

uint64_t hints_distance(const struct queue *q, uint32_t i)
{
    uint64_t ms = MAX(boot_ms() - q->begun_ms, 1), rate = MAX(q->read_bytes / ms, 1);
    return hints_before(q, i) / rate;
}

/* ---- what the reader will find ---- */

uint64_t hints_ready(const struct queue *q)
{
    uint64_t ready = 0;
    for (uint32_t i = q->head; i < q->n; i++) {
        enum life life = q->target[q->entry[i]]->life;
        if (q->done[i] & ENTRY_DONE || life == LIFE_INIT)
            continue;
        if (life != LIFE_AHEAD && life != LIFE_WRITTEN)
            break;
        ready++;
    }
    return ready;
}
