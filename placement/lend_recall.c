/* lend_recall.c - RECALL: the claimant takes back what it has lent. */
#include <errno.h>
#include <stdlib.h>

#include "placement/lend_int.h"

int lend_recall(struct file *f)
{
    struct lend_asked *list;
    unsigned n;
    int err = lend_know_soon(f), e;
    if (err)
        return err;
    uint64_t away = 0, epoch = store_lend_stop(f);
    err = lend_ask_all(f, LOAN_RECALL, &list, &n,
                       &(struct lend_until){boot_ms() + T_OPEN, epoch, &away});
    for (unsigned i = 0; i < n; i++)
        if (!list[i].err && (e = lend_take_rest(f, list[i].node, LENT_ANY)))
            err = err ? err : e;
    lend_asked_free(list, n);
    if (!err && store_is_lent(f))
        err = -EIO;
    if (err) {
        if (away)
            lend_say_away(f, away);
        store_lend_go(f);
    }
    return err;
}

int lend_recall_from(struct file *f, uint64_t node)
{
    uint64_t away, epoch = store_lend_stop(f);
    struct lend_asked a = {.node = node, .err = -EAGAIN};
    int err = lend_ask_until(f, LOAN_RECALL, &a, 1,
                             &(struct lend_until){boot_ms() + T_OPEN, epoch, &away});
    if (!err)
        err = lend_take_rest(f, node, LENT_ANY);
    free(a.parts);
    store_lend_go(f);
    return err;
}
