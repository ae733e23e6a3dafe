/* lend_return.c - RETURN: what a borrower had is on the PFS, and is not lent any more. */
#include <errno.h>
#include <stdlib.h>

#include "placement/claims/claim.h"
#include "placement/claims/claim_lent.h"
#include "placement/lend_int.h"
#include "transport/loop.h"
#include "transport/peer.h"

/* What the node wrote is on the PFS.  *b: what RETURN says. */
static int take_back(struct file *f, uint64_t node, struct lent_back *b, uint64_t *epoch)
{
    do {
        b->looks = store_pfs_looks(f);
        int err = lend_look_at_pfs(f, &b->v);
        if (err)
            return err;
    } while (!store_lent_returned(f, node, b, epoch));
    return 0;
}

int lend_take_rest(struct file *f, uint64_t node, uint64_t began)
{
    uint64_t epoch;
    struct lent_back back = {.began = began, .mtime_ns = INT64_MIN};
    return store_borrower_inc(f, node) ? take_back(f, node, &back, &epoch) : 0;
}

struct asking_job {
    struct file *f;
    struct lend_node node;
};

static void asking_job(void *arg)
{
    struct asking_job *j = arg;
    lend_know_node(j->f, j->node);
    file_put(j->f);
    free(j);
}

/* RETURN comes again.  What its sender holds is asked before that, and not meanwhile: it could not say. */
static void ask_before_return(struct file *f, struct lend_node node)
{
    if (lend_is_learning())
        return;
    struct asking_job *j = xcalloc(1, sizeof(*j));
    *j = (struct asking_job){file_ref(f), node};
    pool_submit(loan_lend, asking_job, j);
}

/* Not this claim's: nothing is lent under it any more. */
static int returned(struct file *f, const struct msg *m, uint64_t *epoch)
{
    uint64_t inc, number;
    struct lend_node from = {m->head.sender, m->head.incarnation};
    if (!claim_id(f, &inc, &number) || inc != m->ret.number_inc || number != m->ret.number)
        return 0;
    if (lend_is_renewed(f, from.id, from.inc)) {
        ask_before_return(f, from);
        return -EIO;
    }
    struct lent_back back = {
        .size = m->ret.size, .mtime_ns = m->ret.mtime_ns, .began = m->ret.began, .inc = from.inc};
    int err = take_back(f, from.id, &back, epoch);
    return err == -EAGAIN || err == -ENOENT ? -EIO : err;
}

static int serve_return(const struct msg *m, struct msg **reply)
{
    struct file *f = file_find(m->ret.fid);
    uint64_t epoch = 0;
    int err = 0;
    if (f && !store_lent_is_known(f)) { /* the daemon before this one lent it, under a claim that may have had another number */
        ask_before_return(f, (struct lend_node){m->head.sender, m->head.incarnation});
        err = -EIO;
    } else if (f && !claim_carry_begin(f)) {
        err = returned(f, m, &epoch);
        claim_carry_end(f);
    }
    if (f)
        file_put(f);
    if (err)
        return err;
    *reply = msg_new(MSG_RETURNED);
    (*reply)->returned.epoch = epoch;
    return 0;
}

void lend_on_return(struct msg *m)
{
    if (m->head.flags & MSG_F_WANTS && m->ret.size <= INT64_MAX)
        loan_serve(loan_back, serve_return, m);
    else
        peer_refuse(m);
}
