/* prefetch_room.c - how much may be fetched ahead.
 *
 * Room: what is admitted and not consumed, and what is dirty besides, take seven eighths of the cache at most; a queue, its
 * share of that.  When a writer has needed room of it, no more is fetched than was left then, until something is consumed: else it
 * would be fetched, and given up again, for each write.  Of a stage nothing is consumed: it goes on when nothing is dirty.
 * What is fetched evicts nothing that is here for an admitted hint (SPACE_FILL).  But what a reader wants next is not left out
 * for what it wants last (files that were written in the order in which they are read: the last ones are here, the first ones
 * had to go): for the nearest entries, up to an eighth of the queue's share, the farthest targets are given up, though not for a
 * name that may be no file's.  When such an entry is consumed, its room is the next one's, so no more than that eighth is fetched twice.
 * What was read or written here is kept for its next entry, within the queue's share, too; the farthest leaves first.  It is driven
 * out by what is fetched for nearer entries, but by no more than half of the share: what is fetched far ahead of its reader is read
 * hardly sooner than what leaves for it, which then has to be fetched again (docs/benchmarks.md has figures).  Other nodes may want
 * what this node owns, and it does not know their hints: no more than a quarter of the share drives that out.  An entry that somebody
 * waits for is fetched all the same.  Patterson et al., "Informed Prefetching and Caching" (SOSP '95), bound what is fetched by a
 * horizon for the same reason.
 * If a staged file does not fit though nothing is dirty and nothing is hinted, others have filled the disk: it is tried, and if
 * the store has no room for it, its stage is told so.
 */
#include "placement/foresight/budget.h"
#include "placement/foresight/prefetch_int.h"
#include "placement/store/store_open.h"
#include "transport/members.h"
#include "transport/view.h"

#define ADMITTED_MAX 16384u /* of a queue at once: names that are looked up in advance */
#define NEAR_PART    8      /* of the queue's share are near */
#define KEPT_PART    2      /* a half of it drives out what is kept for later */
#define OTHERS_PART  4      /* a quarter, what other nodes may want */

/* With hints_lock. */
static struct {
    uint64_t ceiling; /* bytes that hints had when the last one was given up ... */
    uint64_t done;    /* ... and hints_sums.done then: it counts as long as that stays */
} given_up;

/* The cache's size less an eighth for what is not hinted, and less what is dirty. */
struct room room_now(void)
{
    struct store_usage u;
    store_usage(&u);
    uint64_t most = u.limit - u.limit / 8;
    const struct view *v = members_view();
    uint64_t spare = u.limit - MIN(u.limit, u.used) + u.replicas;
    return (struct room){.all = most - MIN(most, u.dirty), /* less what is pinned: room_share */
                         .most = most,
                         .spare = v && v->nmembers == 1 ? UINT64_MAX : spare,
                         .writers = u.dirty,
                         .largest = MAX(u.limit / 4, (uint64_t)store_chunk_size())};
}

uint64_t prefetch_room(void)
{
    struct hints_sums s;
    struct room r = room_now();
    lock_take(&hints_lock);
    hints_sum(&s);
    lock_drop(&hints_lock);
    uint64_t taken = s.ahead_bytes - s.unflushed + s.staged;
    return r.all - MIN(r.all, taken);
}

void room_share(struct room *r)
{
    uint64_t n = 0;
    struct hints_sums s;
    hints_sum(&s);
    r->all -= MIN(r->all, s.pinned);
    for (struct queue *q = hints_queues; q; q = q->next_queue)
        n += q->started && q->head < q->n;
    r->share = r->all / MAX(n, 1);
}

static uint64_t bytes_of_hints(const struct hints_sums *s)
{
    return s->ahead_bytes - s->unflushed;
}

/* Bytes that have to go before there is room for the target.  What is not on the PFS yet takes no more room for being hinted.
 * A queue may have one target in any case, if there is room for it at all. */
static uint64_t lacking(const struct target *t, uint64_t most, uint64_t share)
{
    struct hints_sums s;
    const struct queue *q = t->queue;
    hints_sum(&s);
    uint64_t all = bytes_of_hints(&s) + hints_bytes(t), own = q->ahead - q->unflushed;
    uint64_t own_lacks = own ? own + hints_bytes(t) - MIN(own + hints_bytes(t), share) : 0;
    return MAX(all - MIN(all, most), own_lacks);
}

bool room_fits(const struct target *t, const struct room *r)
{
    struct hints_sums s;
    const struct queue *q = t->queue;
    if (!budget_may_fetch(t) || q->nadmitted >= ADMITTED_MAX)
        return false;
    hints_sum(&s);
    bool ceiling = given_up.ceiling && given_up.done == s.done && (!q->staged || r->writers);
    return !lacking(t, ceiling ? MIN(r->all, given_up.ceiling) : r->all, r->share);
}

uint64_t room_kept_lacks(const struct target *t, const struct room *r)
{
    const struct queue *q = t->queue;
    uint64_t own = q->ahead - q->unflushed, all = own + q->kept - t->kept + hints_bytes(t);
    return own && q->kept > t->kept ? all - MIN(all, r->share) : 0;
}

/* With the target no more than so much is ahead.  But one may be fetched while another is read, however large they are. */
static bool is_little(const struct target *t, uint32_t entry, uint64_t most)
{
    const struct queue *q = t->queue;
    return entry < q->asked || q->nadmitted - q->nabsent < 2 ||
           q->ahead - q->unflushed - q->absent + hints_bytes(t) <= most;
}

bool room_takes_of_kept(const struct target *t, uint32_t entry, const struct room *r)
{
    return is_little(t, entry, r->share / KEPT_PART);
}

bool room_takes_of_others(const struct target *t, uint32_t entry, const struct room *r)
{
    return t->kept || t->queue->staged || hints_bytes(t) <= r->spare || is_little(t, entry, r->share / OTHERS_PART);
}

bool room_is_exceeded(const struct room *r)
{
    struct hints_sums s;
    hints_sum(&s);
    return s.kept && bytes_of_hints(&s) + s.kept + s.pinned > r->most;
}

/* By the mean size: twice as far as near entries are.  What is done, or no file's name, takes nothing. */
bool room_may_be_near(const struct queue *q, uint32_t entry, const struct room *r)
{
    uint64_t done = q->consumed + q->cancelled, behind = entry - MIN(entry, done);
    return q->nabsent || entry < q->asked || entry < q->head + 2 ||
           hints_before(q, (uint32_t)(q->head + behind)) <= 2 * r->share / NEAR_PART;
}

/* What is done, or cannot be read now, takes nothing. */
uint32_t room_near_end(const struct queue *q, const struct room *r)
{
    uint64_t bytes = 0;
    uint32_t i = q->head, end = (uint32_t)MIN((uint64_t)q->head + ADMITTED_MAX, q->n);
    for (; i < end && bytes <= r->share / NEAR_PART; i++) {
        const struct target *t = q->target[q->entry[i]];
        if (!(q->done[i] & ENTRY_DONE) && t->life != LIFE_INIT)
            bytes += hints_bytes(t);
    }
    return i;
}

uint64_t room_near_lacks(const struct target *t, const struct room *r)
{
    const struct queue *q = t->queue;
    if (q->staged || t->life == LIFE_INIT || !budget_may_fetch(t) || q->nadmitted >= ADMITTED_MAX)
        return UINT64_MAX;
    return lacking(t, r->all, r->share);
}

void room_given_up(void)
{
    struct hints_sums s;
    hints_sum(&s);
    given_up.ceiling = MAX(bytes_of_hints(&s), 1);
    given_up.done = s.done;
}

bool room_stays_as_it_is(const struct room *r)
{
    struct hints_sums s;
    hints_sum(&s);
    return !r->writers && !bytes_of_hints(&s);
}
