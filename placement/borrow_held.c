/* borrow_held.c - HELD: the claimant was started again, and asks what this node holds. */
#include <errno.h>

#include "placement/borrow_int.h"
#include "placement/store/store_loan.h"
#include "transport/members.h"

/* Lock held.  Own runs of units from `from` on. */
static void list_runs(struct borrow *b, uint64_t from, struct body_loan_is *is,
                      struct item_lent *parts)
{
    uint64_t first = from, last;
    while (unit_next_run(&b->map, UNIT_MINE, &first, &last)) {
        is->more = is->parts.n == LEND_MAX;
        if (is->more)
            break;
        last = MIN(last, first + LEND_MAX - 1);
        parts[is->parts.n++] = (struct item_lent){first, last, members_self()};
        first = last + 1;
    }
    is->parts.v = parts;
}

int borrow_held(struct file *f, uint64_t lender, const struct body_loan *asked,
                struct body_loan_is *is, struct item_lent *parts)
{
    struct borrow *b = borrow_if(f);
    if (!b)
        return 0;
    struct loan_id id = {asked->number_inc, asked->number};
    lock_take(&b->lock);
    while (b->making)
        lock_wait(&b->lock, &b->changed, 0);
    if (b->sent && !b->unanswered) {
        lock_drop(&b->lock);
        return -EAGAIN;
    }
    borrow_set_overtaken(
        b,
        &(struct overtaken){lender, id, asked->epoch}); /* also of answers of the daemon before */
    /* what was returned, perhaps, the dead daemon may have lent to others; but it may not have heard when it was written */
    struct file *loan = b->lender == lender && !b->unanswered && !b->is_void ? b->loan : NULL;
    struct file *returned = b->lender == lender && b->unanswered ? b->loan : NULL;
    b->using += returned != NULL;
    if (loan) {
        b->id = id;
        borrow_note_sure(b);
        b->using ++;
        is->held = 1;
        is->base_end = b->base_end;
        list_runs(b, asked->from, is, parts);
    }
    lock_drop(&b->lock);
    if (returned) {
        uint64_t size; /* may have been cut since */
        borrow_is(returned, &size, &is->mtime_ns);
        borrow_use_end(f);
    }
    if (!loan)
        return 0;
    int err = store_loan_begin(loan, lender, id.inc, id.number, is->base_end, false);
    borrow_is(loan, &is->size, &is->mtime_ns);
    borrow_use_end(f);
    return err;
}
