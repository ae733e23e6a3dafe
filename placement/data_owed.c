/* data_owed.c - what was given up of a handle's changes, at other nodes (owed.c) or in a loan of this one: the next sync or close
 * says so, once.
 */
#include "placement/borrow_flush.h"
#include "placement/data_int.h"
#include "placement/data_owed.h"

/* Before a claim moves on in order, all is flushed, also what was borrowed. */
void data_owed_moves(struct data_handle *h, const struct location *at)
{
    uint64_t node = at->where == WHERE_NODE ? at->node : at->where == WHERE_HERE ? 0 : OWED_NOBODY;
    if (owed_moves(&h->owed, node))
        owed_look(&h->owed, h->f->fid, true);
}

bool data_given_up_asks(struct data_handle *h)
{
    return owed_is_doubtful(&h->owed) || borrow_may_use_asks(h->f);
}

int data_given_up(struct data_handle *h)
{
    if (owed_is_doubtful(&h->owed))
        owed_look(&h->owed, h->f->fid, false);
    borrow_may_use(h->f); /* if nobody answers it is not known to be lost */
    unsigned voided = borrow_voided(h->f);
    bool loan = atomic_exchange(&h->voided_seen, voided) != voided;
    return owed_said(&h->owed) || loan ? -EIO : 0;
}

int data_owed_settle(struct data_handle *h, uint64_t notes, int err)
{
    int lost = data_given_up(h);
    if (!err && !lost)
        owed_covered(&h->owed, notes);
    return lost ? lost : err;
}
