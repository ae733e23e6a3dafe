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

/* An operator has forgotten the claim (eddy forget) while the claimant is away.  What was read L/2 ago is good enough
 * (rule 17). */
static int is_marked(struct borrow *b, struct fid fid)
{
    struct mark *marks;
    uint32_t n;
    uint64_t now = boot_ms();
    lock_take(&b->lock);
    bool fresh = b->marks_ms && now - b->marks_ms < T_LEASE / 2;
    lock_drop(&b->lock);
    if (fresh)
        return 0;
    int err = session_read_marks(b->lender, &marks, &n);
    if (err)
        return err;
    for (uint32_t i = 0; i < n && !err; i++)
        if (mark_covers(&marks[i], fid, b->id.inc, b->id.number))
            err = -ENOENT;
    free(marks);
    lock_take(&b->lock);
    b->marks_ms = err ? 0 : now;
    lock_drop(&b->lock);
    return err;
}

/* The claimant was started again, and has not asked for the loan yet: it may have lost the claim.  Its answer comes after
 * HELD, if it has it. */
static int ask_lender(struct file *f, struct borrow *b, struct file *loan)
{
    uint64_t unit = 0;
    if (!store_loan_dirty(loan, &unit))
        return 0;
    bool mine = false;
    int err = borrow_hear(f, b->lender, unit, &mine);
    if (err)
        return err == -ENOENT ? err : -EAGAIN;
    if (b->lender_inc == borrow_incarnation(b->lender)) /* it has asked (HELD) before it answered */
        return 0;
    if (!mine) /* it has taken it back: this node counted as gone */
        return -ENOENT;
    b->lender_inc = borrow_incarnation(b->lender);
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
    else if (v && view_member(v, b->lender))
        err = b->lender_inc == borrow_incarnation(b->lender) ? 0 : ask_lender(f, b, loan);
    else if (!v || view_absent(v, b->lender))
        err = is_marked(b, f->fid);
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
                   !borrow_hear(f, b->lender, unit, NULL) && b->gone;
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
