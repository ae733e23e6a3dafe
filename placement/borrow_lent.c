/* borrow_lent.c - LENT, an answer to LEND: a loan begins, or has more. */
#include "placement/borrow_int.h"
#include "placement/lend.h"
#include "placement/store/store_loan.h"
#include "transport/members.h"

/* Lock held, and dropped meanwhile.  Makes sure that there is a loan of this claim, whose PFS bytes count so far.
 * *made: there was none. */
static bool need_loan(struct file *f, uint64_t lender, const struct body_lent *lent, bool *made)
{
    struct borrow *b = borrow_of(f);
    struct loan_id id = {lent->number_inc, lent->number};
    if (b->loan && (b->lender != lender || !loan_id_eq(b->id, id)))
        return false;
    if (b->loan && b->is_void) /* first its data goes beside the file */
        return false;
    if (b->loan && !b->lender_inc) /* a dead daemon's, which may have been forgotten: nothing comes to it before that is known */
        return false;
    if (b->loan && b->base_end >= lent->base_end)
        return true;
    b->making = true;
    struct file *loan = b->loan;
    lock_drop(&b->lock);
    bool fresh = !loan;
    if (fresh)
        loan = borrow_loan_make(f);
    if (loan && store_loan_begin(loan, lender, id.inc, id.number, lent->base_end, fresh)) {
        if (fresh)
            borrow_loan_unmake(loan);
        loan = NULL;
    }
    if (fresh && loan)
        file_ref(f);
    lock_take(&b->lock);
    if (fresh && loan) {
        b->loan = loan;
        b->f = f;
        b->lender = lender;
        borrow_note_sure(b);
        b->id = id;
        b->began = lent->epoch;
        *made = true;
    }
    if (loan)
        b->base_end = MAX(b->base_end, lent->base_end);
    lock_drop(&b->lock);
    if (fresh && loan)
        borrow_list_add(b);
    lock_take(&b->lock);
    b->making = false;
    pthread_cond_broadcast(&b->changed);
    return loan;
}

static bool any_mine(const struct body_lent *lent)
{
    for (uint32_t i = 0; i < lent->parts.n; i++)
        if (lent->parts.v[i].node == members_self())
            return true;
    return false;
}

void borrow_lent(struct file *f, uint64_t lender, const struct body_lent *lent,
                 const struct body_lend *asked)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    while ((b->returning && !b->unanswered) || b->making)
        lock_wait(&b->lock, &b->changed, 0);
    bool made = false;
    bool mine = !b->unanswered && any_mine(lent) && !borrow_is_overtaken(b, lender, lent) &&
                need_loan(f, lender, lent, &made);
    mine = mine && !borrow_is_overtaken(b, lender, lent); /* while the lock was dropped */
    bool empty = made && !mine;
    if (empty) /* its size would be told */
        borrow_forget_begin(b);
    borrow_note(b, lent, mine);
    bool all = asked->ask == LEND_WANT && lent->why == LEND_ALL;
    for (uint64_t unit = asked->first; all && unit <= asked->last; unit++)
        if (!unit_get(&b->map, unit))
            unit_set(&b->map, unit, UNIT_CLAIMANTS); /* it has changed them itself */
    lock_drop(&b->lock);
    if (empty)
        borrow_forget(b, NULL);
}
