/* claim_lent.c - see claim_lent.h. */
#include "placement/claims/claim_lent.h"
#include "placement/claims/claim_int.h"
#include "placement/claims/claim_own.h"
#include "placement/store/store_lend.h"
#include "transport/peer.h"

#include <errno.h>

bool claim_id(struct file *f, uint64_t *inc, uint64_t *number)
{
    return own_has(f->fid, inc, number);
}

void claim_each(void (*fn)(void *arg, struct file *f), void *arg)
{
    own_each_arg(fn, arg);
}

/* ---- what its borrowers have written ---- */

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t none;
    int (*fn)(struct file *f, uint64_t end_ms, uint64_t *away, uint64_t *size);
    unsigned calls;
} lent = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}, .none = PTHREAD_COND_INITIALIZER};

void claim_on_lent(int (*fn)(struct file *f, uint64_t end_ms, uint64_t *away, uint64_t *size))
{
    lock_take(&lent.lock);
    lent.fn = fn;
    while (!fn && lent.calls)
        lock_wait(&lent.lock, &lent.none, 0);
    lock_drop(&lent.lock);
}

/* *out: what is told. */
static int bring_in(struct file *f, uint64_t end_ms, uint64_t *away, struct location *out)
{
    uint64_t size;
    lock_take(&lent.lock);
    int (*fn)(struct file *, uint64_t, uint64_t *, uint64_t *) = lent.fn;
    lent.calls += fn != NULL;
    lock_drop(&lent.lock);
    if (!fn)
        return 0;
    int err = fn(f, end_ms, away, &size);
    claim_own_word(f, out);
    if (!out->keep) /* else nothing is lent any more, and this node's word is exact */
        out->size = MIN(out->size, size);
    lock_take(&lent.lock);
    if (!--lent.calls)
        pthread_cond_broadcast(&lent.none);
    lock_drop(&lent.lock);
    return err;
}

bool claim_here_exactly(struct fid fid, uint64_t end_ms, struct location *out)
{
    struct file *f = claim_file_here(fid, out);
    uint64_t away = 0;
    if (!f)
        return false;
    if (store_is_lent(f)) {
        int err = bring_in(f, end_ms, &away, out);
        if (err)
            *out = (struct location){.where = WHERE_LOST, .node = away};
    }
    file_put(f);
    return true;
}

/* ---- asking for the size ---- */

static int ask_size(struct fid fid, uint64_t node, uint64_t *size)
{
    struct item_fid_item item = {fid};
    struct msg *m = msg_new(MSG_ASK), *reply = NULL;
    m->ask.look = LOOK_STAT;
    m->ask.fids.n = 1;
    m->ask.fids.v = &item;
    int err = peer_call(node, m, T_PING, NULL, 0, &reply);
    if (members_no_contact(err))
        members_doubt(node);
    if (err || reply->have.have.n != 1) {
        err = -EAGAIN;
    } else {
        const struct item_have *have = &reply->have.have.v[0];
        *size = have->size;
        err = have->mine == MINE ? 0 : !have->mine ? -ENOENT : have->away ? -EIO : -EAGAIN;
    }
    msg_free(reply);
    return err;
}

int claim_size(struct fid fid, uint64_t node, uint64_t end_ms, uint64_t *size)
{
    for (unsigned wait = 10;; wait = MIN(2 * wait, 200)) {
        int err = ask_size(fid, node, size);
        if (err != -EAGAIN)
            return err;
        if (boot_ms() >= end_ms)
            return -EIO;
        claim_wait(wait);
    }
}
