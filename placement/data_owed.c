/* data_owed.c - what a handle has changed at another node, and no sync has covered.
 *
 * A claim with writers moves on when its node is away for good only if an operator has forgotten it (eddy forget).  Then what was
 * carried there is lost, and the handle's next sync or close says so, once.  The mark of it is in the session directory until that
 * node is back and has put its bytes aside.
 */
#include "placement/claims/ended.h"
#include "placement/data_int.h"
#include "placement/data_owed.h"
#include "transport/marks.h"

#include <errno.h>
#include <stdlib.h>

/* A claim keeps its number over starts of its node, and a node that serves a file has settled each older mark of it. */
static bool covers(const struct mark *m, struct fid fid, uint64_t inc)
{
    return fid_is_zero(m->fid) ? m->incarnation >= inc : fid_eq(m->fid, fid);
}

/* Marks that cannot be read count: the bytes may be lost. */
static bool was_forgotten(struct fid fid, uint64_t node, uint64_t inc)
{
    struct mark *marks;
    uint32_t n;
    bool was = false;
    if (session_read_marks(node, &marks, &n))
        return true;
    for (uint32_t i = 0; i < n; i++)
        was |= covers(&marks[i], fid, inc);
    free(marks);
    return was;
}

void data_owed_moves(struct data_handle *h, const struct location *at)
{
    lock_take(&h->lock);
    bool stays = at->where == WHERE_NODE && at->node == h->owed;
    uint64_t node = stays ? 0 : h->owed, inc = h->owed_inc;
    h->owed = stays ? h->owed : 0;
    lock_drop(&h->lock);
    if (!node || data_incarnation(node) == inc || ended_in_order(node, inc) || !was_forgotten(h->f->fid, node, inc))
        return;
    lock_take(&h->lock);
    h->given_up = true;
    lock_drop(&h->lock);
}

int data_given_up(struct data_handle *h)
{
    lock_take(&h->lock);
    bool given_up = h->given_up;
    h->given_up = false;
    lock_drop(&h->lock);
    return given_up ? -EIO : 0;
}

int data_owed_settle(struct data_handle *h, int err)
{
    lock_take(&h->lock);
    if (!err)
        h->owed = 0;
    lock_drop(&h->lock);
    int lost = data_given_up(h);
    return lost ? lost : err;
}
