/* borrow_flush.c - may a loan be used, and flushed into its file?  Not when the claim that it was lent under is void, or this node was
 * forgotten: other nodes may have written the same parts since, and its data goes beside the file (flush/conflict.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "placement/borrow_flush.h"
#include "placement/borrow_int.h"
#include "placement/store/store_loan.h"
#include "placement/store/store_version.h"
#include "transport/marks.h"
#include "transport/members.h"
#include "transport/view.h"

/* An operator has forgotten the lender's claim (eddy forget FILE). */
static bool voids_claim(const struct borrow *b, const struct mark *m, struct fid fid)
{
    return mark_covers(m, fid, b->id.inc, b->id.number);
}

/* ... or all that this node has (eddy forget --node): its units may be another node's since. */
static bool voids_loan(const struct borrow *b, const struct mark *m, struct fid fid)
{
    (void)fid;
    return fid_is_zero(m->fid) && (b->unsure || m->incarnation >= members_incarnation());
}

static int look_at_marks(const struct borrow *b, uint64_t node, struct fid fid,
                         bool (*voids)(const struct borrow *, const struct mark *, struct fid))
{
    struct mark *marks;
    uint32_t n;
    int err = session_read_marks(node, &marks, &n);
    if (err)
        return err;
    for (uint32_t i = 0; i < n && !err; i++)
        if (voids(b, &marks[i], fid))
            err = -ENOENT;
    free(marks);
    return err;
}

/* Was one of them forgotten?  For a node without a lease, or whose claimant is away: nobody else tells it. */
static int is_marked(struct borrow *b, struct fid fid)
{
    if (borrow_marks_are_known(b))
        return 0;
    uint64_t now = boot_ms();
    int err = look_at_marks(b, b->lender, fid, voids_claim);
    if (!err)
        err = look_at_marks(b, members_self(), fid, voids_loan);
    b->marks_ms = err ? 0 : now;
    return err;
}

/* This node's units from *from on, at most LEND_MAX and within as many, in order; *from: behind them. */
static size_t own_units(struct borrow *b, uint64_t *from, struct item_lent *units)
{
    size_t n = 0;
    uint64_t first = *from, last, end = UINT64_MAX;
    lock_take(&b->lock);
    while (n < LEND_MAX && unit_next_run(&b->map, UNIT_MINE, &first, &last) && first < end) {
        end = n ? end : first + LEND_MAX;
        last = MIN(last, end - 1);
        units[n++] = (struct item_lent){first, last, 0};
        first = last + 1;
    }
    lock_drop(&b->lock);
    *from = first;
    return n;
}

/* Does the lender say of all that is this node's that it is lent to it?  A loan that a daemon before this one had may have units
 * that were forgotten, beside new ones. */
static int hear_all(struct file *f, struct borrow *b, bool *mine)
{
    int err = 0;
    size_t n;
    struct item_lent *units = xmalloc(LEND_MAX * sizeof(*units));
    *mine = true;
    for (uint64_t from = 0; !err && *mine && (n = own_units(b, &from, units));)
        err = borrow_hear(f, b->lender, units, n, mine);
    free(units);
    return err;
}

/* Is it the same loan still?  What was returned meanwhile the lender does not say to be this node's. */
static bool is_same(struct borrow *b, const struct file *loan, uint64_t began)
{
    lock_take(&b->lock);
    bool same = b->loan == loan && b->began == began && !b->sent;
    lock_drop(&b->lock);
    return same;
}

/* The claimant was started again, and has not asked for the loan yet: it may have lost the claim.  Its answer comes after
 * HELD, if it has it.  And in a new view: this node, or the claimant, may have been outside of those between, and what
 * it has was forgotten meanwhile. */
static int ask_lender(struct file *f, struct borrow *b, struct file *loan)
{
    const struct view *v = members_view();
    uint64_t view = v ? v->number : 0, inc = borrow_incarnation(b->lender), began = b->began;
    if (borrow_is_sure(b))
        return 0;
    bool mine = false;
    int err = hear_all(f, b, &mine);
    if (err && err != -ENOENT)
        return -EAGAIN;
    if (!err && borrow_is_sure(b)) /* it has asked (HELD) before it answered */
        return 0;
    if (err || !mine) /* it has taken it back: this node counted as gone */
        return is_same(b, loan, began) ? -ENOENT : -EAGAIN;
    lock_take(&b->lock);
    b->lender_inc = inc;
    b->sure_in = view;
    lock_drop(&b->lock);
    return 0;
}

/* 0; -ENOENT: the claim that it was lent under is void, or this node was forgotten; other -errno: it is not known now. */
static int holds(struct file *f, struct borrow *b, struct file *loan)
{
    const struct view *v = members_view();
    if (borrow_is_void(b))
        return -ENOENT;
    if (!v || !members_lease() || view_absent(v, b->lender))
        return is_marked(b, f->fid);
    if (view_member(v, b->lender))
        return ask_lender(f, b, loan);
    return -ENOENT; /* it left in order, or all it had was forgotten: nothing is lent any more */
}

int borrow_may_flush(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    struct borrow *b = f ? borrow_if(f) : NULL;
    int err = b && b->loan == loan ? holds(f, b, loan) : -EAGAIN;
    if (f)
        file_put(f);
    return err;
}

/* Of one that is returned or void nothing is this node's. */
static bool can_be_asked(struct borrow *b, const struct file *loan)
{
    lock_take(&b->lock);
    bool can = b->loan == loan && !b->is_void && !b->unanswered;
    lock_drop(&b->lock);
    return can;
}

bool borrow_may_use_asks(struct file *f)
{
    struct borrow *b = borrow_if(f);
    return b && b->loan && !borrow_is_void(b) && !borrow_is_known(b);
}

int borrow_may_use(struct file *f)
{
    struct borrow *b = borrow_if(f);
    if (!borrow_may_use_asks(f))
        return 0;
    struct file *loan = file_find_used(fid_of_loan(f->fid));
    if (!loan)
        return 0;
    uint64_t began = b->began;
    int err = can_be_asked(b, loan) ? holds(f, b, loan) : 0;
    if (err == -ENOENT && is_same(b, loan, began))
        borrow_void_begin(loan);
    file_put(loan);
    return err == -ENOENT ? 0 : err ? -EAGAIN : 0;
}

unsigned borrow_voided(struct file *f)
{
    struct borrow *b = borrow_if(f);
    if (!b)
        return 0;
    lock_take(&b->lock);
    unsigned voided = b->voided;
    lock_drop(&b->lock);
    return voided;
}

bool borrow_is_removed(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    struct borrow *b = f ? borrow_if(f) : NULL;
    uint64_t unit = 0;
    bool dirty = b && b->loan == loan && store_loan_dirty(loan, &unit);
    bool removed = dirty && !borrow_hear(f, b->lender, &(struct item_lent){unit, unit, 0}, 1, NULL) && b->gone;
    if (f)
        file_put(f);
    return removed;
}

void borrow_void_begin(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    struct borrow *b = f ? borrow_if(f) : NULL;
    if (b) {
        uint64_t unit = 0;
        bool dirty = store_loan_dirty(loan, &unit);
        lock_take(&b->lock);
        if (b->loan == loan && !b->is_void) {
            b->voided += dirty;
            b->is_void = true;
            borrow_own_nothing(b);
        }
        lock_drop(&b->lock);
    }
    if (f)
        file_put(f);
}

void borrow_void_end(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    store_set_deleted(loan); /* makes room: a return may wait for a call that waits for it */
    if (f && borrow_if(f))
        borrow_drop(f);
    if (f)
        file_put(f);
}
