/* lend_ask.c - the claimant asks borrowers of a file (LOAN), all of them at the same time, and again until each has
 * answered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_lent.h"
#include "placement/lend_int.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/view.h"

void lend_pause(uint64_t *wait_ms)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)(*wait_ms / 1000),
                                 .tv_nsec = (long)(*wait_ms % 1000) * 1000000},
              NULL);
    *wait_ms = MIN(2 * *wait_ms, UINT64_C(500));
}

struct asking {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t ended;
    unsigned open; /* questions without an answer */
};

static struct item_lent *copy_parts(const struct body_loan_is *is)
{
    size_t n = MIN(is->parts.n, LEND_MAX);
    struct item_lent *parts = xcalloc(n + 1, sizeof(*parts));
    if (n)
        memcpy(parts, is->parts.v, n * sizeof(*parts));
    return parts;
}

/* Network thread. */
static void answered(void *arg, int err, struct msg *reply, bool *keep)
{
    struct lend_asked *a = arg;
    (void)keep;
    a->err = err;
    if (!err) {
        a->is = reply->loan_is;
        a->inc = reply->head.incarnation;
        a->is.size = MIN(a->is.size, (uint64_t)INT64_MAX);
        a->is.parts.v = NULL;
        a->parts = copy_parts(&reply->loan_is);
    } else if (!reply) {
        members_doubt(a->node);
        a->err = -EAGAIN;
    }
    lock_take(&a->of->lock);
    if (!--a->of->open)
        pthread_cond_signal(&a->of->ended);
    lock_drop(&a->of->lock);
}

static void send_loan(struct file *f, enum loan_op op, uint64_t epoch, struct lend_asked *a)
{
    struct msg *m = msg_new(MSG_LOAN);
    m->loan.fid = f->fid;
    m->loan.op = (uint8_t)op;
    m->loan.epoch = epoch;
    m->loan.from = a->from;
    claim_id(f, &m->loan.number_inc, &m->loan.number);
    peer_request(a->node, m, T_SUSPECT, NULL, 0, answered, a);
}

/* Those of the n that have not answered yet. */
static void ask_once(struct file *f, enum loan_op op, uint64_t epoch, struct lend_asked *list,
                     unsigned n)
{
    struct asking of = {.open = 1};
    lock_init(&of.lock, RANK_LEAF);
    lock_cond_init(&of.ended);
    for (unsigned i = 0; i < n; i++)
        if (list[i].err == -EAGAIN) {
            lock_take(&of.lock);
            of.open++;
            lock_drop(&of.lock);
            list[i].of = &of;
            send_loan(f, op, epoch, &list[i]);
        }
    lock_take(&of.lock);
    of.open--;
    while (of.open)
        lock_wait(&of.lock, &of.ended, 0);
    lock_drop(&of.lock);
    pthread_cond_destroy(&of.ended);
    lock_destroy(&of.lock);
}

void lend_asked_free(struct lend_asked *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        free(list[i].parts);
    free(list);
}

bool lend_is_out(uint64_t node)
{
    const struct view *v = members_view();
    return v && !view_member(v, node) && !view_absent(v, node);
}

static bool is_absent(uint64_t node)
{
    const struct view *v = members_view();
    return v && view_absent(v, node);
}

/* The first error, or 0; *away: whose. */
static int first_error(const struct lend_asked *list, unsigned n, uint64_t *away)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i].err) {
            *away = list[i].node;
            return list[i].err;
        }
    return 0;
}

int lend_ask_until(struct file *f, enum loan_op op, struct lend_asked *list, unsigned n,
                   const struct lend_until *u)
{
    if (claim_is_forgotten(f)) /* it lends nothing, and takes nothing back */
        return -EIO;
    for (uint64_t wait_ms = LEND_AGAIN_MS;; lend_pause(&wait_ms)) {
        ask_once(f, op, u->epoch, list, n);
        for (unsigned i = 0; i < n; i++)
            if (list[i].err == -EAGAIN && lend_is_out(list[i].node)) {
                list[i].err = 0;
                list[i].out = true;
                list[i].is = (struct body_loan_is){.mtime_ns = INT64_MIN};
            }
        int err = first_error(list, n, u->away);
        if (err != -EAGAIN)
            return err;
        if (boot_ms() >= u->end_ms || (op == LOAN_SIZE && is_absent(*u->away)))
            return -EIO;
    }
}

int lend_ask_all(struct file *f, enum loan_op op, struct lend_asked **list, unsigned *n,
                 const struct lend_until *u)
{
    uint64_t nodes[LEND_MAX];
    *n = MIN(store_borrowers(f, nodes, LEND_MAX), LEND_MAX);
    *list = xcalloc(*n + 1, sizeof(**list));
    for (unsigned i = 0; i < *n; i++)
        (*list)[i] = (struct lend_asked){.node = nodes[i], .err = -EAGAIN};
    return lend_ask_until(f, op, *list, *n, u);
}

void lend_say_away(struct file *f, uint64_t node)
{
    static _Atomic uint64_t said;
    if (!log_every(&said, 10000))
        return;
    char *path = file_path(f);
    struct unit_sum has = store_lent_units(f, node);
    log_warn("%s: node %s has borrowed parts of it (%llu bytes between %llu and %llu), and does not answer: EIO until "
             "it does",
             path ? path : "?", members_name(node), (unsigned long long)(has.units * LOAN_UNIT),
             (unsigned long long)(has.first * LOAN_UNIT), (unsigned long long)(has.end * LOAN_UNIT));
    free(path);
}
