/* flight_call.c - readers of this node: each call waits for all its flights at once.
 *
 * A reader is on its flight's list until it is told its end, or gives up.  Both happen with the shard's
 * lock, so no thread signals a call that has returned.
 */
#include "placement/chunks/flight_int.h"

#include "placement/chunks/fetch.h"
#include "placement/chunks/filler.h"
#include "transport/lock.h"
#include "transport/waits.h"

void flight_call_init(struct flight_call *call)
{
    call->n = 0;
    lock_init(&call->lock, RANK_LEAF);
    lock_cond_init(&call->cond);
}

void flight_call_destroy(struct flight_call *call)
{
    pthread_cond_destroy(&call->cond);
    lock_destroy(&call->lock);
}

/* ---- telling a reader: shard locked ---- */

static void tell(struct flight_reader *r, enum flight_news news)
{
    lock_take(&r->call->lock);
    r->news = news;
    pthread_cond_signal(&r->call->cond);
    lock_drop(&r->call->lock);
}

static void unlink_reader(struct flight *fl, struct flight_reader *r)
{
    struct flight_reader **p = &fl->readers;
    while (*p != r)
        p = &(*p)->next;
    *p = r->next;
    r->waits = false;
    if (fl->leader == r)
        fl->leader = NULL;
    if (fl->hasty == r)
        fl->hasty = NULL;
}

void flight_end_reader(struct flight *fl, struct flight_reader *r, int err)
{
    unlink_reader(fl, r);
    r->err = err;
    r->chunk = fl->bytes;
    r->source = fl->source;
    tell(r, AN_END);
}

void flight_end_readers(struct flight *fl, int err, bool all)
{
    for (struct flight_reader *r = fl->readers, *next; r; r = next) {
        next = r->next;
        if (all || r->takes)
            flight_end_reader(fl, r, err);
    }
}

void flight_credit(const struct flight *fl)
{
    const struct flight_reader *r = fl->leader;
    if (r && r->ahead && fl->source != FROM_STORE)
        atomic_fetch_add(fl->source == FROM_PEER ? &r->ahead->peer : &r->ahead->pfs, r->rest);
}

void flight_add_reader(struct flight *fl, struct flight_reader *r)
{
    fl->refs++;
    r->flight = fl;
    r->next = fl->readers;
    fl->readers = r;
    fl->busy = fl->busy || !r->idle;
    r->waits = true;
    if (fl->state == FLIGHT_HERE && r->takes) {
        flight_end_reader(fl, r, 0);
    } else if (fl->state < FLIGHT_HERE && !fl->led) {
        fl->led = r->led = true;
        fl->leader = r;
    }
}

/* ---- checking an answer ---- */

/* Drops an answer that came too late.  The filler does this, since the flight may hold the last reference to
 * the file. */
static void drop_answer(void *arg)
{
    struct flight *fl = arg;
    flight_unasked(fl);
    flight_drop(fl);
}

void flight_find_checker(struct flight *fl)
{
    bool late = fl->state >= FLIGHT_HERE;
    fl->checker = late ? NULL : fl->readers;
    if (fl->checker)
        tell(fl->checker, AN_ANSWER);
    else
        filler_submit(fl->key.fid, late ? drop_answer : flight_check, fl);
}

/* True: this reader is to check the answer.  False: another reader does, or the bytes came by a read
 * meanwhile. */
static bool is_checker(struct flight_reader *r)
{
    struct flight *fl = r->flight;
    flight_lock(fl);
    bool is = fl->checker == r;
    if (is)
        fl->checker = NULL;
    flight_unlock(fl);
    return is;
}

/* ---- waiting ---- */

/* One of the call's readers that was told something, or NULL.  Call locked. */
static struct flight_reader *told(struct flight_call *call, unsigned *at)
{
    for (*at = 0; *at < call->n; ++*at)
        if (call->readers[*at]->news != NO_NEWS)
            return call->readers[*at];
    return NULL;
}

/* Waits for such a reader; NULL: end_ms came first. */
static struct flight_reader *wait_for_news(struct flight_call *call, uint64_t end_ms,
                                           enum flight_news *news)
{
    struct flight_reader *r;
    unsigned at;
    lock_take(&call->lock);
    while (!(r = told(call, &at))) {
        uint64_t now = end_ms ? boot_ms() : 0;
        if (end_ms && now >= end_ms)
            break;
        wait_on(WAIT_CHUNK, &call->lock, &call->cond, end_ms - now);
    }
    if (r) {
        *news = r->news;
        r->news = NO_NEWS;
    }
    if (r && *news == AN_END)
        call->readers[at] = call->readers[--call->n];
    lock_drop(&call->lock);
    return r;
}

struct flight_reader *flight_next(struct flight_call *call, uint64_t end_ms)
{
    enum flight_news news;
    for (;;) {
        struct flight_reader *r = wait_for_news(call, end_ms, &news);
        if (!r || news == AN_END)
            return r;
        if (is_checker(r))
            flight_check(r->flight);
    }
}

void flight_put(struct flight_reader *r)
{
    flight_drop(r->flight);
}

/* From now on the reader is told nothing any more. */
static void give_up(struct flight_reader *r)
{
    struct flight *fl = r->flight;
    flight_lock(fl);
    if (r->waits)
        unlink_reader(fl, r);
    if (fl->checker == r)
        flight_find_checker(fl);
    flight_unlock(fl);
    flight_drop(fl);
}

void flight_leave(struct flight_call *call)
{
    while (call->n)
        give_up(call->readers[--call->n]);
}
