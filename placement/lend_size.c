/* lend_size.c - size and mtime of a file of which parts are lent: its borrowers say how far they have written, and when. */
#include "placement/lend_int.h"
#include "placement/store/store_read.h"

/* Rounds; while borrowers make the file longer in each of them, the last one counts. */
#define PULLS 16

static uint64_t size_here(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return info.size;
}

/* Sizes only grow while parts are lent and no epoch begins.  So if no borrower says more than was known before all were
 * asked, that was the size when they were.  It is told, and not what has come in meanwhile: without the rest of that, the
 * file was perhaps never so long.  What the only borrower says is the size, if nothing else has come in.
 * *agree: *size was the file's. */
static int one_round(struct file *f, const struct lend_until *u, uint64_t *size, bool *agree)
{
    struct lend_asked *list;
    unsigned n;
    bool counts = true;
    uint64_t said = 0, epoch = store_lend_epoch(f);
    *size = size_here(f);
    int err = lend_ask_all(f, LOAN_SIZE, &list, &n, u);
    bool alone = n == 1 && store_borrowers(f, NULL, 0) == 1 && size_here(f) == *size;
    for (unsigned i = 0; !err && i < n; i++)
        err = lend_renew(f, list[i].node, list[i].inc, u);
    for (unsigned i = 0; !err && i < n; i++)
        if (list[i].out)
            err = lend_take_rest(f, list[i].node, epoch); /* it may be back, and have borrowed since */
    for (unsigned i = 0; !err && i < n; i++) {
        counts &= store_lent_is(f, epoch, list[i].is.size, list[i].is.mtime_ns);
        said = MAX(said, list[i].is.size);
    }
    lend_asked_free(list, n);
    *agree = !err && counts && (said <= *size || alone);
    *size = MAX(*size, said);
    return err;
}

int lend_pull_until(struct file *f, const struct lend_until *u, uint64_t *size)
{
    int err = lend_know(f, u);
    *size = size_here(f);
    bool agree = !store_is_lent(f);
    for (unsigned round = 0; !err && !agree && round < PULLS; round++) {
        err = one_round(f, u, size, &agree);
        if (!store_is_lent(f))
            break;
    }
    if (!agree)
        *size = size_here(f);
    return err;
}

int lend_pull(struct file *f, uint64_t *away)
{
    uint64_t size;
    return lend_pull_until(f, &(struct lend_until){boot_ms() + T_OPEN, 0, away}, &size);
}

int lend_take_of_gone(struct file *f)
{
    uint64_t nodes[LEND_MAX], away;
    unsigned n = MIN(store_borrowers(f, nodes, LEND_MAX), LEND_MAX);
    for (unsigned i = 0; i < n; i++)
        if (lend_is_out(nodes[i]))
            return lend_pull(f, &away);
    return 0;
}
