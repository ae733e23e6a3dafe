/* lend_held.c - what is lent, when a daemon that knew it has ended: those that have borrowed say what they hold (HELD).
 *
 * A daemon of this node before this one: the store's record says that something is lent, and not what.  Every member is
 * asked; while a node is absent, which may have borrowed, it is not known.
 *
 * A borrower's daemon was started again: it has what was dirty, and not what it had flushed, though the latter is on the PFS
 * in any case.  So it is asked, and the PFS is looked at, before anything is said to it of what it had.
 */
#include <errno.h>
#include <stdlib.h>

#include "placement/claims/claim.h"
#include "placement/lend_int.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_read.h"
#include "transport/members.h"
#include "transport/view.h"

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t ended;
    bool asking; /* one file at a time */
} learning = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
              .ended = PTHREAD_COND_INITIALIZER};

static void begin_learning(void)
{
    lock_take(&learning.lock);
    while (learning.asking)
        lock_wait(&learning.lock, &learning.ended, 0);
    learning.asking = true;
    lock_drop(&learning.lock);
}

static void end_learning(void)
{
    lock_take(&learning.lock);
    learning.asking = false;
    pthread_cond_broadcast(&learning.ended);
    lock_drop(&learning.lock);
}

bool lend_is_learning(void)
{
    lock_take(&learning.lock);
    bool asking = learning.asking;
    lock_drop(&learning.lock);
    return asking;
}

/* -EBADMSG: it is none. */
static int held_part(const struct lend_asked *a, uint32_t i, struct lend_units *out)
{
    const struct item_lent *p = &a->parts[i];
    *out = (struct lend_units){p->first, p->last};
    return p->first < a->from || p->first > p->last || p->last > INT64_MAX / LOAN_UNIT ||
                   p->last - p->first >= LEND_MAX
               ? -EBADMSG
               : 0;
}

/* It has more than it has said. */
static bool goes_on(const struct lend_asked *a)
{
    return a->is.more && a->is.parts.n;
}

int lend_look_at_pfs(struct file *f, struct version *v)
{
    struct statx stx;
    int err = pfs_file_stat(f, &stx);
    if (!err) {
        *v = version_of(&stx);
    } else if (file_is_unlinked(f)) {
        struct file_info info;
        store_info(f, &info);
        *v = info.base;
        err = 0;
    }
    return err;
}

/* A borrower's daemon that was started again has no descriptor of the file, and knows the name that it had when the one before
 * ended.  -EAGAIN: it has not heard it. */
static int tell_name(struct file *f, uint64_t node)
{
    char *path = file_is_unlinked(f) ? NULL : file_path(f);
    int err = path && *path ? claim_named(f->fid, node, path) : 0;
    free(path);
    return err ? -EAGAIN : 0;
}

/* ---- a daemon of this node before this one ---- */

/* All members but this node.  -EAGAIN: some node is away. */
static int members_to_ask(struct lend_asked **list, unsigned *n, uint64_t *away)
{
    const struct view *v = members_view();
    *n = 0;
    *list = NULL;
    if (!v || v->nabsent) {
        *away = v ? v->absents[0].id : members_self();
        return -EAGAIN;
    }
    *list = xcalloc(v->nmembers + 1, sizeof(**list));
    for (uint32_t i = 0; i < v->nmembers; i++)
        if (v->members[i].id != members_self())
            (*list)[(*n)++] = (struct lend_asked){.node = v->members[i].id, .err = -EAGAIN};
    return 0;
}

/* False: it has more than it has said. */
static bool take_held(struct file *f, struct lend_asked *a, int *err)
{
    for (uint32_t i = 0; a->parts && i < MIN(a->is.parts.n, LEND_MAX) && !*err; i++) {
        struct lend_units part;
        *err = held_part(a, i, &part);
        if (!*err)
            *err = store_lent_found(f, (struct lend_node){a->node, a->inc}, part.first, part.last);
        a->from = part.last + 1;
    }
    if (a->is.held || a->is.mtime_ns != INT64_MIN) /* nothing is taken back before it is known */
        store_lent_is(f, store_lend_epoch(f), a->is.size, a->is.mtime_ns);
    free(a->parts);
    a->parts = NULL;
    return !goes_on(a);
}

static int ask_what_is_held(struct file *f, struct lend_asked *list, unsigned n,
                            const struct lend_until *u)
{
    bool more = true;
    int err = 0;
    while (!err && more) {
        more = false;
        err = lend_ask_until(f, LOAN_HELD, list, n, u);
        for (unsigned i = 0; !err && i < n; i++)
            if (list[i].parts && !take_held(f, &list[i], &err)) {
                list[i].err = -EAGAIN;
                more = true;
            }
    }
    return err;
}

static int learn(struct file *f, const struct lend_until *u)
{
    struct lend_asked *list;
    struct version v;
    unsigned n;
    store_lent_lost(f);
    struct lend_until held = {u->end_ms, store_lend_next_epoch(f), u->away};
    int err = members_to_ask(&list, &n, u->away);
    if (!err)
        err = ask_what_is_held(f, list, n, &held);
    for (unsigned i = 0; !err && i < n; i++)
        if (list[i].is.held)
            err = tell_name(f, list[i].node);
    if (!err)
        err = lend_look_at_pfs(f, &v);
    if (!err)
        store_lent_known(f, &v);
    lend_asked_free(list, n);
    return err;
}

int lend_know(struct file *f, const struct lend_until *u)
{
    int err = 0;
    if (!store_is_lent(f) || store_lent_is_known(f))
        return 0;
    begin_learning();
    for (uint64_t wait_ms = LEND_AGAIN_MS; !store_lent_is_known(f);) {
        err = learn(f, u);
        if (err && (err != -EAGAIN || boot_ms() >= u->end_ms))
            break;
        if (err)
            lend_pause(&wait_ms);
    }
    end_learning();
    return err == -EAGAIN ? -EIO : err;
}

int lend_know_soon(struct file *f)
{
    uint64_t away;
    return lend_know(f, &(struct lend_until){boot_ms() + T_OPEN, 0, &away});
}

/* ---- a daemon of a borrower before this one ---- */

/* What a borrower has said so far that it holds. */
struct holding {
    struct lend_units *parts;
    size_t n, room;
};

static int add_held(struct holding *h, struct lend_asked *a)
{
    int err = 0;
    for (uint32_t i = 0; i < MIN(a->is.parts.n, LEND_MAX) && !err; i++) {
        if (h->n == h->room) {
            h->room = MAX(2 * h->room, (size_t)16);
            h->parts = xrealloc(h->parts, h->room * sizeof(*h->parts));
        }
        err = held_part(a, i, &h->parts[h->n]);
        a->from = h->parts[h->n++].last + 1;
    }
    free(a->parts);
    a->parts = NULL;
    return err;
}

/* What one daemon holds: all of it is of this one, or it is asked from the beginning. */
static int ask_holder(struct file *f, struct lend_asked *a, struct holding *h,
                      const struct lend_until *u)
{
    uint64_t inc = 0;
    int err = 0;
    a->from = h->n = 0;
    for (bool more = true; !err && more; more = goes_on(a)) {
        a->err = -EAGAIN;
        err = lend_ask_until(f, LOAN_HELD, a, 1, u);
        if (!err && inc && a->inc != inc)
            err = -EAGAIN;
        inc = a->inc;
        if (!err && a->parts)
            err = add_held(h, a);
    }
    return err;
}

/* -EAGAIN: something else was taken back or flushed meanwhile. */
static int renew_once(struct file *f, struct lend_asked *a, struct holding *h,
                      const struct lend_until *u)
{
    struct lend_until held = {u->end_ms, store_lend_next_epoch(f), u->away};
    int err = ask_holder(f, a, h, &held);
    if (!err && a->is.held)
        err = tell_name(f, a->node);
    struct lent_back back = {
        .looks = store_pfs_looks(f), .began = LENT_ANY, .inc = a->inc, .mtime_ns = INT64_MIN};
    if (!err)
        err = lend_look_at_pfs(f, &back.v);
    if (err)
        return err;
    if (a->is.held) {
        back.size = a->is.size;
        back.mtime_ns = a->is.mtime_ns;
    }
    return store_lent_held(f, a->node, held.epoch, h->parts, h->n, &back, &err) ? err : -EAGAIN;
}

bool lend_is_renewed(struct file *f, uint64_t node, uint64_t inc)
{
    uint64_t lent_to = inc ? store_borrower_inc(f, node) : 0;
    return lent_to && lent_to != inc;
}

int lend_renew(struct file *f, uint64_t node, uint64_t inc, const struct lend_until *u)
{
    int err = 0;
    if (!lend_is_renewed(f, node, inc))
        return 0;
    struct lend_asked a = {.node = node};
    struct holding h = {0};
    begin_learning();
    for (uint64_t wait_ms = LEND_AGAIN_MS; lend_is_renewed(f, node, inc);) {
        err = renew_once(f, &a, &h, u);
        free(a.parts);
        a.parts = NULL;
        if (err && (err != -EAGAIN || boot_ms() >= u->end_ms))
            break;
        if (err)
            lend_pause(&wait_ms);
        else if (a.inc != inc)
            break; /* this one is not the last any more, or it was heard late */
    }
    end_learning();
    free(h.parts);
    return err == -EAGAIN ? -EIO : err;
}

int lend_know_node(struct file *f, struct lend_node node)
{
    uint64_t away;
    int err = lend_know_soon(f);
    return err ? err
               : lend_renew(f, node.id, node.inc,
                            &(struct lend_until){boot_ms() + T_OPEN, 0, &away});
}
