/* borrow_flush.c - may a loan be flushed into its file?  Not when the claim that it was lent under is void: another node may
 * have the file by then, and its data goes beside it (flush/conflict.c).
 */
#include <errno.h>
#include <stdlib.h>

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

/* Was one of them forgotten?  For a node without a lease, or whose claimant is away: nobody else tells it.  What was read L/2 ago
 * is good enough (rule 17). */
static int is_marked(struct borrow *b, struct fid fid)
{
    uint64_t now = boot_ms();
    lock_take(&b->lock);
    bool fresh = b->marks_ms && now - b->marks_ms < T_LEASE / 2;
    lock_drop(&b->lock);
    if (fresh)
        return 0;
    int err = look_at_marks(b, b->lender, fid, voids_claim);
    if (!err)
        err = look_at_marks(b, members_self(), fid, voids_loan);
    lock_take(&b->lock);
    b->marks_ms = err ? 0 : now;
    lock_drop(&b->lock);
    return err;
}

/* The dirty units from *unit on that follow each other, at most LEND_MAX: *last.  False: none. */
static bool next_dirty(struct file *loan, uint64_t *unit, uint64_t *last)
{
    if (!store_loan_dirty(loan, unit))
        return false;
    *last = *unit;
    for (uint64_t next = *unit + 1; store_loan_dirty(loan, &next) && next == *last + 1 && next - *unit < LEND_MAX; next++)
        *last = next;
    return true;
}

/* Does the lender say of all that is dirty that it is lent to this node?  A loan that a daemon before this one had may have units
 * that were forgotten, beside new ones. */
static int hear_all(struct file *f, const struct borrow *b, struct file *loan, bool *mine)
{
    int err = 0;
    *mine = true;
    for (uint64_t unit = 0, last; !err && *mine && next_dirty(loan, &unit, &last); unit = last + 1)
        err = borrow_hear(f, b->lender, unit, last, mine);
    return err;
}

/* The claimant was started again, and has not asked for the loan yet: it may have lost the claim.  Its answer comes after
 * HELD, if it has it.  And in a new view: this node, or the claimant, may have been outside of those between, and what
 * it has was forgotten meanwhile. */
static int ask_lender(struct file *f, struct borrow *b, struct file *loan)
{
    if (borrow_is_sure(b))
        return 0;
    bool mine = false;
    int err = hear_all(f, b, loan, &mine);
    if (err)
        return err == -ENOENT ? err : -EAGAIN;
    if (borrow_is_sure(b)) /* it has asked (HELD) before it answered */
        return 0;
    if (!mine) /* it has taken it back: this node counted as gone */
        return -ENOENT;
    borrow_note_sure(b);
    return 0;
}

int borrow_may_flush(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    struct borrow *b = f ? borrow_if(f) : NULL;
    const struct view *v = members_view();
    int err = 0;
    if (!b || b->loan != loan)
        err = -EAGAIN;
    else if (borrow_is_void(b))
        err = -ENOENT;
    else if (!v || !members_lease() || view_absent(v, b->lender))
        err = is_marked(b, f->fid);
    else if (view_member(v, b->lender))
        err = ask_lender(f, b, loan);
    else
        err = -ENOENT; /* it left in order, or all it had was forgotten: nothing is lent any more */
    if (f)
        file_put(f);
    return err;
}

bool borrow_is_removed(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    struct borrow *b = f ? borrow_if(f) : NULL;
    uint64_t unit = 0;
    bool removed = b && b->loan == loan && store_loan_dirty(loan, &unit) &&
                   !borrow_hear(f, b->lender, unit, unit, NULL) && b->gone;
    if (f)
        file_put(f);
    return removed;
}

void borrow_void_begin(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    struct borrow *b = f ? borrow_if(f) : NULL;
    if (b) {
        lock_take(&b->lock);
        b->is_void = b->is_void || b->loan == loan;
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
