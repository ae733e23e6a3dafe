/* borrow.c - see borrow.h.
 *
 *     nothing --LENT--> borrowed --all descriptors closed, and clean--> RETURN --RETURNED--> nothing
 *                          '-----RECALL: to the PFS-----------------------'
 *
 * A return waits for calls that use the loan, and calls that come meanwhile wait for it.  If the claimant does not answer,
 * it may have taken all back, and lent it to others.  So nothing is this node's own any more, and RETURN is sent again
 * until there is an answer; what is asked of the claimant meanwhile fails, or waits, as for any file of that node.
 *
 * The map says who has which unit.  Its own units count; those of other nodes are hints, which the other node corrects by
 * "not mine".  An answer to LEND counts only if no return has begun since the claimant gave it: each return begins an
 * epoch at the claimant, which the answer names.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/borrow_int.h"
#include "placement/lend.h"
#include "placement/local.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_keep.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/tell.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/view.h"

#define NODES_MAX       4096u
#define RETURN_AGAIN_MS 500

/* ---- the part ---- */

static void part_begin(struct file *f, struct file_part *part)
{
    struct borrow *b = (struct borrow *)part;
    (void)f;
    lock_init(&b->lock, RANK_LEAF);
    lock_cond_init(&b->changed);
    b->never_timed = true;
}

static void part_end(struct file_part *part)
{
    struct borrow *b = (struct borrow *)part;
    unit_clear_all(&b->map);
    free(b->node);
    pthread_cond_destroy(&b->changed);
    lock_destroy(&b->lock);
}

const struct file_part_ops borrow_ops = {.size = sizeof(struct borrow), .begin = part_begin, .end = part_end};

/* ---- who has what ---- */

struct place borrow_place(struct borrow *b, uint64_t off, uint64_t len)
{
    uint64_t first = off / LOAN_UNIT, last = (off + len - 1) / LOAN_UNIT;
    lock_take(&b->lock);
    while (b->returning && !b->unanswered)
        lock_wait(&b->lock, &b->changed, 0);
    uint64_t until = unit_same_until(&b->map, first, last);
    struct place p = {.number = unit_get(&b->map, first),
                      .len = until >= last ? len : (until + 1) * LOAN_UNIT - off};
    if (p.number >= UNIT_NODES)
        p.node = b->node[p.number - UNIT_NODES];
    if (p.number == UNIT_MINE && b->unanswered)
        p.number = 0;
    b->using += p.number == UNIT_MINE;
    lock_drop(&b->lock);
    return p;
}

void borrow_use_end(struct file *f)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    if (!--b->using)
        pthread_cond_broadcast(&b->changed);
    lock_drop(&b->lock);
}

void borrow_doubt(struct file *f)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    b->unsure = true;
    lock_drop(&b->lock);
}

void borrow_unknown(struct borrow *b, const struct place *p, uint64_t off)
{
    lock_take(&b->lock);
    if (p->number >= UNIT_NODES)
        unit_clear(&b->map, (uint16_t)p->number);
    for (uint64_t unit = off / LOAN_UNIT; unit <= (off + p->len - 1) / LOAN_UNIT; unit++)
        if (unit_get(&b->map, unit) == UNIT_CLAIMANTS)
            unit_set(&b->map, unit, 0);
    lock_drop(&b->lock);
}

/* ---- all of them ---- */

static struct {
    struct lock lock; /* RANK_CLAIM: a file of the list is referenced under it */
    struct borrow *list;
    struct file **again; /* referenced: a return is to be tried again */
    size_t nagain;
    bool stopped;             /* none is */
    struct loop_timer *timer; /* network thread */
} all = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_CLAIM}};

static void list_add(struct borrow *b)
{
    lock_take(&all.lock);
    b->next = all.list;
    b->prev = &all.list;
    if (b->next)
        b->next->prev = &b->next;
    all.list = b;
    lock_drop(&all.lock);
}

static void list_remove(struct borrow *b)
{
    lock_take(&all.lock);
    *b->prev = b->next;
    if (b->next)
        b->next->prev = b->prev;
    lock_drop(&all.lock);
}

static struct file *any_loan(size_t place)
{
    struct file *f = NULL;
    lock_take(&all.lock);
    for (struct borrow *b = all.list; b && !f; b = b->next)
        if (!place--)
            f = file_ref(b->f); /* forget takes it off the list first */
    lock_drop(&all.lock);
    return f;
}

/* ---- an answer to LEND ---- */

/* Lock held.  0: there are too many nodes. */
static uint16_t number_of(struct borrow *b, uint64_t node)
{
    for (unsigned i = 0; i < b->nodes; i++)
        if (b->node[i] == node)
            return (uint16_t)(UNIT_NODES + i);
    if (b->nodes == NODES_MAX)
        return 0;
    b->node = xrealloc(b->node, (b->nodes + 1) * sizeof(*b->node));
    b->node[b->nodes++] = node;
    return (uint16_t)(UNIT_NODES + b->nodes - 1);
}

/* The loan's descriptor is the one by which the application's open writes: no name is needed. */
static void open_loan(struct file *f, struct file *loan)
{
    int fd, dup = -1;
    if (!pfs_borrow_fd(f, true, &fd)) {
        dup = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        pfs_return_fd(f);
    }
    if (dup >= 0) {
        pfs_adopt_fd(loan, dup, true);
        return;
    }
    pfs_open_known(loan);
    pfs_open_late(loan, NULL);
}

static struct file *loan_make(struct file *f)
{
    struct file *loan;
    char *path = file_path(f);
    int err = file_get(fid_of_loan(f->fid), path, &loan);
    free(path);
    if (err)
        return NULL;
    open_loan(f, loan);
    return loan;
}

uint64_t borrow_incarnation(uint64_t node)
{
    const struct view *v = members_view();
    const struct member *m = v ? view_member(v, node) : NULL;
    return m ? m->incarnation : 0;
}

static void loan_unmake(struct file *loan)
{
    store_set_deleted(loan);
    pfs_release(loan);
    file_put_removed(loan);
}

/* Lock held, and dropped meanwhile.  Makes sure that there is a loan of this claim, whose PFS bytes count so far.
 * *made: there was none. */
static bool need_loan(struct file *f, uint64_t lender, const struct body_lent *lent, bool *made)
{
    struct borrow *b = borrow_of(f);
    struct loan_id id = {lent->number_inc, lent->number};
    if (b->loan && (b->lender != lender || !loan_id_eq(b->id, id)))
        return false;
    if (b->loan && b->base_end >= lent->base_end)
        return true;
    b->making = true;
    struct file *loan = b->loan;
    lock_drop(&b->lock);
    bool fresh = !loan;
    if (fresh)
        loan = loan_make(f);
    if (loan && store_loan_begin(loan, lender, id.inc, id.number, lent->base_end, fresh)) {
        if (fresh)
            loan_unmake(loan);
        loan = NULL;
    }
    if (fresh && loan)
        file_ref(f);
    lock_take(&b->lock);
    if (fresh && loan) {
        b->loan = loan;
        b->f = f;
        b->lender = lender;
        b->lender_inc = borrow_incarnation(lender);
        b->id = id;
        b->began = lent->epoch;
        *made = true;
    }
    if (loan)
        b->base_end = MAX(b->base_end, lent->base_end);
    lock_drop(&b->lock);
    if (fresh && loan)
        list_add(b);
    lock_take(&b->lock);
    b->making = false;
    pthread_cond_broadcast(&b->changed);
    return loan;
}

static bool any_mine(const struct body_lent *lent)
{
    for (uint32_t i = 0; i < lent->parts.n; i++)
        if (lent->parts.v[i].node == members_self())
            return true;
    return false;
}

/* Lock held. */
static void note_parts(struct borrow *b, const struct body_lent *lent, bool mine)
{
    for (uint32_t i = 0; i < lent->parts.n; i++) {
        const struct item_lent *p = &lent->parts.v[i];
        bool own = p->node == members_self();
        uint16_t number = own ? UNIT_MINE : number_of(b, p->node);
        if (!number || (own && !mine) || p->last < p->first || p->last - p->first >= LEND_MAX)
            continue;
        for (uint64_t unit = p->first; unit <= p->last; unit++)
            if (own || unit_get(&b->map, unit) != UNIT_MINE)
                unit_set(&b->map, unit, number);
    }
}

/* Of one lender: claims in their order, and epochs within one claim. */
static bool is_earlier(const struct overtaken *a, const struct overtaken *b)
{
    if (a->lender != b->lender)
        return false;
    if (a->id.inc != b->id.inc)
        return a->id.inc < b->id.inc;
    return a->id.number != b->id.number ? a->id.number < b->id.number : a->epoch < b->epoch;
}

/* Lock held. */
static bool is_overtaken(const struct borrow *b, uint64_t lender, const struct body_lent *lent)
{
    return is_earlier(&(struct overtaken){lender, {lent->number_inc, lent->number}, lent->epoch}, &b->overtaken);
}

/* Lock held. */
static void overtake(struct borrow *b, const struct overtaken *o)
{
    if (!is_earlier(o, &b->overtaken))
        b->overtaken = *o;
}

/* Lock held, and dropped meanwhile: the loan is not used any more, and no call begins to use it. */
static void begin_forgetting(struct borrow *b)
{
    b->returning = true;
    while (b->using)
        lock_wait(&b->lock, &b->changed, 0);
}

static void stay(struct borrow *b, bool unanswered)
{
    lock_take(&b->lock);
    b->returning = b->unanswered = unanswered;
    b->sent = false;
    pthread_cond_broadcast(&b->changed);
    lock_drop(&b->lock);
}

/* The claimant knows that nothing is borrowed, from this epoch on (NULL: the claim is void, or nothing was).  The next loan
 * is the same file of the store, so none begins before this one has ended. */
static void forget(struct borrow *b, const struct overtaken *o)
{
    list_remove(b);
    lock_take(&b->lock);
    struct file *loan = b->loan, *f = b->f;
    unit_clear_all(&b->map);
    b->loan = b->f = NULL;
    if (o)
        overtake(b, o);
    b->base_end = 0;
    b->never_timed = true;
    b->unsure = false;
    while (b->using) /* by a LOAN: those do not wait for a return */
        lock_wait(&b->lock, &b->changed, 0);
    lock_drop(&b->lock);
    loan_unmake(loan);
    stay(b, false);
    file_put(f);
}

void borrow_lent(struct file *f, uint64_t lender, const struct body_lent *lent, const struct body_lend *asked)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    while ((b->returning && !b->unanswered) || b->making)
        lock_wait(&b->lock, &b->changed, 0);
    bool made = false;
    bool mine = !b->unanswered && any_mine(lent) && !is_overtaken(b, lender, lent) && need_loan(f, lender, lent, &made);
    mine = mine && !is_overtaken(b, lender, lent); /* while the lock was dropped */
    bool empty = made && !mine;
    if (empty) /* its size would be told */
        begin_forgetting(b);
    note_parts(b, lent, mine);
    bool all = asked->ask == LEND_WANT && lent->why == LEND_ALL;
    for (uint64_t unit = asked->first; all && unit <= asked->last; unit++)
        if (!unit_get(&b->map, unit))
            unit_set(&b->map, unit, UNIT_CLAIMANTS); /* it has changed them itself */
    lock_drop(&b->lock);
    if (empty)
        forget(b, NULL);
}

/* ---- what it is ---- */

struct file *borrow_loan(struct file *f, uint64_t lender, struct loan_id id)
{
    struct borrow *b = borrow_if(f);
    if (!b)
        return NULL;
    lock_take(&b->lock);
    while (b->making)
        lock_wait(&b->lock, &b->changed, 0);
    struct file *loan = b->lender == lender && loan_id_eq(b->id, id) ? b->loan : NULL;
    b->using += loan != NULL; /* until it has a reference of its own */
    lock_drop(&b->lock);
    if (!loan)
        return NULL;
    file_ref(loan);
    borrow_use_end(f);
    return loan;
}

void borrow_is(struct borrow *b, struct file *loan, uint64_t *size, int64_t *mtime_ns)
{
    struct file_info info;
    store_info(loan, &info);
    lock_take(&b->lock);
    *size = info.size;
    *mtime_ns = b->never_timed || info.change != b->change_at_times ? info.mtime_ns : INT64_MIN;
    lock_drop(&b->lock);
}

void borrow_timed(struct borrow *b, struct file *loan)
{
    struct file_info info;
    store_info(loan, &info);
    lock_take(&b->lock);
    b->never_timed = false;
    b->change_at_times = info.change;
    lock_drop(&b->lock);
}

/* ---- the claimant was started again ---- */

/* Lock held.  Own runs of units from `from` on. */
static void list_runs(struct borrow *b, uint64_t from, struct body_loan_is *is, struct item_lent *parts)
{
    uint64_t first = from, last;
    while (unit_next_run(&b->map, UNIT_MINE, &first, &last)) {
        is->more = is->parts.n == LEND_MAX;
        if (is->more)
            break;
        last = MIN(last, first + LEND_MAX - 1);
        parts[is->parts.n++] = (struct item_lent){first, last, members_self()};
        first = last + 1;
    }
    is->parts.v = parts;
}

int borrow_held(struct file *f, uint64_t lender, const struct body_loan *asked, struct body_loan_is *is,
                struct item_lent *parts)
{
    struct borrow *b = borrow_if(f);
    if (!b)
        return 0;
    struct loan_id id = {asked->number_inc, asked->number};
    lock_take(&b->lock);
    while (b->making)
        lock_wait(&b->lock, &b->changed, 0);
    if (b->sent && !b->unanswered) {
        lock_drop(&b->lock);
        return -EAGAIN;
    }
    overtake(b, &(struct overtaken){lender, id, asked->epoch}); /* also of answers of the daemon before */
    /* what was returned, perhaps, the dead daemon may have lent to others */
    struct file *loan = b->lender == lender && !b->unanswered ? b->loan : NULL;
    if (loan) {
        b->id = id;
        b->lender_inc = borrow_incarnation(lender);
        b->using++;
        is->held = 1;
        is->base_end = b->base_end;
        list_runs(b, asked->from, is, parts);
    }
    lock_drop(&b->lock);
    if (!loan)
        return 0;
    int err = store_loan_begin(loan, lender, id.inc, id.number, is->base_end, false);
    borrow_is(b, loan, &is->size, &is->mtime_ns);
    borrow_use_end(f);
    return err;
}

/* ---- giving it back ---- */

/* The loan is not used any more from now on, and no call begins to use it.  NULL: there is none, or another call gives it
 * back already; else forget or stay follows.  *unanswered: an earlier RETURN had no answer. */
static struct file *begin_return(struct borrow *b, bool wait, bool *unanswered)
{
    lock_take(&b->lock);
    while (b->making || (wait && b->returning && !b->unanswered))
        lock_wait(&b->lock, &b->changed, 0);
    struct file *loan = b->returning && !b->unanswered ? NULL : b->loan;
    *unanswered = b->unanswered;
    if (loan) {
        b->unanswered = false;
        begin_forgetting(b);
    }
    lock_drop(&b->lock);
    return loan;
}

void borrow_overtake(struct file *f, const struct overtaken *o)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    overtake(b, o);
    lock_drop(&b->lock);
}

/* *answered: the claimant has got it, and said what came of it.  *o: the epoch in which that is so. */
static int send_return(struct borrow *b, struct file *loan, struct overtaken *o, bool *answered)
{
    struct msg *m = msg_new(MSG_RETURN), *reply = NULL;
    lock_take(&b->lock);
    b->sent = true;
    *o = (struct overtaken){b->lender, b->id, 0};
    m->ret.began = b->began;
    lock_drop(&b->lock);
    m->ret.fid = fid_real(loan->fid);
    m->ret.number_inc = o->id.inc;
    m->ret.number = o->id.number;
    borrow_is(b, loan, &m->ret.size, &m->ret.mtime_ns);
    int err = peer_call(o->lender, m, T_SUSPECT, NULL, 0, &reply);
    *answered = reply;
    if (!err)
        o->epoch = reply->returned.epoch;
    else if (!reply)
        members_doubt(o->lender);
    msg_free(reply);
    return err;
}

/* After begin_return; all of it is on the PFS. */
static int end_return(struct borrow *b, struct file *loan, bool unanswered)
{
    struct overtaken o;
    bool answered;
    int err = send_return(b, loan, &o, &answered);
    if (err)
        stay(b, unanswered || !answered);
    else
        forget(b, &o);
    return err;
}

static void again_later(struct file *f);

int borrow_end(struct file *f, const struct overtaken *o)
{
    static const struct told_change all_bytes = {.what = TOLD_BYTES}; /* to the end */
    struct borrow *b = borrow_of(f);
    bool unanswered;
    told_here(f->fid, &all_bytes); /* pages that the kernel has to write go into the loan first */
    borrow_overtake(f, o);
    struct file *loan = begin_return(b, true, &unanswered);
    if (!loan)
        return 0;
    int err = local_sync_pfs(loan);
    if (err) {
        stay(b, unanswered);
        return err;
    }
    err = end_return(b, loan, unanswered);
    if (err)
        again_later(f); /* also if the claimant does not ask again */
    return err ? -EAGAIN : 0;
}

void borrow_drop(struct file *f)
{
    struct borrow *b = borrow_of(f);
    bool unanswered;
    if (begin_return(b, true, &unanswered))
        forget(b, NULL);
}

/* ---- when nobody writes it any more ---- */

static bool is_wanted(struct borrow *b)
{
    lock_take(&b->lock);
    bool wanted = !b->loan || (b->handles && !b->unanswered);
    lock_drop(&b->lock);
    return wanted;
}

/* All of it is on the PFS, and goes back.  -EBUSY: it is not; then the flusher comes again. */
static int give_back(struct file *f, bool wanted)
{
    struct borrow *b = borrow_of(f);
    struct file_info info;
    bool unanswered;
    struct file *loan = !wanted && is_wanted(b) ? NULL : begin_return(b, false, &unanswered);
    if (!loan)
        return 0;
    store_info(loan, &info);
    if (!info.dirty)
        return end_return(b, loan, unanswered);
    stay(b, unanswered);
    return -EBUSY;
}

static void return_job(void *arg)
{
    struct file *f = arg;
    int err = give_back(f, false);
    if (err && err != -EBUSY)
        again_later(f);
    file_put(f);
}

static void on_timer(void *arg)
{
    (void)arg;
    lock_take(&all.lock);
    struct file **list = all.again;
    size_t n = all.nagain;
    all.again = NULL;
    all.nagain = 0;
    lock_drop(&all.lock);
    for (size_t i = 0; i < n; i++)
        pool_submit(loan_asks, return_job, list[i]);
    free(list);
}

static void arm(void *arg)
{
    (void)arg;
    if (!all.timer)
        all.timer = loop_timer_new(on_timer, NULL);
    loop_timer_set(all.timer, RETURN_AGAIN_MS, 0);
}

/* The claimant does not answer, or cannot look at the PFS. */
static void again_later(struct file *f)
{
    lock_take(&all.lock);
    if (!all.stopped) {
        all.again = xrealloc(all.again, (all.nagain + 1) * sizeof(struct file *));
        all.again[all.nagain++] = file_ref(f);
        loop_post(arm, NULL); /* before the timer is freed */
    }
    lock_drop(&all.lock);
}

void borrow_set_policy(struct file *f, bool always, bool never)
{
    struct borrow *b = always || never ? borrow_of(f) : borrow_if(f);
    if (!b)
        return;
    b->always = always;
    b->never = never;
}

bool borrow_is_refused(const struct file *f)
{
    const struct borrow *b = borrow_if(f);
    return b && b->never;
}

void borrow_opened(struct file *f)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    b->handles++;
    lock_drop(&b->lock);
}

void borrow_closed(struct file *f)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    bool last = !--b->handles;
    bool has = last && b->loan;
    if (last)
        b->carried = b->not_before_ms = 0;
    if (last && !b->loan && !b->making)
        unit_clear_all(&b->map);
    lock_drop(&b->lock);
    if (has)
        pool_submit(loan_asks, return_job, file_ref(f));
}

void borrow_flushed(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    struct borrow *b = f ? borrow_if(f) : NULL;
    if (b && !is_wanted(b))
        pool_submit(loan_asks, return_job, file_ref(f));
    if (f)
        file_put(f);
}

/* ---- what a dead daemon has left ---- */

/* Its pages are dirty, or it would not be found: these units are this node's for certain.  Of others the claimant
 * knows. */
static void take_up(struct file *f, struct file *loan)
{
    struct borrow *b = borrow_of(f);
    struct file_info info;
    store_info(loan, &info);
    b->lender = store_loan_of(loan, &b->id.inc, &b->id.number);
    b->base_end = info.base_end;
    b->loan = file_ref(loan);
    b->f = f;
    b->unsure = true;
    for (uint64_t unit = 0; store_loan_dirty(loan, &unit); unit++)
        unit_set(&b->map, unit, UNIT_MINE);
    pfs_open_known(loan);
    list_add(b);
}

static int recover_one(void *arg, struct file *loan)
{
    unsigned *n = arg;
    struct file *f;
    if (!fid_is_loan(loan->fid))
        return 0;
    char *path = file_path(loan);
    int err = file_get(fid_real(loan->fid), path, &f);
    free(path);
    if (err)
        return err;
    take_up(f, loan);
    ++*n;
    return 0;
}

int borrow_recover(void)
{
    unsigned n = 0;
    int err = store_each_claimed(recover_one, &n);
    if (n)
        log_info("parts of %u files of other nodes, which this one had borrowed, were not on the PFS when the daemon ended: "
                 "they are served and flushed now",
                 n);
    return err;
}

unsigned borrow_dirty(void)
{
    struct file *f;
    unsigned n = 0;
    for (size_t place = 0; (f = any_loan(place)); place++) {
        struct borrow *b = borrow_of(f);
        struct file *loan = borrow_loan(f, b->lender, b->id);
        struct file_info info = {0};
        if (loan) {
            store_info(loan, &info);
            file_put(loan);
        }
        n += info.dirty;
        file_put(f);
    }
    return n;
}

/* ---- for `eddy status` ---- */

static uint64_t mine_bytes(struct borrow *b)
{
    uint64_t n = 0, first = 0, last;
    lock_take(&b->lock);
    while (unit_next_run(&b->map, UNIT_MINE, &first, &last)) {
        n += last - first + 1;
        first = last + 1;
    }
    lock_drop(&b->lock);
    return n * LOAN_UNIT;
}

void borrow_each(loan_status_fn *fn, void *arg)
{
    struct file *f;
    for (size_t place = 0; (f = any_loan(place)); place++) {
        char *path = file_path(f);
        struct borrow *b = borrow_of(f);
        fn(arg, &(struct loan_status){path ? path : "?", b->lender, mine_bytes(b)});
        free(path);
        file_put(f);
    }
}

/* ---- this node leaves ---- */

static int leave_one(struct file *f)
{
    uint64_t end_ms = boot_ms() + T_OPEN;
    struct borrow *b = borrow_of(f);
    int err = -EBUSY;
    while (err == -EBUSY && boot_ms() < end_ms) {
        struct file *loan = borrow_loan(f, b->lender, b->id);
        err = loan ? local_sync_pfs(loan) : 0;
        if (loan)
            file_put(loan);
        if (!err)
            err = give_back(f, true);
    }
    return err;
}

int borrow_leave(void)
{
    struct file *f;
    int err = 0;
    for (size_t place = 0; (f = any_loan(place));) {
        int e = leave_one(f);
        if (e) {
            log_warn("what this node has borrowed of a file of node %s was not returned: %s",
                     members_name(borrow_of(f)->lender), strerror(-e));
            err = e;
            place++;
        }
        file_put(f);
    }
    return err;
}

/* ---- the end ---- */

static void free_timer(void *arg)
{
    (void)arg;
    if (all.timer)
        loop_timer_free(all.timer);
    all.timer = NULL;
}

void borrow_begin(void)
{
    all.stopped = false;
}

void borrow_stop(void)
{
    lock_take(&all.lock);
    all.stopped = true;
    lock_drop(&all.lock);
    loop_call(free_timer, NULL);
    for (size_t i = 0; i < all.nagain; i++)
        file_put(all.again[i]);
    free(all.again);
    all.again = NULL;
    all.nagain = 0;
}
