/* borrow_overtaken.c - answers to LEND that do not count any more: of an epoch, or a claim, of their lender before one of
 * which this node has heard that nothing is borrowed.
 */
#include "placement/borrow_loan.h"

/* Of one lender: claims in their order, and epochs within one claim. */
static bool is_earlier(const struct overtaken *a, const struct overtaken *b)
{
    if (a->lender != b->lender)
        return false;
    if (a->id.inc != b->id.inc)
        return a->id.inc < b->id.inc;
    return a->id.number != b->id.number ? a->id.number < b->id.number : a->epoch < b->epoch;
}

bool borrow_is_overtaken(const struct borrow *b, uint64_t lender, const struct body_lent *lent)
{
    return is_earlier(&(struct overtaken){lender, {lent->number_inc, lent->number}, lent->epoch},
                      &b->overtaken);
}

void borrow_set_overtaken(struct borrow *b, const struct overtaken *o)
{
    if (!is_earlier(o, &b->overtaken))
        b->overtaken = *o;
}

void borrow_overtake(struct file *f, const struct overtaken *o)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    borrow_set_overtaken(b, o);
    lock_drop(&b->lock);
}
