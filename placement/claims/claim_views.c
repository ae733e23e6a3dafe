/* claim_views.c - this node's claims from the start to the end: they are taken up from the store, reported in
 * every view, and given back (docs/protocol.md, rules 3, 16, 18).
 */
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_int.h"

#include "placement/claims/claim_life.h"
#include "placement/claims/claim_own.h"
#include "placement/claims/ended.h"
#include "placement/claims/home.h"
#include "placement/claims/locks.h"
#include "placement/claims/lost.h"
#include "placement/claims/pins.h"
#include "placement/claims/reports.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "transport/view.h"

/* ---- what was claimed when the daemon ended ---- */

/* Before any other thread asks. */
static void hold(struct file *f, uint64_t inc, uint64_t number)
{
    struct file_claim *c = claim_of(f);
    c->inc = inc;
    c->number = number;
    c->state = CLAIM_HELD;
    file_ref(f);
}

/* The claim is held, so that no open here asks for it; but no node is told so. */
static void take_up_forgotten(struct file *f, const struct file_info *info)
{
    hold(f, info->claim_inc, info->claim_number);
    claim_set_forgotten(f);
}

/* The store has the number under which the home knows the claim, or knew it when it was marked.
 * The new number counts from the join on, and only in memory. */
static int take_up(void *arg, struct file *f)
{
    unsigned *n = arg;
    struct file_info info;
    store_info(f, &info);
    if (fid_is_loan(f->fid))
        return 0;
    if (!info.dirty && !info.lent) {
        store_clear_claim(f, info.base_known ? &info.base : NULL);
        return 0;
    }
    if (info.claimed && claim_is_marked(f->fid, info.claim_inc, info.claim_number)) {
        take_up_forgotten(f, &info);
        return 0;
    }
    uint64_t inc = members_incarnation(), number = claim_next_number();
    if (!info.claimed)
        store_set_claim(f, inc, number, NULL);
    hold(f, inc, number);
    claim_of(f)->watchers_unknown = true;
    own_add(f->fid, inc, number, 0);
    (*n)++;
    return 0;
}

int claim_recover(void)
{
    unsigned n = 0;
    int err = claim_marks_read();
    if (!err)
        err = store_each_claimed(take_up, &n);

    if (n)
        log_info(
            "%u files were not on the PFS when the daemon ended: they are served and flushed now",
            n);
    return err;
}

/* ---- views ---- */

static void (*on_adopted)(const struct view *v);

void claim_on_adopted(void (*fn)(const struct view *v))
{
    on_adopted = fn;
}

static _Atomic bool was_outside; /* and what was believed before has not been ended yet */

/* Is a node of the view before gone that may still run?  If it has claims of files that are open here, it goes on
 * writing them, and cannot reach this node: see claim_watch.h. */
static bool somebody_is_gone(const struct view *before, const struct view *v)
{
    for (uint32_t i = 0; before && i < before->nmembers; i++)
        if (!view_member(v, before->members[i].id) && view_absent(v, before->members[i].id))
            return true;
    return false;
}

static void end_beliefs(const struct view *v)
{
    static const struct view *before;
    if (v)
        ended_adopted(before, v);
    else
        ended_outside();
    if (!v)
        was_outside = true;
    else if (somebody_is_gone(before, v))
        look_end_all(false);
    before = v ? v : before;
}

/* In pool_session.  Nobody tells a node outside of changes: what it believed ends before it is back. */
static void outside(void)
{
    if (atomic_exchange(&was_outside, false))
        look_end_all(true);
    claim_marks_void();
}

static void adopted(const struct view *v)
{
    own_adopted(v ? v->number : 0);
    home_adopted(v);
    look_adopted(); /* after the home: then a ticket that holds is of no answer of the older view */
    pins_adopted(v);
    if (on_adopted)
        on_adopted(v);
    claim_marks_adopted(v);
    lost_look(v);
    end_beliefs(v);
    claim_wake();
}

static void all_adopted(const struct view *v)
{
    home_all_adopted(v);
    claim_marks_all_adopted();
    claim_wake();
}

const struct members_ops claim_members_ops = {
    .report_make = reports_make,
    .report_fill = reports_fill,
    .report_free = reports_free,
    .adopted = adopted,
    .heard_adopted = home_heard_adopted,
    .all_adopted = all_adopted,
    .outside = outside,
};

/* ---- all of them ---- */

unsigned claim_held(void)
{
    return own_count();
}

unsigned claim_give_back_all(void)
{
    own_each(claim_give_back);
    return own_count();
}

/* ---- start, end ---- */

void claim_start(void)
{
    look_start();
    claim_where_start();
    own_start();
    locks_start();
    claim_serve_start();
    claim_named_start();
}

/* Claims that are left stay on disk: the next start takes them up. */
void claim_stop(void)
{
    claim_serve_stop();
    own_each(file_put); /* the claim's reference */
    lost_stop();
    locks_stop();
    own_stop();
    look_stop();
}
