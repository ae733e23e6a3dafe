/* prefetch.c - walks the queues' next entries in turn, as far ahead as there is room, and brings what is not here.
 *
 * Up to HANDS jobs of pool_waiters, which run while there is something to do:
 *
 *     what the store is to hear  -->  a queue's next target  -->  look it up  -->  fetch what is missing, piece by piece
 *
 * Each piece waits until no reader waits for a fetch.  The fetches are the readers' own (chunks/fetch.h): a read that meets a
 * chunk on its way waits for that.  They are no activity, so there may be a lull meanwhile.
 *
 * Room: what is admitted and not consumed, and what is dirty besides, take seven eighths of the cache at most; a queue, its
 * share of that.  When a writer has needed room of it, no more is fetched than was left then, until something is consumed: else it
 * would be fetched, and given up again, for each write.  Of a stage nothing is consumed: it goes on when nothing is dirty.
 * What is fetched evicts nothing that is here for an admitted hint (SPACE_FILL).
 */
#include "placement/foresight/prefetch.h"

#include <errno.h>
#include <string.h>

#include "placement/chunks/fetch.h"
#include "placement/chunks/owner.h"
#include "placement/claims/look.h"
#include "placement/foresight/find.h"
#include "placement/foresight/shares.h"
#include "placement/foresight/watch.h"
#include "placement/store/store_hint.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/loop.h"

#define HANDS        2
#define ADMITTED_MAX 16384u /* of a queue at once: names that are looked up in advance */
#define TRIES_MAX    8u     /* looks at a staged file whose bytes were not the right ones when they had come */
#define PIECE        8u     /* chunks that are fetched before the next look whether they are still wanted */

/* With hints_lock. */
static struct {
    unsigned hands;
    bool telling; /* a thread tells the store: in order, so one at a time */
    pthread_cond_t told;
    bool full; /* the store took no more; until something leaves */
    struct queue *last; /* the queue whose turn it was; only compared */
    void (*on_news)(void);
    uint64_t ceiling; /* bytes that hints had when the last one was given up ... */
    uint64_t done;    /* ... and hints_sums.done then: it counts as long as that stays */
} prefetch;

void prefetch_start(void)
{
    static bool made;
    if (!made)
        lock_cond_init(&prefetch.told);
    made = true;
}

void prefetch_on_news(void (*fn)(void))
{
    lock_take(&hints_lock);
    prefetch.on_news = fn;
    lock_drop(&hints_lock);
}

/* ---- what the store and the claims hear ---- */

/* Returns when all that was to be told until now is told. */
static void tell_store(void)
{
    static const enum eviction_time time_of[] = {[NEWS_UNKNOWN] = TIME_UNKNOWN,
                                                 [NEWS_NEVER] = TIME_NEVER,
                                                 [NEWS_HINTED] = TIME_HINTED};
    struct hint_news n;
    lock_take(&hints_lock);
    while (prefetch.telling)
        lock_wait(&hints_lock, &prefetch.told, 0);
    while (hints_next_news(&n)) {
        prefetch.telling = true;
        lock_drop(&hints_lock);
        if (n.time == NEWS_NOT_LOOKED_AT)
            look_closed(n.fid);
        else
            store_hint(n.fid, n.off, n.len, time_of[n.time]);
        lock_take(&hints_lock);
    }
    if (prefetch.telling)
        pthread_cond_broadcast(&prefetch.told);
    prefetch.telling = false;
    lock_drop(&hints_lock);
}

/* ---- room ---- */

struct room {
    uint64_t all, share; /* bytes that hints may take now; of one queue */
    uint64_t largest;    /* of one hint: of what is larger, the begin is kept */
    bool writers;        /* something is dirty */
};

/* The cache's size less an eighth for what is not hinted, and less what is dirty. */
static struct room room_now(void)
{
    struct store_usage u;
    store_usage(&u);
    uint64_t most = u.limit - u.limit / 8;
    return (struct room){.all = most - MIN(most, u.dirty), /* less what is pinned: share_room */
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

/* With hints_lock. */
static void share_room(struct room *r)
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

/* What is not on the PFS yet takes no more room for being hinted.  A queue may have one target in any case, if there is room
 * for it at all. */
static bool fits(const struct target *t, const struct room *r)
{
    struct hints_sums s;
    const struct queue *q = t->queue;
    hints_sum(&s);
    uint64_t bytes = hints_bytes(t), all = bytes_of_hints(&s), own = q->ahead - q->unflushed;
    bool ceiling = prefetch.ceiling && prefetch.done == s.done && (!q->staged || r->writers);
    uint64_t most = ceiling ? MIN(r->all, prefetch.ceiling) : r->all;
    return all + bytes <= most && (!own || own + bytes <= r->share) && q->nadmitted < ADMITTED_MAX;
}

/* ---- the next target ---- */

static struct target *next_again(struct queue *q, const struct room *r)
{
    struct target *t;
    while ((t = q->again)) {
        bool wanted = t->first != NO_ENTRY && !t->busy;
        if (wanted && !t->admitted && !fits(t, r))
            return NULL;
        q->again = t->again;
        t->listed = false;
        t->redo = t->busy;
        if (wanted)
            return t;
    }
    return NULL;
}

/* Later entries of an admitted target have their turn when its first one is consumed (hints_done). */
static struct target *next_entry(struct queue *q, const struct room *r)
{
    for (; q->next < q->n; q->next++) {
        struct target *t = q->target[q->entry[q->next]];
        if (q->done[q->next] & ENTRY_DONE || t->admitted || t->busy || t->reached)
            continue;
        if (!fits(t, r))
            return NULL;
        q->next++;
        return t;
    }
    return NULL;
}

static struct target *next_of(struct queue *q, const struct room *r)
{
    if (!q->started)
        return NULL;
    q->next = MAX(q->next, q->head);
    struct target *t = next_again(q, r);
    return t ? t : next_entry(q, r);
}

static struct target *next_in_turn(const struct room *r)
{
    struct queue *begin = hints_queues;
    for (struct queue *q = hints_queues; q; q = q->next_queue)
        if (q == prefetch.last && q->next_queue)
            begin = q->next_queue;
    struct target *t = NULL;
    for (struct queue *q = begin; q && !t; q = q->next_queue)
        t = next_of(q, r);
    for (struct queue *q = hints_queues; q && q != begin && !t; q = q->next_queue)
        t = next_of(q, r);
    if (t)
        prefetch.last = t->queue;
    return t;
}

/* ---- one target ---- */

struct work {
    struct target *t;
    struct found file;
    struct version version;
    uint64_t off, end; /* of what is wanted, and exists */
    uint64_t bytes;    /* of these: all, or those in chunks that this node owns */
    unsigned flushed, changes; /* hinted's, before it was looked at */
    bool again; /* it was looked at before, in vain */
    bool looks; /* look_closed is owed */
    struct fetched_ahead came;
};

/* With hints_lock: the reader still wants it. */
static bool is_wanted(const struct target *t)
{
    return !t->queue->ended && t->first != NO_ENTRY && t->admitted;
}

static bool still_wanted(const struct target *t)
{
    lock_take(&hints_lock);
    bool wanted = is_wanted(t) && t->queue->started;
    lock_drop(&hints_lock);
    return wanted;
}

static bool is_wanted_chunk(const struct work *w, uint64_t index)
{
    return !w->t->queue->owned || owner_is_here(w->file.f->fid, index);
}

/* Calls for each part of what is wanted that lies in one chunk, or for all of it at once if all chunks are wanted.  Stops when
 * fn returns true, and returns that. */
static bool any_part(struct work *w, bool (*fn)(struct work *w, uint64_t off, uint64_t len))
{
    uint64_t chunk = store_chunk_size();
    if (!w->t->queue->owned)
        return w->off < w->end && fn(w, w->off, w->end - w->off);
    for (uint64_t off = w->off, end; off < w->end; off = end) {
        end = MIN(w->end, (off / chunk + 1) * chunk);
        if (is_wanted_chunk(w, off / chunk) && fn(w, off, end - off))
            return true;
    }
    return false;
}

static bool add_bytes(struct work *w, uint64_t off, uint64_t len)
{
    (void)off;
    w->bytes += len;
    return false;
}

static bool part_is_missing(struct work *w, uint64_t off, uint64_t len)
{
    uint64_t miss, n;
    return store_missing(w->file.f, off, len, &miss, &n);
}

static bool is_missing(struct work *w)
{
    return any_part(w, part_is_missing);
}

/* What there is of it now: the state of its life, before it is admitted. */
static enum life look_at(struct work *w, const struct room *r)
{
    struct file_info info;
    store_info(w->file.f, &info);
    w->version = info.base;
    uint64_t size = MAX(info.size, w->file.at.size), len_wanted = w->t->len;
    w->off = MIN(w->t->off, size);
    w->end = len_wanted && len_wanted < size - w->off ? w->off + len_wanted : size;
    if (!w->t->queue->staged)
        w->end = w->off + MIN(w->end - w->off, r->largest);
    w->bytes = 0;
    any_part(w, add_bytes);
    if (w->file.at.where == WHERE_NODE || w->file.at.where == WHERE_LOST)
        return LIFE_INIT; /* neither fetched nor flushed because of a hint */
    if (info.dirty_bytes) /* of what the kernel has written, none may be known yet: it counts as flushed too early */
        return LIFE_WRITTEN;
    return is_missing(w) ? LIFE_GONE : LIFE_FLUSHED;
}

/* With hints_lock.  As long as it is admitted, this node looks at the file, so that its home tells of changes.  What has changed
 * since it was opened is looked at again. */
static void look_on(struct work *w, enum life life)
{
    struct target *t = w->t;
    struct hinted *h = t->file;
    bool same = h->changes == w->changes && fid_eq(h->fid, w->file.fid);
    if (!same)
        hints_step(t, LIFE_OTHER_VERSION);
    else if (life == LIFE_INIT && !t->queue->staged) /* a stage says so */
        watch_for(t);
    else
        t->looks = 0;
    if (!same) {
        t->redo = true;
    } else if (life != LIFE_INIT && !h->looked_at) {
        h->looked_at = true;
        w->looks = false;
    }
}

static void lost(struct target *t)
{
    lock_take(&hints_lock);
    if (is_wanted(t) && hints_step(t, LIFE_EVICT))
        t->redo = true;
    lock_drop(&hints_lock);
}

/* A staged file that changes again and again is given up: with the error.  With hints_lock. */
static bool is_tried_enough(struct target *t)
{
    return t->queue->staged && ++t->tries == TRIES_MAX;
}

/* With hints_lock: nothing of a staged target is to be fetched now. */
static void say_reached(const struct work *w, enum life life)
{
    struct target *t = w->t;
    if (t->redo && !is_tried_enough(t)) /* it has changed since it was opened */
        return;
    int err = t->redo ? -ESTALE : life != LIFE_INIT ? 0 : w->file.at.where == WHERE_LOST ? -EHOSTDOWN : -EBUSY;
    t->redo = false;
    hints_reached(t, err);
}

/* Admits the target as what it was found to be.  False: nothing more is to be done. */
static bool take_up(struct work *w, enum life life)
{
    struct target *t = w->t;
    lock_take(&hints_lock);
    bool wanted = !t->queue->ended && t->first != NO_ENTRY;
    if (life == LIFE_WRITTEN && t->file->flushed != w->flushed)
        life = LIFE_FLUSHED; /* meanwhile */
    if (wanted) {
        hints_admit(t, w->bytes);
        hints_set_life(t, life);
        hints_step(t, LIFE_ADMIT);
        count(hints_admitted, 1);
        if (life != LIFE_INIT)
            hints_tell(t, NEWS_HINTED);
        t->queue->far = MAX(t->queue->far, t->first + 1);
        look_on(w, life);
    }
    bool fetches = wanted && t->life == LIFE_READING;
    if (wanted && !fetches && t->queue->staged)
        say_reached(w, life);
    lock_drop(&hints_lock);
    tell_store();
    if (wanted && life == LIFE_FLUSHED && is_missing(w)) /* it left before the store had heard of the hint */
        lost(t);
    return fetches;
}

/* The store took no more: the target waits until something leaves. */
static void is_full(struct target *t)
{
    lock_take(&hints_lock);
    prefetch.full = true;
    if (is_wanted(t)) {
        hints_step(t, LIFE_GIVE_UP);
        hints_unadmit(t);
        t->queue->next = MIN(t->queue->next, t->first);
    }
    lock_drop(&hints_lock);
}

/* Piece by piece, each made of whole chunks. */
static int fetch_missing(struct work *w)
{
    uint64_t chunk = store_chunk_size(), piece = PIECE * chunk;
    int err = 0;
    for (uint64_t off = w->off / chunk * chunk; !err && off < w->end; off += piece) {
        if (!still_wanted(w->t))
            return -ECANCELED;
        fetch_yield();
        struct fetched from = {.ahead = &w->came};
        struct fetch want = {.v = w->version,
                             .off = off,
                             .len = MIN(piece, w->end - off),
                             .owned = w->t->queue->owned,
                             .idle = true,
                             .from = &from};
        err = fetch_range(w->file.f, &want, NULL);
    }
    return err;
}

/* The fetch has ended, of a hint.  With hints_lock, as below. */
static void end_hinted(struct work *w, int err, bool left_again)
{
    struct target *t = w->t;
    if (!is_wanted(t))
        return;
    if (t->file->changes != w->changes || err)
        watch_for(t);
    else if (left_again)
        t->redo = true;
    else
        hints_step(t, LIFE_HERE);
}

/* ... of a stage, which is told why a file cannot be brought. */
static void end_staged(struct work *w, int err, bool left_again)
{
    struct target *t = w->t;
    bool changed = err == -ESTALE || t->file->changes != w->changes;
    if ((left_again || changed) && is_wanted(t) && !is_tried_enough(t)) {
        t->redo = true;
    } else if (!err && !left_again && !changed && is_wanted(t)) {
        hints_step(t, LIFE_HERE);
        hints_reached(t, 0);
    } else if (changed && is_wanted(t)) {
        hints_reached(t, -ESTALE);
    } else if (err && err != -ENOSPC && err != -ECANCELED) {
        hints_reached(t, err);
    }
}

static void fetch_target(struct work *w)
{
    struct target *t = w->t;
    store_hint_coming(w->file.f, w->off, w->end - w->off);
    int err = fetch_missing(w);
    store_hint_coming(w->file.f, 0, 0);
    bool left_again = !err && is_missing(w);
    uint64_t bytes = w->came.peer + w->came.pfs;
    count(prefetched_bytes, bytes);
    if (err == -ENOSPC || (left_again && t->queue->staged))
        is_full(t);
    else if (err && err != -ECANCELED)
        log_debug("%s: is not fetched ahead: %s", t->file->path, strerror(-err));
    lock_take(&hints_lock);
    t->queue->fetched_bytes += bytes;
    if (t->queue->staged)
        end_staged(w, err, left_again);
    else
        end_hinted(w, err, left_again);
    if (!is_wanted(t) && !t->reached) { /* consumed or given up while chunks were on their way */
        hints_tell(t, t->first == NO_ENTRY ? NEWS_NEVER : NEWS_UNKNOWN);
        t->redo |= t->queue->staged; /* who stages waits for it */
    }
    lock_drop(&hints_lock);
}

/* No file has the name, or another node its bytes. */
static void is_absent(struct target *t, int err)
{
    lock_take(&hints_lock);
    if (!t->queue->ended && t->first != NO_ENTRY) {
        hints_admit(t, 0);
        hints_set_life(t, LIFE_INIT);
        if (t->queue->staged)
            hints_reached(t, err);
        else
            watch_for(t);
    }
    lock_drop(&hints_lock);
}

static void note_before(struct work *w)
{
    struct hinted *h = w->t->file;
    lock_take(&hints_lock);
    if (!w->t->queue->ended)
        hints_set_fid(h, w->file.fid);
    w->flushed = h->flushed;
    w->changes = h->changes;
    w->again = w->t->looks;
    lock_drop(&hints_lock);
}

static void bring(struct target *t, const struct room *r)
{
    struct work w = {.t = t};
    int err = find_hinted(t->file->path, &w.file);
    if (!err) {
        note_before(&w);
        bool elsewhere = w.again && found_is_elsewhere(&w.file);
        err = elsewhere ? -EBUSY : found_open(t->file->path, &w.file);
    }
    if (err) {
        is_absent(t, err);
    } else {
        look_opened(w.file.fid); /* while it is open: so no change between is missed */
        w.looks = true;
        if (take_up(&w, look_at(&w, r)))
            fetch_target(&w);
        if (w.looks)
            look_closed(w.file.fid);
    }
    found_end(&w.file);
}

/* ---- the hands ---- */

static void say_news(void)
{
    if (prefetch.on_news)
        prefetch.on_news();
}

static void hand(void *arg);

/* False: there is nothing to do now; the hand is not counted any more.  Else another one looks whether there is more. */
static bool do_next(void)
{
    tell_store();
    struct room r = room_now();
    lock_take(&hints_lock);
    share_room(&r);
    struct target *t = prefetch.full ? NULL : next_in_turn(&r);
    if (t) {
        t->busy = true;
        t->queue->busy++;
    } else {
        prefetch.hands--;
    }
    bool more = t && prefetch.hands < HANDS;
    prefetch.hands += more;
    lock_drop(&hints_lock);
    if (!t)
        return false;
    if (more)
        pool_submit(pool_waiters, hand, NULL);
    bring(t, &r);
    lock_take(&hints_lock);
    t->busy = false;
    if (t->redo && !t->queue->ended)
        hints_again(t);
    t->redo = false;
    struct queue *q = t->queue;
    void (*answer)(struct bringing *b) = q->answer;
    struct bringing *brought = q->nreached == q->ntargets ? q->bringing : NULL;
    if (brought)
        q->bringing = NULL;
    hints_queue_left(q);
    say_news();
    lock_drop(&hints_lock);
    watch_go();
    if (brought)
        answer(brought);
    return true;
}

static void hand(void *arg)
{
    (void)arg;
    while (do_next())
        ;
}

void prefetch_wake(void)
{
    lock_take(&hints_lock);
    prefetch.full = false;
    bool more = prefetch.hands < HANDS;
    prefetch.hands += more;
    say_news();
    lock_drop(&hints_lock);
    watch_go();
    if (more)
        pool_submit(pool_waiters, hand, NULL);
}

/* ---- what is kept, and given up ---- */

void prefetch_keep(struct target *t, uint64_t limit)
{
    struct queue *q = t->queue;
    if (t->first == NO_ENTRY || hints_before(q, t->first) > limit)
        return;
    q->far = MAX(q->far, t->first + 1);
    hints_tell(t, NEWS_HINTED);
}

/* Does the store keep something for this entry, as the next one of its target? */
static bool is_kept(const struct queue *q, uint32_t i)
{
    const struct target *t = q->target[q->entry[i]];
    return t->first == i && t->hinted;
}

/* The farthest target that the queue keeps something for; NULL: there is none.  What is not on the PFS could not leave: to give
 * that up would help nobody. */
static struct target *farthest_of(struct queue *q, bool ahead)
{
    while (q->far > q->head && !is_kept(q, q->far - 1))
        q->far--;
    for (uint32_t i = q->far; i > q->head; i--) {
        struct target *t = q->target[q->entry[i - 1]];
        if (!is_kept(q, i - 1) || t->life == LIFE_WRITTEN || t->life == LIFE_WRITING)
            continue;
        return t->admitted && !ahead ? NULL : t;
    }
    return NULL;
}

static void note_ceiling(void)
{
    struct hints_sums s;
    hints_sum(&s);
    prefetch.ceiling = MAX(bytes_of_hints(&s), 1);
    prefetch.done = s.done;
}

/* Of all queues; with hints_lock. */
static struct target *farthest_of_all(bool ahead)
{
    struct target *best = NULL;
    uint64_t distance = 0;
    for (struct queue *q = hints_queues; q; q = q->next_queue) {
        struct target *t = farthest_of(q, ahead);
        uint64_t d = t ? hints_distance(q, t->first) : 0;
        if (t && (!best || d > distance)) {
            best = t;
            distance = d;
        }
    }
    return best;
}

bool prefetch_give_up(bool ahead)
{
    if (shares_give_up())
        return true;
    lock_take(&hints_lock);
    struct target *t = farthest_of_all(ahead);
    if (t) {
        struct queue *q = t->queue;
        bool admitted = t->admitted;
        hints_step(t, LIFE_GIVE_UP);
        hints_unadmit(t);
        hints_tell(t, NEWS_UNKNOWN);
        if (admitted) {
            count(hints_given_up, 1);
            q->next = MIN(q->next, t->first);
            note_ceiling();
        }
    }
    lock_drop(&hints_lock);
    tell_store();
    return t;
}
