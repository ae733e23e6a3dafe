/* borrow_serve.c - LOAN: what a claimant asks of its borrowers (lend.h). */
#include <errno.h>
#include <stdlib.h>

#include "placement/borrow_flush.h"
#include "placement/borrow_int.h"
#include "placement/lend.h"
#include "placement/local.h"
#include "placement/store/store_read.h"
#include "placement/store/store_write.h"
#include "transport/peer.h"

/* If it has all of [off, off + len).  What it does not know is asked of the claimant, if an answer may have been lost. */
struct file *borrow_use_begin(struct file *f, uint64_t off, uint64_t *len)
{
    struct borrow *b = borrow_if(f);
    if (!b || !*len || borrow_may_use(f))
        return NULL;
    struct place p = borrow_place(b, off, *len);
    if (p.number != UNIT_MINE && b->unsure && b->loan && !borrow_learn(f, b->lender, off, *len, false))
        p = borrow_place(b, off, *len);
    if (p.number != UNIT_MINE)
        return NULL;
    *len = p.len;
    return b->loan; /* it stays while it is used */
}

/* -EAGAIN and -ENOENT have meanings of their own for the asker: of HELD, RECALL and TIMES, that it asks again. */
static int told_error(uint8_t op, int err)
{
    if (err == -EAGAIN && (op == LOAN_HELD || op == LOAN_RECALL || op == LOAN_TIMES))
        return err;
    return err == -EAGAIN || err == -ENOENT ? -EIO : err;
}

static int do_op(struct file *f, const struct body_loan *b, const struct overtaken *o, struct file *loan,
                 struct body_loan_is *is)
{
    is->held = 1;
    switch (b->op) {
    case LOAN_TIMES: {
        int err = borrow_timed(borrow_of(f), loan);
        if (err)
            return err;
        break;
    }
    case LOAN_SYNC: {
        int err = store_sync(loan);
        if (err)
            return err;
        break;
    }
    case LOAN_FLUSH: {
        int err = local_sync_pfs(loan);
        if (err)
            return err;
        break;
    }
    case LOAN_RECALL:
        is->held = 0;
        return borrow_end(f, o);
    default:
        break;
    }
    borrow_is(loan, &is->size, &is->mtime_ns);
    return 0;
}

static int do_loan(const struct msg *m, struct body_loan_is *is, struct item_lent *parts)
{
    const struct body_loan *b = &m->loan;
    struct file *f = file_find_used(b->fid);
    struct overtaken o = {m->head.sender, {b->number_inc, b->number}, b->epoch};
    struct file *loan = f ? borrow_loan(f, o.lender, o.id) : NULL;
    int err = 0;
    is->mtime_ns = INT64_MIN;
    if (f && b->op == LOAN_HELD)
        err = borrow_held(f, m->head.sender, b, is, parts);
    else if (loan)
        err = do_op(f, b, &o, loan, is);
    else if (f && b->op == LOAN_RECALL) /* an answer to LEND may be on its way */
        borrow_overtake(f, &o);
    if (loan)
        file_put(loan);
    if (f)
        file_put(f);
    return told_error(b->op, err);
}

static int serve_loan(const struct msg *m, struct msg **reply)
{
    struct msg *r = msg_new(MSG_LOAN_IS);
    if (m->loan.op == LOAN_HELD)
        r->arena = xcalloc(LEND_MAX, sizeof(struct item_lent));
    int err = do_loan(m, &r->loan_is, r->arena);
    if (err)
        msg_free(r);
    else
        *reply = r;
    return err;
}

/* Network thread. */
static void on_loan(struct msg *m)
{
    if (!(m->head.flags & MSG_F_WANTS) || m->loan.op < LOAN_SIZE || m->loan.op > LOAN_OPS) {
        peer_refuse(m);
        return;
    }
    loan_serve(m->loan.op == LOAN_FLUSH || m->loan.op == LOAN_RECALL ? loan_slow : loan_quick, serve_loan, m);
}

void borrow_start(void)
{
    borrow_begin();
    peer_handle(MSG_LOAN, on_loan);
}
