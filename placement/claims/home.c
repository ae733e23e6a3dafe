/* home.c - the home as a whole: it starts, follows the views, sweeps its records and ends.  It
 * answers which node has a file's latest bytes, which one may have the claim, and which locks are held
 * (docs/protocol.md, rules 6-9, 11, "Locks").
 *
 * A grant of a claim or a lock goes this way, and never shorter:
 *
 *     WANT/LOCK --> record (stamp + 1) --> COPY to next --> COPIED --> lease still valid? --> GRANT
 *
 * If a request cannot be answered now (not this view, not complete, not settled, no lease), the answer is
 * "ask again", and the asker repeats it with the same number.  When the view changes, all waiting requests
 * get this answer.
 */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "placement/ring/ring.h"
#include "transport/loop.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <stdlib.h>

/* ---- time ---- */

/* boot_ms of when they are due; network thread */
static uint64_t working_ms, breaks_ms, sweep_ms, lookers_ms;

static void say_working(struct record *r, void *arg)
{
    (void)arg;
    for (struct pending *p = r->waiting; p; p = p->next)
        peer_working(p->m);
}

static bool forgettable(const struct record *r, void *arg)
{
    const uint64_t *t = arg;
    return record_empty(r) && *t - r->touched_ms > HOME_FORGET_MS &&
           !(home.view && collect_blind(home.view, r->fid));
}

/* Ticks also come, ten times a second, for calls that are to be tried again. */
static void tick(void)
{
    uint64_t t = boot_ms();
    lock_take(&home_lock);
    if (home.waiting && t >= working_ms) {
        record_each(say_working, NULL);
        working_ms = t + T_PING;
    }
    bool breaks = t >= breaks_ms && home_breaks_working(), goes = t >= breaks_ms && home_goes_working();
    if (breaks || goes)
        breaks_ms = t + T_PING / 2;
    if (t >= lookers_ms && lookers_count())
        lookers_ms = t + (lookers_sweep_some() ? LOOKERS_SWEEP_MS : SWEEP_STEP_MS);
    if (t >= sweep_ms)
        sweep_ms = t + (record_sweep_some(forgettable, &t) ? SWEEP_MS : SWEEP_STEP_MS);
    if (home.waiting)
        home_arm(working_ms - t);
    if (record_count())
        home_arm(sweep_ms - t);
    if (lookers_count())
        home_arm(lookers_ms > t ? lookers_ms - t : 0);
    if (breaks_ms > t)
        home_arm(breaks_ms - t);
    lock_drop(&home_lock);
}

static void show(struct record *r, void *arg)
{
    struct home_status *s = arg;
    for (const struct held_lock *l = r->locks; l; l = l->next)
        s->locks++;
    s->lost += r->claimant && home.view && !view_member(home.view, r->claimant);
}

void home_status(struct home_status *out)
{
    unsigned at = 0;
    bool more = true;
    *out = (struct home_status){0};
    while (more) {
        lock_take(&home_lock);
        more = record_some(&at, show, out);
        out->records = record_count();
        out->lookers = lookers_count();
        out->lookers_bytes = lookers_bytes();
        out->lookers_bytes_max = LOOKERS_BYTES;
        lock_drop(&home_lock);
    }
}

/* ---- views ---- */

static void let_go(struct record *r, void *arg)
{
    (void)arg;
    home_ask_again_list(&r->pending);
    home_ask_again_list(&r->waiting);
    home_break_drop(r);
}

void home_adopted(const struct view *v)
{
    lock_take(&home_lock);
    record_each(let_go, NULL);
    home_goes_drop();
    free(home.acked);
    free(home.copied);
    free(home.lock_numbers);
    home = (struct home_state){
        .view = v,
        .self = v ? (uint32_t)(view_member(v, members_self()) - v->members) : 0,
        .ring = ring_of(v),
        .acked = v ? xcalloc(v->nmembers + 1, sizeof(*home.acked)) : NULL,
        .copied = v ? xcalloc(v->nmembers + 1, sizeof(*home.copied)) : NULL,
        .lock_numbers = v ? xcalloc(v->nmembers + 1, sizeof(*home.lock_numbers)) : NULL,
    };
    hints_drop();
    lookers_begin();
    home_forgets_drop();
    collect_begin(v);
    lock_drop(&home_lock);
}

static void fill_one(struct record *r, void *arg)
{
    struct body_adopted *b = arg;
    b->records.v[b->records.n++] = record_item(r);
    /* A node's own list has its own locks (locks_fill), not what it once had as home or
     * next. */
    lock_items_add(r->fid, r->locks, members_self(), &b->locks.n, &b->locks.v);
}

void home_fill_adopted(const struct view *v, struct body_adopted *b)
{
    lock_take(&home_lock);
    collect_finish();
    collect_fill(v, b);
    b->records.v = xmalloc((record_count() + 1) * sizeof(*b->records.v));
    record_each(fill_one, b);
    lock_drop(&home_lock);
}

/* Nodes that have left look at nothing any more. */
static void take_looks(const struct view *v, uint64_t from, const struct body_adopted *b)
{
    const struct member *m = view_member(v, from);
    if (!m || v->nmembers == 1)
        return;
    for (uint32_t i = 0; i < b->looks.n; i++)
        if (view_home(v, b->looks.v[i].fid) == members_self())
            looker_note(b->looks.v[i].fid, (uint32_t)(m - v->members), LOOK_OPEN, b->look_number);
    for (uint32_t i = 0; i < b->goes.n; i++)
        if (view_home(v, b->goes.v[i].fid) == members_self())
            looker_goes(b->goes.v[i].fid, (uint32_t)(m - v->members), b->look_number);
}

void home_heard_adopted(const struct view *v, uint64_t from, const struct msg *m)
{
    uint64_t incarnation = from == members_self() ? members_incarnation() : m->head.incarnation;
    lock_take(&home_lock);
    collect_report(v, from, incarnation, &m->adopted);
    take_looks(v, from, &m->adopted);
    lock_drop(&home_lock);
}

/* In turns with all else that the network thread does. */
static void become_complete(void *arg)
{
    const struct view *v = arg;
    lock_take(&home_lock);
    if (home.view == v && !collect_some(v)) {
        loop_post(become_complete, arg);
    } else if (home.view == v) {
        home.complete = true;
        home.complete_ms = boot_ms();
        home_arm(T_PING);
        home_copy_all(v);
    }
    lock_drop(&home_lock);
}

void home_all_adopted(const struct view *v)
{
    become_complete((void *)v);
}

/* ---- start, end ---- */

static void (*handlers[MSG_TYPES])(struct msg *m);

static void handle(struct msg *m)
{
    lock_take(&home_lock);
    handlers[m->head.type](m);
    lock_drop(&home_lock);
}

void home_handle(enum msg_type type, void (*fn)(struct msg *m))
{
    handlers[type] = fn;
    peer_handle(type, handle);
}

static void start_here(void *arg)
{
    (void)arg;
    home_time_start(tick);
}

void home_start(uint64_t known_ms)
{
    lookers_known_for(known_ms);
    loop_call(start_here, NULL);
    look_told_start();
    home_break_start();
    home_claim_start();
    home_lock_start();
    home_forget_start();
    home_copy_start();
}

static bool all(const struct record *r, void *arg)
{
    (void)r;
    (void)arg;
    return true;
}

static void stop_here(void *arg)
{
    (void)arg;
    lock_take(&home_lock);
    record_each(let_go, NULL);
    home_goes_drop();
    record_sweep(all, NULL);
    free(home.acked);
    free(home.copied);
    free(home.lock_numbers);
    home = (struct home_state){0};
    hints_drop();
    lookers_begin();
    home_forgets_drop();
    collect_stop();
    lock_drop(&home_lock);
    home_time_stop();
}

void home_stop(void)
{
    look_told_stop();
    loop_call(stop_here, NULL);
}
