/* locks.c - fcntl and flock locks, the holder's side: asks the home, and maintains the list of the locks that
 * this node holds (locks_own.c).
 *
 * All work is done in the network thread, so that accepting a granted lock and adopting a view cannot
 * interleave: a lock is either in the list of ADOPTED(k), or was granted in view k.  There is no lock here.
 * The list has its own lock, since a thread that gives a lock back removes it from the list at once.
 *
 * A cancelled operation is answered when the home has said what happened to it: cancelled (EINTR), or granted
 * before.  If the home does not say so within CANCEL_MS, the answer is EINTR; if there was no home for
 * T_open, it is EIO.  In both cases the home may still grant the request, or have granted it.  So the op goes
 * on as a CANCEL until the home has answered that or the view has changed.  Then the home is told what this
 * owner holds in that range (set_right).  What is not in ADOPTED(k) does not exist in view k, so after a
 * change of view there is nothing to undo.  Until the op has ended, later requests of this owner on this file
 * are parked: one that overtook it would be undone with it.
 */
#include "placement/claims/locks.h"

#include "placement/claims/home.h"
#include "placement/claims/lock_ask.h"
#include "placement/claims/locks_own.h"
#include "placement/ring/ring.h"
#include "transport/loop.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define CANCEL_MS 700 /* an interrupted process must go on within a second */

struct op {
    struct op *next;
    uint64_t id, number;
    struct lock_ask ask;
    uint8_t op; /* enum lock_op */
    lock_done done;
    void *arg;
    uint64_t contact_ms;   /* last sign of life from a home */
    uint64_t view;         /* of the request under way */
    uint64_t answer_by_ms; /* cancelled */
    struct held_lock *was; /* UNLOCK: what it took off the list */
    bool cancelled, answered;
    bool converted; /* flock: its older lock was removed when this one was asked for */
    bool quiet;     /* of set_right: made again if it must be sent again */
    bool parked;    /* not sent: others of its owner must end first */
    bool late;      /* the home accepts nothing with its number any more: it needs a new one */
    bool overtaken; /* its owner has given up something of its range since it was sent */
};

static struct op *ops; /* network thread */
static _Atomic uint64_t last_id;

static void send_op(void *arg);

static bool sets(const struct op *o)
{
    return o->op == LOCK_SET || o->op == LOCK_SET_WAIT;
}

static struct held_lock held_of(const struct lock_ask *a)
{
    return (struct held_lock){
        .node = members_self(),
        .incarnation = members_incarnation(),
        .owner = a->owner,
        .kind = a->flock ? LOCK_FLOCK : LOCK_FCNTL,
        .type = a->type == F_RDLCK   ? HELD_READ
                : a->type == F_WRLCK ? HELD_WRITE
                                     : HELD_NONE,
        .start = a->flock ? 0 : a->start,
        .end = a->flock ? UINT64_MAX : a->end,
        .pid = a->pid,
    };
}

unsigned lock_missing(const struct lock_ask *a, struct lock_ask **v)
{
    struct held_lock range = held_of(a), *held = NULL, *rest = NULL;
    unsigned n = 0;
    if (a->flock)
        lock_add(&rest, &range);
    else
        locks_own_split(a->fid, &range, &held, &rest);
    for (const struct held_lock *l = rest; l; l = l->next)
        n++;
    struct lock_ask *at = *v = xcalloc(n + 1, sizeof(**v));
    for (const struct held_lock *l = rest; l; l = l->next) {
        *at = *a;
        at->start = l->start;
        at++->end = l->end;
    }
    lock_list_free(&held);
    lock_list_free(&rest);
    return n;
}

/* ---- operations ---- */

static void answer(struct op *o, int err, const struct lock_ask *found)
{
    if (o->answered)
        return;
    o->answered = true;
    if (o->done)
        o->done(o->arg, err, found);
}

static bool same_owner(const struct op *a, const struct op *b)
{
    return fid_eq(a->ask.fid, b->ask.fid) && a->ask.owner == b->ask.owner &&
           a->ask.flock == b->ask.flock;
}

/* Does it give back or undo something, without the home knowing it yet? */
static bool gives_back(const struct op *o)
{
    return !o->parked && o->op != LOCK_TEST && (o->cancelled || o->quiet || !sets(o));
}

static bool must_park(const struct op *o)
{
    if (o->quiet || o->op == LOCK_TEST)
        return false;
    for (const struct op *x = ops; x; x = x->next)
        if (x != o && same_owner(x, o) && gives_back(x))
            return true;
    return false;
}

/* The oldest parked op of this owner, if it may go now. */
static void unpark(const struct op *like)
{
    struct op *oldest = NULL;
    for (struct op *x = ops; x; x = x->next)
        if (x->parked && same_owner(x, like))
            oldest = x;
    if (!oldest || must_park(oldest))
        return;
    oldest->parked = false;
    bool more = !gives_back(oldest);
    send_op(oldest); /* may end it */
    if (more)
        unpark(like);
}

static void remove_op(struct op *o)
{
    for (struct op **p = &ops; *p; p = &(*p)->next) {
        if (*p == o) {
            *p = o->next;
            break;
        }
    }
    unpark(o);
    lock_list_free(&o->was);
    free(o);
}

static void finish(struct op *o, int err, const struct lock_ask *found)
{
    answer(o, err, found);
    remove_op(o);
}

static struct op *new_op(const struct lock_ask *a, uint8_t op, lock_done done, void *arg)
{
    struct op *o = xcalloc(1, sizeof(*o));
    o->id = o->number = atomic_fetch_add(&last_id, 1) + 1;
    o->ask = *a;
    o->op = op;
    o->done = done;
    o->arg = arg;
    return o;
}

/* flock(2): a conversion first gives up the older lock.  From now on ADOPTED must not list it. */
static void convert(struct op *o)
{
    struct held_lock l = held_of(&o->ask);
    struct held_lock none = l;
    if (o->quiet || !o->ask.flock || !sets(o) || !locks_own_other(o->ask.fid, &l))
        return;
    none.type = HELD_NONE;
    locks_own_apply(o->ask.fid, &none);
    o->converted = true;
}

static bool overlap(const struct op *a, const struct op *b)
{
    return a->ask.flock || (a->ask.start <= b->ask.end && b->ask.start <= a->ask.end);
}

/* Here the unlock counts from when it was asked for; the owner's next requests are parked until the home
 * knows it. */
static bool is_given_up(const struct op *o)
{
    return !o->quiet && (o->op == LOCK_UNLOCK || o->op == LOCK_DROP_OWNER);
}

/* To be called before it is sent.  If a request was granted since this unlock was asked for, the home granted
 * it before, and removes it by this unlock.  If a request is not granted yet, it is not known which of the
 * two comes to the home first. */
static void overtake(struct op *o)
{
    struct held_lock range = held_of(&o->ask);

    locks_own_take(o->ask.fid, &range, &o->was);
    for (struct op *x = ops; x; x = x->next)
        if (!x->parked && !x->quiet && sets(x) && same_owner(x, o) && overlap(x, o))
            x->overtaken = true;
}

/* A process that ends must not wait for a home that does not answer: such a home will not soon answer the
 * parked requests behind either. */
static void answer_given_up(const struct op *late)
{
    for (struct op *x = ops; x; x = x->next)
        if (x != late && x->parked && is_given_up(x) && same_owner(x, late))
            answer(x, 0, NULL);
}

static bool is_behind_late(const struct op *o)
{
    for (const struct op *x = ops; x; x = x->next)
        if (x != o && x->answered && is_given_up(x) && same_owner(x, o))
            return true;
    return false;
}

static void begin_op(void *arg)
{
    struct op *o = arg;
    o->next = ops;
    ops = o;
    o->contact_ms = boot_ms();
    o->parked = must_park(o);
    if (!o->parked)
        send_op(o);
    else if (is_given_up(o) && is_behind_late(o))
        answer(o, 0, NULL);
}

static uint8_t op_for(const struct held_lock *l, bool held)
{
    if (!held)
        return LOCK_UNLOCK;
    return l->type == HELD_READ ? LOCK_WEAKEN : LOCK_SET;
}

/* held: of the ranges in the list, or not. */
static void tell_home(const struct lock_ask *like, struct held_lock **list, bool held)
{
    for (const struct held_lock *l = *list; l; l = l->next) {
        struct lock_ask a = *like;
        a.type = !held ? F_UNLCK : l->type == HELD_READ ? F_RDLCK : F_WRLCK;
        a.start = l->start;
        a.end = l->end;
        struct op *o = new_op(&a, op_for(l, held), NULL, NULL);
        o->quiet = true;
        begin_op(o);
    }
    lock_list_free(list);
}

/* Whatever the home did with o's request: in its range the home now gets what this owner holds.  A request
 * removes nothing there, so the home has at least what is held. */
static void set_right(const struct op *o)
{
    struct held_lock range = held_of(&o->ask), *held = NULL, *rest = NULL;
    locks_own_split(o->ask.fid, &range, &held, &rest);
    tell_home(&o->ask, &held, true);
    tell_home(&o->ask, &rest, false);
}

static void granted(struct op *o)
{
    struct held_lock l = held_of(&o->ask);
    if (o->quiet) { /* the list here is right already, and may have changed since */
        remove_op(o);
    } else if (o->answered || (o->overtaken && o->cancelled)) {
        set_right(o);
        finish(o, -EINTR, NULL);
    } else if (o->overtaken) { /* and then set, as if it had been asked for later */
        o->overtaken = false;
        o->late = true;
        send_op(o);
    } else {
        bool weakens = !o->ask.flock && l.type == HELD_READ && locks_own_other(o->ask.fid, &l);
        locks_own_apply(o->ask.fid, &l);
        if (weakens) { /* it was not cancelled: the former write lock is none any more */
            o->op = LOCK_WEAKEN;
            send_op(o);
        } else {
            finish(o, 0, NULL);
        }
    }
}

static void refused(struct op *o, int err)
{
    if (o->quiet && err != -EINVAL)
        log_warn("another node got a lock while a request to change that lock was being "
                 "cancelled");
    if (o->converted)
        set_right(o); /* the home has kept the older lock, or not: here it is gone */
    finish(o, err, NULL);
}

/* The home has as many locks of the file as it may, and what gives back a part of one would make two of it: it
 * keeps the whole.  Then an unlock has not happened, unless its asker has gone; and what is weaker here than
 * at the home is right, since that is more than what is held.  The op ends, for the owner's next requests may
 * be those that make room. */
static void has_no_room(struct op *o)
{
    bool fails = !o->quiet && !o->answered && o->op == LOCK_UNLOCK;

    for (const struct held_lock *l = o->was; fails && l; l = l->next)
        locks_own_apply(o->ask.fid, l);
    finish(o, fails ? -ENOLCK : 0, NULL);
}

static void tested(struct op *o, const struct body_locked *b)
{
    struct lock_ask found = o->ask;
    found.type = b->type == HELD_READ ? F_RDLCK : b->type == HELD_WRITE ? F_WRLCK : F_UNLCK;
    found.start = b->start;
    found.end = b->end;
    /* a process of another node has no number here */
    found.pid = b->node == members_self() ? b->pid : 0;
    finish(o, 0, &found);
}

/* Its asker does not wait any more: it must be undone at the home. */
static void undo(struct op *o, int err)
{
    o->cancelled = true;
    answer(o, err, NULL);
    if (o->op == LOCK_TEST)
        remove_op(o);
    else
        home_later(send_op, NULL, o);
}

/* There was no answer that counts: sends it again, until there was no sign of a home for T_open. */
static void again(struct op *o, int err)
{
    const struct view *v = members_view();
    bool asks = sets(o) || o->op == LOCK_TEST;
    if ((!asks || o->cancelled || o->quiet) && (!v || (o->view && v->number != o->view))) {
        /* the view of this message is over: ADOPTED says what is held */
        finish(o, asks || o->op == LOCK_CANCEL ? -EINTR : 0, NULL);
    } else if (!asks || o->quiet || boot_ms() < o->contact_ms + T_OPEN) {
        if (is_given_up(o) && boot_ms() >= o->contact_ms + CANCEL_MS) {
            answer(o, 0, NULL);
            answer_given_up(o);
        }
        home_later(send_op, NULL, o);
    } else {
        if (!o->cancelled)
            log_warn("a lock was not granted within %d s (%d): EIO", T_OPEN / 1000, -err);
        undo(o, -EIO);
    }
}

static void answered(void *arg, int err, struct msg *reply, bool *keep)
{
    struct op *o = arg;
    const struct view *v = members_view();
    bool grant = sets(o);
    (void)keep;
    if (o->op == LOCK_SET_WAIT)
        o->contact_ms = boot_ms(); /* it may wait for ever, as long as there is a home */
    if (members_no_contact(err)) {
        if (v)
            members_doubt(view_home(v, o->ask.fid));
        again(o, err);
        return;
    }
    if (err == -ENOLCK && !grant) {
        has_no_room(o);
        return;
    }
    if (err == -EAGAIN || err == -EINTR || err == -EIO || err == -EINVAL || err == -ENOLCK) {
        refused(o, err);
        return;
    }
    if (!err && grant && (!v || v->number != o->view || reply->head.view != o->view))
        err = -E_ASK_AGAIN; /* granted under a view that is over: the new home does not know */
    if (err) {
        o->late = err == -ESTALE && !o->cancelled; /* a cancelled one is cancelled by its number */
        again(o, err);
    } else if (grant) {
        granted(o);
    } else if (o->op == LOCK_CANCEL) {
        set_right(o);
        finish(o, -EINTR, NULL);
    } else if (o->op == LOCK_TEST) {
        tested(o, &reply->locked);
    } else {
        finish(o, 0, NULL);
    }
}

static void send_op(void *arg)
{
    struct op *o = arg;
    const struct view *v = members_view();
    struct held_lock l = held_of(&o->ask);
    if (!v || (o->view && o->view != v->number && (o->cancelled || o->quiet))) {
        again(o, -ENOTCONN);
        return;
    }
    if (o->quiet && o->view) { /* what it says may be old by now */
        set_right(o);
        remove_op(o);
        return;
    }
    /* in the order of sending: the home goes by it (home_lock.c) */
    if (o->view != v->number || o->late)
        o->number = lock_new_id();
    o->late = false;
    if (o->cancelled && sets(o))
        o->op = LOCK_CANCEL;
    else if (is_given_up(o) && !o->view)
        overtake(o);
    else if (!o->view)
        convert(o);
    struct msg *m = msg_new(MSG_LOCK);
    m->lock.fid = o->ask.fid;
    m->lock.number = o->number;
    m->lock.op = o->op;
    m->lock.kind = l.kind;
    m->lock.type = l.type;
    m->lock.owner = l.owner;
    m->lock.start = l.start;
    m->lock.end = l.end;
    m->lock.pid = l.pid;
    o->view = v->number;
    peer_request(view_home(v, o->ask.fid), m, T_SUSPECT, NULL, 0, answered, o);
}

/* ---- what fs/ calls ---- */

uint64_t lock_new_id(void)
{
    return atomic_fetch_add(&last_id, 1) + 1;
}

void lock_request_as(uint64_t id, const struct lock_ask *a, bool wait, lock_done done, void *arg)
{
    struct op *o = new_op(a,
                          a->type == F_UNLCK ? LOCK_UNLOCK
                          : wait             ? LOCK_SET_WAIT
                                             : LOCK_SET,
                          done, arg);
    struct held_lock l = held_of(a);
    o->id = id;
    if (a->type == F_UNLCK)
        locks_own_take(a->fid, &l, &o->was); /* first here: ADOPTED must not list it any more */
    loop_post(begin_op, o);
}

void lock_request(const struct lock_ask *a, bool wait, lock_done done, void *arg)
{
    lock_request_as(lock_new_id(), a, wait, done, arg);
}

void lock_test(uint64_t id, const struct lock_ask *a, lock_done done, void *arg)
{
    struct op *o = new_op(a, LOCK_TEST, done, arg);
    o->id = id;
    loop_post(begin_op, o);
}

/* The answer to an interrupted asker before the home has answered: a lock that is only weakened still belongs
 * to the asker, and a lock that is given up does not. */
static int interrupted(const struct op *o)
{
    return o->op == LOCK_WEAKEN || is_given_up(o) ? 0 : -EINTR;
}

static void answer_late(void *arg)
{
    uint64_t t = boot_ms();
    bool more = false;
    (void)arg;
    for (struct op *o = ops; o; o = o->next) {
        if (o->cancelled && t >= o->answer_by_ms)
            answer(o, interrupted(o), NULL);
        more |= o->cancelled && !o->answered;
    }
    if (more)
        home_later(answer_late, NULL, NULL);
}

/* The request that waits at the home is answered by this. */
static void send_cancel(const struct op *o)
{
    const struct view *v = members_view();
    if (!v || v->number != o->view)
        return;
    struct msg *m = msg_new(MSG_LOCK);
    m->lock.fid = o->ask.fid;
    m->lock.number = o->number;
    m->lock.op = LOCK_CANCEL;
    m->lock.end = UINT64_MAX;
    peer_send(view_home(v, o->ask.fid), m);
}

static void cancel_here(void *arg)
{
    uint64_t *id = arg;
    struct op *o = ops;
    while (o && o->id != *id)
        o = o->next;
    free(id);
    if (!o || o->cancelled)
        return;
    if (o->parked && sets(o)) { /* no node has heard of it */
        finish(o, -EINTR, NULL);
        return;
    }
    o->cancelled = true;
    o->answer_by_ms = boot_ms() + CANCEL_MS;
    if (!sets(o)) {
        answer(o, interrupted(o), NULL);
        return;
    }
    send_cancel(o);
    home_later(answer_late, NULL, NULL);
}

void lock_cancel(uint64_t id)
{
    uint64_t *copy = xmalloc(sizeof(*copy));
    *copy = id;
    loop_post(cancel_here, copy);
}

bool lock_owner_has_any(struct fid fid, uint64_t owner)
{
    struct lock_ask a = {.fid = fid, .type = F_UNLCK, .owner = owner, .end = UINT64_MAX};
    struct held_lock l = held_of(&a);
    return locks_own_any(fid, &l);
}

void lock_drop_owner(struct fid fid, bool flock, uint64_t owner, lock_done done, void *arg)
{
    struct lock_ask a = {
        .fid = fid, .flock = flock, .type = F_UNLCK, .owner = owner, .end = UINT64_MAX};
    struct held_lock l = held_of(&a);
    if (!locks_own_any(fid, &l)) {
        if (done)
            done(arg, 0, NULL);
        return;
    }
    locks_own_apply(fid, &l);
    loop_post(begin_op, new_op(&a, LOCK_DROP_OWNER, done, arg));
}

/* ---- start, end ---- */

void locks_start(void)
{
    locks_own_start();
}

void locks_stop(void)
{
    struct op *o;
    while ((o = ops)) {
        ops = o->next;
        lock_list_free(&o->was);
        free(o);
    }
    locks_own_stop();
}
