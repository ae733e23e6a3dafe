/* lend.c - the start and the end of lending, and what `eddy status` says of it. */
#include <stdlib.h>

#include "placement/claims/claim_lent.h"
#include "placement/lend_int.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_read.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/view.h"

/* ---- start and end ---- */

static int own_word(struct file *f, uint64_t end_ms, uint64_t *away, uint64_t *size)
{
    int err = lend_pull_until(f, &(struct lend_until){end_ms, 0, away}, size);
    if (err)
        lend_say_away(f, *away);
    return err;
}

void lend_start(void)
{
    lend_set_leaving(false);
    claim_on_lent(own_word);
    peer_handle(MSG_LEND, lend_on_lend);
    peer_handle(MSG_RETURN, lend_on_return);
}

/* The PFS never gets what it has. */
static bool is_deleted(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return info.deleted;
}

/* Nobody needs the bytes of a removed file when its claimant leaves.  A borrower that comes back learns from the session's log of moves
 * that its file is gone (docs/protocol.md, rule 36). */
static void leave_one(void *arg, struct file *f)
{
    int *failed = arg, err = store_is_lent(f) ? lend_recall(f) : 0;
    if (err && is_deleted(f)) {
        store_lend_void(f);
        err = 0;
    }
    if (err)
        *failed = err;
}

int lend_leave(void)
{
    int err = 0;
    lend_set_leaving(true);
    claim_each(leave_one, &err);
    return err;
}

static bool is_away(struct file *f)
{
    const struct view *v = members_view();
    uint64_t nodes[LEND_MAX];
    unsigned n = MIN(store_borrowers(f, nodes, LEND_MAX), LEND_MAX);
    for (unsigned i = 0; i < n; i++)
        if (v && view_absent(v, nodes[i]))
            return true;
    return false;
}

static void finish_one(void *arg, struct file *f)
{
    const uint64_t *end_ms = arg;
    if (boot_ms() < *end_ms && store_is_lent(f) && !is_away(f) && !lend_recall(f))
        store_lend_go(f);
}

void lend_finish(void)
{
    uint64_t end_ms = boot_ms() + T_OPEN;
    claim_each(finish_one, &end_ms);
}

void lend_stop(void)
{
    claim_on_lent(NULL);
}

/* ---- for `eddy status` ---- */

struct telling {
    loan_status_fn *fn;
    void *arg;
};

static void tell_one(void *arg, struct file *f)
{
    const struct telling *t = arg;
    uint64_t nodes[LEND_MAX];
    if (!store_is_lent(f) || is_deleted(f))
        return;
    char *path = file_path(f);
    unsigned n = MIN(store_borrowers(f, nodes, LEND_MAX), LEND_MAX);
    for (unsigned i = 0; i < n; i++)
        loan_tell(t->fn, t->arg, path, nodes[i], store_lent_units(f, nodes[i]));
    if (!store_lent_is_known(f))
        t->fn(t->arg, &(struct loan_status){.path = path ? path : "?"});
    free(path);
}

void lend_each(loan_status_fn *fn, void *arg)
{
    claim_each(tell_one, &(struct telling){fn, arg});
}
