/* figures_ask.c - see figures_ask.h.  The answer comes from memory, so the network thread gives it itself. */
#include "fs/daemon/figures_ask.h"

#include <stdlib.h>

#include "fs/daemon/figures.h"
#include "transport/lock.h"
#include "transport/peer.h"

#define SILENCE_MS 1000

static _Atomic bool is_ready;

void figures_ready(bool ready)
{
    is_ready = ready;
}

static void on_tell(struct msg *m)
{
    if (!(m->head.flags & MSG_F_WANTS)) {
        peer_refuse(m);
        return;
    }
    if (!is_ready) {
        peer_reply_error(m, -E_ASK_AGAIN);
        msg_free(m);
        return;
    }
    struct figure all[FIGURES];
    struct item_figure items[FIGURES];
    figures_take(all);
    for (size_t i = 0; i < FIGURES; i++)
        items[i] = (struct item_figure){.value = all[i].value, .name = all[i].name};
    struct msg *r = msg_new(MSG_FIGURES);
    r->figures.figures.n = FIGURES;
    r->figures.figures.v = items;
    peer_reply(m, r);
    msg_free(m);
}

void figures_serve(void)
{
    peer_handle(MSG_TELL_FIGURES, on_tell);
}

/* ---- asking ---- */

struct round {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t done;
    size_t waiting;
};

struct asked_node {
    struct round *round;
    struct msg **reply;
    int *err;
};

static void told(void *arg, int err, struct msg *reply, bool *keep)
{
    struct asked_node *a = arg;
    *a->err = err;
    if (!err) {
        *a->reply = reply;
        *keep = true;
    }
    lock_take(&a->round->lock);
    if (!--a->round->waiting)
        pthread_cond_signal(&a->round->done);
    lock_drop(&a->round->lock);
}

void figures_ask(const uint64_t *ids, size_t n, struct msg **replies, int *errs)
{
    struct round round = {.waiting = n};
    struct asked_node *asked = xcalloc(n + 1, sizeof(*asked));
    lock_init(&round.lock, RANK_LEAF);
    lock_cond_init(&round.done);
    for (size_t i = 0; i < n; i++) {
        replies[i] = NULL;
        asked[i] = (struct asked_node){&round, &replies[i], &errs[i]};
        peer_request(ids[i], msg_new(MSG_TELL_FIGURES), SILENCE_MS, NULL, 0, told, &asked[i]);
    }
    lock_take(&round.lock);
    while (round.waiting)
        lock_wait(&round.lock, &round.done, 0);
    lock_drop(&round.lock);
    lock_destroy(&round.lock);
    pthread_cond_destroy(&round.done);
    free(asked);
}
