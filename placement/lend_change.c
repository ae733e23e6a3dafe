/* lend_change.c - changes of a file of which parts may be lent: some need all of the file here, some need a word of each
 * borrower first, and a write goes to those that have its parts.
 */
#include <errno.h>

#include "placement/claims/ended.h"
#include "placement/lend_int.h"
#include "placement/owed.h"
#include "placement/store/store_read.h"

/* Every borrower does it. */
static int ask(struct file *f, enum loan_op op)
{
    struct lend_asked *list;
    unsigned n;
    uint64_t away = 0;
    int err = lend_ask_all(f, op, &list, &n, &(struct lend_until){boot_ms() + T_OPEN, 0, &away});
    lend_asked_free(list, n);
    return err;
}

/* Must all be here before it is made?  -errno: it is not known. */
static int needs_all(struct file *f, const struct change *c)
{
    struct file_info info;
    uint64_t away;
    if (!store_is_lent(f))
        return 0;
    switch (c->op) {
    case CARRY_APPEND:
    case CARRY_PUNCH:
        return 1;
    case CARRY_TRUNCATE: {
        int err = lend_pull(f, &away);
        store_info(f, &info);
        return err ? err : c->len < info.size;
    }
    default:
        return 0;
    }
}

/* Is the file this long? */
static int find_end(struct file *f, uint64_t size)
{
    struct file_info info;
    uint64_t away;
    store_info(f, &info);
    return info.size < size ? lend_pull(f, &away) : 0;
}

static int times_before(struct file *f)
{
    int err = ask(f, LOAN_TIMES);
    if (!err) /* what borrowers have said before does not count any more */
        store_lend_next_epoch(f);
    return err;
}

int lend_times_begin(struct file *f)
{
    int err = lend_know_soon(f);
    return err || !store_is_lent(f) ? err : times_before(f);
}

/* What borrowers do before it. */
static int before(struct file *f, const struct change *c)
{
    if (!store_is_lent(f))
        return 0;
    if (c->op == CARRY_TIMES)
        return times_before(f);
    if (c->op == CARRY_STORE) /* what lies behind the end is left out: where is it? */
        return find_end(f, c->off + c->len);
    if (c->op == CARRY_SYNC)
        return ask(f, c->mode == 1 ? LOAN_FLUSH : LOAN_SYNC);
    return 0;
}

int lend_change(struct file *f, struct change *c)
{
    int all = lend_know_soon(f);
    if (!all)
        all = needs_all(f, c);
    if (all < 0)
        return all;
    for (;;) {
        int err = all ? lend_recall(f) : before(f, c);
        if (err)
            return err;
        err = local_change(f, c);
        if (all)
            store_lend_go(f);
        bool positional = c->op == CARRY_WRITE || c->op == CARRY_STORE || c->op == CARRY_GIVE;
        if (err != -EREMOTE || positional || all)
            return err;
        all = 1; /* lent meanwhile */
    }
}

void lend_append_begins(struct file *f)
{
    if (store_is_lent(f) && !lend_recall(f))
        store_lend_go(f);
}

/* A part that the node has borrowed. */
static int change_lent(struct file *f, uint64_t node, struct change *part)
{
    if (part->op == CARRY_STORE) {
        struct file_info info;
        int err = find_end(f, part->off + part->len);
        if (err)
            return err;
        store_info(f, &info);
        carry_store_ends(part, info.size);
    }
    uint64_t departures = ended_departures(), inc = store_borrower_inc(f, node);
    int err = part->len ? carry_write(node, f, part, NULL) : 0;
    if (!err && part->len)
        owed_note(part->owed, node, inc, departures);
    return err;
}

/* The borrowers' parts go to them. */
int lend_change_all(struct file *f, struct change *c)
{
    int err = lend_change(f, c);
    if (err != -EREMOTE)
        return err;
    for (uint64_t done = 0; done < c->len;) {
        struct change part = *c;
        uint64_t at = c->off + done, until;
        uint64_t node = store_lent_to(f, at / LOAN_UNIT, (c->off + c->len - 1) / LOAN_UNIT, &until);
        part.buf = (const uint8_t *)c->buf + done;
        part.off = at;
        uint64_t len = part.len = MIN(c->len - done, (until + 1) * LOAN_UNIT - at);
        err = node ? change_lent(f, node, &part) : lend_change(f, &part);
        bool gone = node && (err == -ENOENT || (err && lend_is_out(node)));
        bool moved = err == -EREMOTE || gone;
        if (gone && (err = lend_recall_from(f, node)))
            return err;
        if (moved && boot_ms() < c->end_ms)
            continue;
        if (moved || err == -EAGAIN) /* it was not made */
            return -EIO;
        if (err)
            return err;
        done += len;
    }
    c->off_out = c->off;
    return 0;
}
