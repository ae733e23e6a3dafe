/* bring.c - serves BRING.
 *
 *     network thread: is it right? --> libuv's pool: what is here already is kept at once
 *         --> the rest is a queue --> the prefetcher's hands --> the last one answers
 */
#include "placement/foresight/bring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/working.h"
#include "placement/foresight/hint_files.h"
#include "placement/foresight/prefetch.h"
#include "placement/foresight/queue_parse.h"
#include "placement/foresight/shares.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/store/store_hint.h"
#include "transport/loop.h"
#include "transport/peer.h"

struct bringing {
    struct msg *m;
    struct working working;
    struct queue *queue; /* with hints_lock; NULL: it has none */
    uint32_t *item;      /* of each target: which file of m */
    struct item_brought *out;
    struct bringing *next, **prev; /* those that have queues: with hints_lock */
};

/* With hints_lock. */
static struct bringing *under_way;
static bool stopped;

/* ---- answers ---- */

static void end(struct bringing *b)
{
    msg_free(b->m);
    free(b->item);
    free(b->out);
    free(b);
}

static void answer_error(struct bringing *b, int err)
{
    working_end(&b->working);
    peer_reply_error(b->m, err);
    end(b);
}

static void answer(struct bringing *b)
{
    struct msg *r = msg_new(MSG_BROUGHT);
    r->brought.room = prefetch_room();
    r->brought.files.n = b->m->bring.files.n;
    r->brought.files.v = b->out;
    working_end(&b->working);
    peer_reply(b->m, r);
    end(b);
}

/* ---- a queue's end ---- */

/* With hints_lock. */
static void take(struct bringing *b)
{
    *b->prev = b->next;
    if (b->next)
        b->next->prev = b->prev;
}

/* What has come is the share's, and stays hinted in the store without the queue.  With hints_lock.
 */
static void keep_all(struct bringing *b)
{
    struct share *s = share_get(b->m->head.sender, b->m->bring.stage, b->m->bring.pin_ms, b->m->bring.owned);
    for (uint32_t i = 0; i < b->queue->ntargets; i++) {
        struct target *t = b->queue->target[i];
        struct item_brought *out = &b->out[b->item[i]];
        out->err = (uint32_t)-t->err;
        out->here = t->err ? 0 : t->bytes;
        out->wanted = t->bytes;
        if (!t->err && t->hinted && s && share_keep(s, t->file->fid, t->off, t->bytes))
            t->hinted = false; /* so its end does not say that it is not hinted */
    }
}

static void brought(struct bringing *b)
{
    lock_take(&hints_lock);
    take(b);
    keep_all(b);
    hints_queue_end(b->queue);
    lock_drop(&hints_lock);
    answer(b);
    prefetch_wake(); /* its end is told to the store */
}

/* ---- a queue's begin ---- */

/* The body of QUEUE_ADD for the files `item`; malloc'd. */
static void *body_of(const struct bringing *b, uint32_t n, size_t *len)
{
    const struct item_wanted *v = b->m->bring.files.v;
    *len = sizeof(struct queue_add);
    for (uint32_t i = 0; i < n; i++)
        *len += sizeof(uint16_t) + strlen(v[b->item[i]].path) + sizeof(struct queue_target) +
                sizeof(uint32_t);
    uint8_t *body = xmalloc(*len), *at = body;
    at = mempcpy(at, &(struct queue_add){n, n, n}, sizeof(struct queue_add));
    for (uint32_t i = 0; i < n; i++) {
        uint16_t path = (uint16_t)strlen(v[b->item[i]].path);
        at = mempcpy(at, &path, sizeof(path));
        at = mempcpy(at, v[b->item[i]].path, path);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct queue_target t = {i, v[b->item[i]].off, v[b->item[i]].len};
        at = mempcpy(at, &t, sizeof(t));
    }
    for (uint32_t i = 0; i < n; i++)
        at = mempcpy(at, &i, sizeof(i));
    return body;
}

/* With hints_lock. */
static int add_all(struct bringing *b, uint32_t n)
{
    struct parsed_add a;
    int64_t first;
    size_t len;
    void *body = body_of(b, n, &len);
    int err = queue_parse_add(body, len, 0, 0, &a);
    if (!err)
        err = hints_add(b->queue, &a, &first);
    free(body);
    for (uint32_t i = 0; !err && i < n; i++) { /* until it is looked at: */
        struct target *t = b->queue->target[i];
        t->bytes = b->out[b->item[i]].wanted;
        if (fid_is_zero(t->file->fid))
            hints_set_fid(t->file, b->m->bring.files.v[b->item[i]].fid);
    }
    return err;
}

static int begin_queue(struct bringing *b, uint32_t n)
{
    lock_take(&hints_lock);
    b->queue = stopped ? NULL : hints_queue_new();
    int err = b->queue ? add_all(b, n) : stopped ? -ECANCELED : -EAGAIN;
    if (!err) {
        b->queue->staged = b->queue->started = true;
        b->queue->owned = b->m->bring.owned;
        b->queue->bringing = b;
        b->queue->answer = brought;
        b->next = under_way;
        b->prev = &under_way;
        if (b->next)
            b->next->prev = &b->next;
        under_way = b;
    } else if (b->queue) {
        hints_queue_end(b->queue);
    }
    lock_drop(&hints_lock);
    return err;
}

/* All of it is here: true.  It stays, but it need not be brought. */
static bool keep_now(struct bringing *b, const struct item_wanted *w, struct item_brought *out)
{
    bool same;
    *out = bring_look(w, b->m->bring.owned, &same);
    if (!same)
        return false;
    lock_take(&hints_lock);
    struct share *s = share_get(b->m->head.sender, b->m->bring.stage, b->m->bring.pin_ms, b->m->bring.owned);
    bool kept = s && share_keep(s, w->fid, w->off, out->wanted);
    lock_drop(&hints_lock);
    if (kept)
        store_hint(w->fid, 0, INT64_MAX, TIME_HINTED);
    out->here = out->wanted;
    return true;
}

/* libuv's pool. */
static void bring_now(struct bringing *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->m->bring.files.n; i++)
        if (!keep_now(b, &b->m->bring.files.v[i], &b->out[i]))
            b->item[n++] = i;
    int err = n ? begin_queue(b, n) : 0;
    if (err)
        answer_error(b, err);
    else if (!n)
        answer(b);
    else
        prefetch_wake();
}

static void look(struct bringing *b)
{
    bool same;
    for (uint32_t i = 0; i < b->m->bring.files.n; i++) {
        const struct item_wanted *w = &b->m->bring.files.v[i];
        b->out[i] = bring_look(w, b->m->bring.owned, &same);
        lock_take(&hints_lock);
        b->out[i].kept = shares_have(w->fid, w->off);
        lock_drop(&hints_lock);
    }
    answer(b);
}

static void drop(struct bringing *b)
{
    uint32_t n = b->m->bring.files.n;
    struct fid *fids = xcalloc(n + 1, sizeof(*fids));
    for (uint32_t i = 0; i < n; i++)
        fids[i] = b->m->bring.files.v[i].fid;
    shares_drop(fids, n);
    free(fids);
    answer(b);
}

static bool is_of_stage(const struct bringing *b, const struct msg *end)
{
    return b->m->head.sender == end->head.sender && b->m->bring.stage == end->bring.stage;
}

/* Those of the stage that this message ends; NULL: all.  What has come of them stays. */
static void cancel(const struct msg *end)
{
    struct bringing *b;
    do {
        lock_take(&hints_lock);
        b = under_way;
        while (b && (!b->queue->bringing /* a hand answers it now */ || (end && !is_of_stage(b, end))))
            b = b->next;
        if (b) {
            take(b);
            b->queue->bringing = NULL;
            hints_queue_end(b->queue);
        }
        lock_drop(&hints_lock);
        if (b)
            answer_error(b, -ECANCELED);
    } while (b);
}

static void end_stage(struct bringing *b)
{
    cancel(b->m);
    prefetch_wake(); /* their end is told to the store */
    share_end(b->m->head.sender, b->m->bring.stage);
    answer(b);
}

/* libuv's pool. */
static void serve(void *arg)
{
    static void (*const serves[BRING_WHATS])(struct bringing *) = {
        [BRING_LOOK] = look, [BRING_NOW] = bring_now, [BRING_END] = end_stage, [BRING_DROP] = drop};
    struct bringing *b = arg;
    serves[b->m->bring.what](b);
}

/* ---- pins that are over: the network thread, but for expire ---- */

static struct {
    struct loop_timer *timer;
    uint64_t at_ms; /* when it rings; 0: it does not */
    bool ended;
} pins;
static _Atomic uint64_t next_pin_ms;

static void on_pin(void *arg);

static void ring_at(uint64_t at_ms)
{
    uint64_t now = boot_ms();
    if (pins.ended || (pins.at_ms && pins.at_ms <= at_ms))
        return;
    if (!pins.timer)
        pins.timer = loop_timer_new(on_pin, NULL);
    pins.at_ms = at_ms;
    loop_timer_set(pins.timer, MAX(at_ms, now) - now + 1, 0);
}

/* libuv's pool. */
static void expire(void *arg)
{
    (void)arg;
    next_pin_ms = shares_expire();
}

static void expired(void *arg)
{
    (void)arg;
    if (next_pin_ms)
        ring_at(next_pin_ms);
}

static void on_pin(void *arg)
{
    pins.at_ms = 0;
    loop_work(expire, expired, arg);
}

static void free_timer(void *arg)
{
    (void)arg;
    if (pins.timer)
        loop_timer_free(pins.timer);
    pins.timer = NULL;
    pins.at_ms = 0;
    pins.ended = true;
}

/* ---- the network thread ---- */

static bool file_is_right(const struct item_wanted *w)
{
    return !fid_is_zero(w->fid) && w->version.size <= INT64_MAX && w->off <= INT64_MAX &&
           w->len <= (uint64_t)INT64_MAX - w->off && queue_path_is_plain(w->path, strlen(w->path));
}

static bool is_right(const struct msg *m)
{
    const struct body_bring *b = &m->bring;
    if (!(m->head.flags & MSG_F_WANTS) || b->what >= BRING_WHATS || b->owned > 1 ||
        b->files.n > BRING_FILES)
        return false;
    for (uint32_t i = 0; i < b->files.n; i++)
        if (!file_is_right(&b->files.v[i]))
            return false;
    return true;
}

static void on_bring(struct msg *m)
{
    if (!is_right(m)) {
        peer_refuse(m);
        return;
    }
    struct bringing *b = xcalloc(1, sizeof(*b));
    b->m = m;
    b->item = xcalloc(m->bring.files.n + 1, sizeof(*b->item));
    b->out = xcalloc(m->bring.files.n + 1, sizeof(*b->out));
    if (m->bring.pin_ms && m->bring.pin_ms < UINT64_MAX / 2)
        ring_at(boot_ms() + m->bring.pin_ms);
    working_begin(&b->working, m);
    loop_work(serve, NULL, b);
}

void bring_start(void)
{
    stopped = pins.ended = false;
    peer_handle(MSG_BRING, on_bring);
}

void bring_stop(void)
{
    lock_take(&hints_lock);
    stopped = true;
    lock_drop(&hints_lock);
    cancel(NULL);
    loop_call(free_timer, NULL);
}
