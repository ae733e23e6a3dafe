/* borrow_return.c - what is borrowed goes back (RETURN): when the claimant recalls it, or when all of it is on the PFS and no
 * descriptor of this node writes it any more.
 */
#include <errno.h>
#include <stdlib.h>

#include "placement/borrow_flush.h"
#include "placement/borrow_int.h"
#include "placement/local.h"
#include "placement/store/store_read.h"
#include "placement/tell.h"
#include "transport/loop.h"
#include "transport/members.h"
#include "transport/peer.h"

#define RETURN_AGAIN_MS 500

/* The loan is not used any more from now on, and no call begins to use it.  NULL: there is none, or another call gives it
 * back already; else borrow_forget or borrow_stay follows.  *unanswered: an earlier RETURN had no answer. */
static struct file *begin_return(struct borrow *b, bool wait, bool *unanswered)
{
    lock_take(&b->lock);
    while (b->making || (wait && b->returning && !b->unanswered))
        lock_wait(&b->lock, &b->changed, 0);
    struct file *loan = b->returning && !b->unanswered ? NULL : b->loan;
    *unanswered = b->unanswered;
    if (loan) {
        b->sent = b->unanswered; /* the earlier one may have arrived: who asks what is borrowed waits for this one's answer */
        b->unanswered = false;
        borrow_forget_begin(b);
    }
    lock_drop(&b->lock);
    return loan;
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
    borrow_is(loan, &m->ret.size, &m->ret.mtime_ns);
    int err = peer_call(o->lender, m, T_SUSPECT, NULL, 0, &reply);
    *answered = reply;
    if (!err)
        o->epoch = reply->returned.epoch;
    else if (!reply)
        members_doubt(o->lender);
    msg_free(reply);
    return err;
}

/* After begin_return; all of it is on the PFS, or cannot get there. */
static int end_return(struct file *f, struct file *loan, bool unanswered)
{
    struct borrow *b = borrow_of(f);
    struct overtaken o;
    bool answered = true;
    int err = borrow_give(f, b->lender, loan);
    if (!err)
        err = send_return(b, loan, &o, &answered);
    if (err)
        borrow_stay(b, unanswered || !answered);
    else
        borrow_forget(b, &o);
    return err;
}

static bool is_wanted(struct borrow *b)
{
    lock_take(&b->lock);
    bool wanted = !b->loan || (b->handles && !b->unanswered);
    lock_drop(&b->lock);
    return wanted;
}

static bool is_dirty(struct file *loan)
{
    struct file_info info;
    store_info(loan, &info);
    return info.dirty;
}

/* The flusher comes once, when the loan is clean.  If a return is under way then, that one sees it. */
int borrow_give_back(struct file *f, bool wanted)
{
    struct borrow *b = borrow_of(f);
    bool unanswered, dirty;
    do {
        struct file *loan = !wanted && is_wanted(b) ? NULL : begin_return(b, false, &unanswered);
        if (!loan)
            return 0;
        if (!is_dirty(loan))
            return end_return(f, loan, unanswered);
        file_ref(loan);
        borrow_stay(b, unanswered);
        dirty = is_dirty(loan);
        file_put(loan);
    } while (!dirty);
    return -EBUSY;
}

/* ---- tried again ---- */

static struct {
    struct lock lock;   /* RANK_CLAIM: a file is referenced under it */
    struct file **list; /* referenced: a return is to be tried again */
    size_t n;
    bool stopped;             /* none is */
    struct loop_timer *timer; /* network thread */
} again = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_CLAIM}};

static void again_later(struct file *f);

static void return_job(void *arg)
{
    struct file *f = arg;
    int err = borrow_give_back(f, false);
    if (err && err != -EBUSY)
        again_later(f);
    file_put(f);
}

static void on_timer(void *arg)
{
    (void)arg;
    lock_take(&again.lock);
    struct file **list = again.list;
    size_t n = again.n;
    again.list = NULL;
    again.n = 0;
    lock_drop(&again.lock);
    for (size_t i = 0; i < n; i++)
        pool_submit(loan_asks, return_job, list[i]);
    free(list);
}

static void arm(void *arg)
{
    (void)arg;
    if (!again.timer)
        again.timer = loop_timer_new(on_timer, NULL);
    loop_timer_set(again.timer, RETURN_AGAIN_MS, 0);
}

/* The claimant does not answer, or cannot look at the PFS. */
static void again_later(struct file *f)
{
    lock_take(&again.lock);
    if (!again.stopped) {
        again.list = xrealloc(again.list, (again.n + 1) * sizeof(struct file *));
        again.list[again.n++] = file_ref(f);
        loop_post(arm, NULL); /* before the timer is freed */
    }
    lock_drop(&again.lock);
}

void borrow_begin(void)
{
    again.stopped = false;
}

static void free_timer(void *arg)
{
    (void)arg;
    if (again.timer)
        loop_timer_free(again.timer);
    again.timer = NULL;
}

void borrow_stop(void)
{
    lock_take(&again.lock);
    again.stopped = true;
    lock_drop(&again.lock);
    loop_call(free_timer, NULL);
    for (size_t i = 0; i < again.n; i++)
        file_put(again.list[i]);
    free(again.list);
    again.list = NULL;
    again.n = 0;
}

static void return_soon(struct file *f)
{
    pool_submit(loan_asks, return_job, file_ref(f));
}

/* ---- when it goes back ---- */

/* After begin_return.  *beside: the loan was void, and its data was put beside the file (borrow_drop). */
static int flush_returning(struct borrow *b, struct file *loan, bool *beside)
{
    lock_take(&b->lock);
    b->flushing = true;
    pthread_cond_broadcast(&b->changed);
    lock_drop(&b->lock);
    int err = local_sync_pfs(loan);
    lock_take(&b->lock);
    b->flushing = false;
    *beside = b->beside;
    lock_drop(&b->lock);
    return err;
}

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
    bool beside;
    int err = flush_returning(b, loan, &beside);
    if (beside) {
        borrow_forget(b, NULL);
        return 0;
    }
    if (err) {
        borrow_stay(b, unanswered);
        return err;
    }
    err = end_return(f, loan, unanswered);
    if (err)
        again_later(f); /* also if the claimant does not ask again */
    return err ? -EAGAIN : 0;
}

void borrow_drop(struct file *f)
{
    struct borrow *b = borrow_of(f);
    lock_take(&b->lock);
    while (b->making || (b->returning && !b->unanswered && !b->flushing))
        lock_wait(&b->lock, &b->changed, 0);
    bool ours = b->loan && !b->flushing;
    if (ours) {
        b->unanswered = false;
        borrow_forget_begin(b);
    } else {
        b->beside = b->loan;
    }
    lock_drop(&b->lock);
    if (ours)
        borrow_forget(b, NULL);
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
        b->carried = b->not_before_ms = b->refused = 0;
    if (last && !b->loan && !b->making)
        unit_clear_all(&b->map);
    lock_drop(&b->lock);
    if (has)
        return_soon(f);
}

void borrow_return_unused(struct file *f)
{
    struct borrow *b = borrow_if(f);
    if (b && !is_wanted(b))
        return_soon(f);
}

void borrow_flushed(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    if (f)
        borrow_return_unused(f);
    if (f)
        file_put(f);
}
