/* claim_serve.c - the claimant's side: ASK from other nodes (docs/protocol.md, rule 12).
 *
 * HAVE is this node's answer.  "Not mine" is also sent to the home, as FREE: else the home would go on
 * sending other nodes to this one.
 */
#include "placement/claims/claim.h"
#include "placement/claims/claim_int.h"
#include "placement/claims/claim_watch.h"

#include "placement/store/store_lend.h"
#include "transport/loop.h"
#include "transport/peer.h"

#include <errno.h>

/* "Not mine": requests up to this number have no claim.  A WANT in progress is not covered, nor is one that
 * begins meanwhile: its number is given out after this one was read, or its file is found. */
static void say_not_mine(struct fid fid)
{
    uint64_t number = claim_last_number();
    struct file *f = file_find(fid);
    struct file_claim *c = f ? claim_if(f) : NULL;
    if (c) {
        lock_take(&c->lock);
        if (c->state != CLAIM_NONE)
            number = c->number - 1;
        lock_drop(&c->lock);
    }
    if (f)
        file_put(f);
    claim_tell_free(fid, members_incarnation(), number, NULL, NULL, NULL);
}

static bool watch(const struct msg *m, struct fid fid)
{
    struct file *f = file_find(fid);
    bool watched = f && claim_watch_begin(f, m->head.sender, m->head.incarnation);
    if (f)
        file_put(f);
    return watched;
}

/* Who wants to tell the size needs the exact one. */
static bool here(const struct msg *m, struct fid fid, struct location *l)
{
    uint64_t end_ms = boot_ms() + T_PING / 2; /* the asker's silence */
    return m->ask.look == LOOK_STAT ? claim_here_exactly(fid, end_ms, l) : claim_here(fid, l);
}

static bool is_absent(uint64_t node)
{
    const struct view *v = members_view();
    return v && view_absent(v, node);
}

static void answer_ask(void *arg)
{
    struct msg *m = arg, *r = msg_new(MSG_HAVE);
    struct item_have *items = xcalloc(m->ask.fids.n + 1, sizeof(*items));
    for (uint32_t i = 0; i < m->ask.fids.n; i++) {
        struct location l = {.where = WHERE_HERE};
        bool watched = m->ask.look == LOOK_OPEN && watch(m, m->ask.fids.v[i].fid);
        if (here(m, m->ask.fids.v[i].fid, &l)) /* after it: it is told of what comes then */
            items[i] = (struct item_have){.mine = l.where == WHERE_HERE ? MINE : MINE_VAGUE,
                                          .watched = watched,
                                          .away = l.where == WHERE_LOST && is_absent(l.node) ? l.node : 0,
                                          .size = l.size,
                                          .mtime_ns = l.mtime_ns,
                                          .ctime_ns = l.ctime_ns,
                                          .stands_ns = l.stands_ns,
                                          .blocks = l.blocks,
                                          .counter = l.counter,
                                          .begun = l.begun};
        else
            say_not_mine(m->ask.fids.v[i].fid);
    }
    r->have.have.n = m->ask.fids.n;
    r->have.have.v = items;
    r->arena = items;
    peer_reply(m, r);
    msg_free(m);
}

static struct pool *lent_pool;

/* Answers that may have to wait for borrowers are not given in libuv's pool. */
static void sort_ask(void *arg)
{
    struct msg *m = arg;
    bool lent = false;
    if (m->ask.look != LOOK_STAT) {
        answer_ask(m);
        return;
    }
    for (uint32_t i = 0; !lent && i < m->ask.fids.n; i++) {
        struct file *f = claim_is_here(m->ask.fids.v[i].fid) ? file_find(m->ask.fids.v[i].fid) : NULL;
        lent = f && store_is_lent(f);
        if (f)
            file_put(f);
    }
    if (lent)
        pool_submit(lent_pool, answer_ask, m);
    else
        answer_ask(m);
}

static void handle_ask(struct msg *m)
{
    if (m->ask.fids.n > ASK_BATCH) {
        peer_reply_error(m, -EINVAL);
        msg_free(m);
    } else {
        loop_work(sort_ask, NULL, m);
    }
}

void claim_serve_start(void)
{
    lent_pool = pool_new("asked", 32);
    peer_handle(MSG_ASK, handle_ask);
}

void claim_serve_stop(void)
{
    pool_free(lent_pool);
    lent_pool = NULL;
}
