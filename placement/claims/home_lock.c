/* home_lock.c - the locks on a file: LOCK (docs/protocol.md, "Locks").
 *
 * A lock that conflicts with another one is refused, or waits in its record until an unlock makes room or its
 * asker cancels it.  Waiting askers get a message every second, which shows that there is a home (home.c).
 *
 * A request may come twice, the second time long after its sender has asked for other things: a request that
 * was queued in a connection that stood still, and that its sender has given up, still comes when the network
 * is back.  So an unlock does not change what later requests have set.  And a request sets a lock only if it
 * comes in the order of its sender's numbers, or waits here already.  Any other request is refused (ESTALE),
 * and an asker that still waits for it asks under a new number.
 *
 * A file has a bounded number of locks, since a record goes to next with all of its locks in one message.  One
 * lock more is refused (ENOLCK), and so is an unlock that would make two locks of one.  It must not wait until
 * there are fewer: its owner's other unlocks wait behind it (locks.c), and may be those that make room.
 */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <errno.h>
#include <stdlib.h>

/* 4 MiB of COPY, of which a message holds 8. */
#define LOCKS_MAX 65536

/* An absent node that may hold locks on the file; 0: all is known. */
static uint64_t blind_locks(const struct record *r, struct fid fid)
{
    return r && !(r->unknown & RECORD_LOCKS_UNKNOWN) ? 0 : collect_blind(home.view, fid);
}

static struct held_lock lock_of(const struct msg *m)
{
    const struct body_lock *l = &m->lock;
    return (struct held_lock){.node = m->head.sender,
                              .incarnation = m->head.incarnation,
                              .owner = l->owner,
                              .kind = l->kind,
                              .type = l->type,
                              .start = l->start,
                              .end = l->end,
                              .pid = l->pid,
                              .number = l->number};
}

/* A holder that is in no view any more may still run: no other node gets its locks until it is back (or
 * forgotten). */
static bool held_by_absent(const struct held_lock *l)
{
    static _Atomic uint64_t said;
    if (view_has(home.view, l->node, l->incarnation))
        return false;
    if (log_every(&said, 10000))
        log_warn("a lock is held by node %s, which left the session: requests for it fail with "
                 "EIO until that node is back",
                 members_name(l->node));
    return true;
}

static bool is_full(const struct record *r)
{
    static _Atomic uint64_t said;
    unsigned n = 0;
    for (const struct held_lock *l = r->locks; l && n < LOCKS_MAX; l = l->next)
        n++;
    if (n == LOCKS_MAX && log_every(&said, 60000))
        log_warn("a file has %d locks, as many as it may: the next request for one gets ENOLCK",
                 LOCKS_MAX);
    return n == LOCKS_MAX;
}

/* Would it take a range out of the middle of a lock of its holder? */
static bool makes_two(const struct record *r, const struct msg *m)
{
    struct held_lock range = lock_of(m);
    for (const struct held_lock *l = r->locks; l; l = l->next)
        if (same_holder(l, &range) && l->start < range.start && l->end > range.end)
            return true;
    return false;
}

static void grant_lock(struct record *r, struct msg *m, const struct held_lock *want)
{
    if (want->kind == LOCK_FLOCK) /* the older one may go first: flock(2) */
        lock_apply(&r->locks, want);
    else
        lock_strengthen(&r->locks, want);
    home_queue(&r->pending, m, home.count + 1);
    home_changed(r);
}

/* The conversion of a flock lock is not atomic (flock(2)): the old lock is removed first, also if the new one
 * must wait. */
static void drop_for_conversion(struct record *r, const struct held_lock *want)
{
    struct held_lock none = *want;
    none.type = HELD_NONE;
    if (want->kind == LOCK_FLOCK && lock_apply(&r->locks, &none))
        home_changed(r);
}

/* Returns false if it must wait. */
static bool try_lock(struct record *r, struct msg *m, bool wait)
{
    struct held_lock want = lock_of(m);
    const struct held_lock *in_the_way = lock_conflict(r->locks, &want);
    if (!in_the_way && is_full(r)) {
        home_refuse(m, -ENOLCK);
        return true;
    }
    if (!in_the_way) {
        grant_lock(r, m, &want);
        return true;
    }
    if (held_by_absent(in_the_way)) {
        home_refuse(m, -EIO);
        return true;
    }
    drop_for_conversion(r, &want);
    if (wait)
        return false;
    home_refuse(m, -EAGAIN);
    return true;
}

static void wake_waiting(struct record *r)
{
    for (struct pending **p = &r->waiting; *p;) {
        struct pending *w = *p;
        if (!try_lock(r, w->m, true)) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        free(w);
        home.waiting--;
    }
}

static void unlock(struct record *r, const struct msg *m)
{
    struct held_lock none = lock_of(m);
    none.type = HELD_NONE;
    if (m->lock.op == LOCK_DROP_OWNER) {
        none.start = 0;
        none.end = UINT64_MAX;
    }
    if (!lock_apply(&r->locks, &none))
        return;
    home_changed(r);
    wake_waiting(r);
}

static void weaken(struct record *r, const struct msg *m)
{
    struct held_lock read = lock_of(m);
    if (!lock_weaken(&r->locks, &read))
        return;
    home_changed(r);
    wake_waiting(r);
}

static bool same_request(const struct msg *a, const struct msg *b)
{
    return a->head.sender == b->head.sender && a->head.incarnation == b->head.incarnation &&
           a->lock.number == b->lock.number;
}

/* All requests with its number: one may be here twice, if its sender heard nothing for a while. */
static void cancel(struct record *r, const struct msg *m)
{
    for (struct pending **p = &r->waiting; *p;) {
        struct pending *w = *p;
        if (!same_request(w->m, m)) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        home_refuse(w->m, -EINTR);
        free(w);
        home.waiting--;
    }
}

static void ask_lock(struct msg *m)
{
    struct record *r = record_make(m->lock.fid);
    struct held_lock want = lock_of(m);
    bool wait = m->lock.op == LOCK_SET_WAIT;
    if (m->lock.op == LOCK_TEST) {
        home_reply_locked(m, lock_conflict(r->locks, &want));
    } else if (!try_lock(r, m, wait)) {
        home_queue(&r->waiting, m, 0);
        home.waiting++;
        home_arm(T_PING);
    }
    wake_waiting(r); /* a conversion may have made room for others */
}

/* ---- the order of requests ---- */

/* Its sender's; NULL: it is no member. */
static uint64_t *number_of(const struct msg *m)
{
    const struct member *s = view_member(home.view, m->head.sender);
    return s && s->incarnation == m->head.incarnation ? &home.lock_numbers[s - home.view->members]
                                                      : NULL;
}

static bool waits_here(const struct msg *m)
{
    const struct record *r = record_find(m->lock.fid);
    for (const struct pending *w = r ? r->waiting : NULL; w; w = w->next)
        if (same_request(w->m, m))
            return true;
    return false;
}

/* It was accepted before, or a later request of its sender was: that one may have undone it. */
static bool is_late(const struct msg *m)
{
    const uint64_t *last = number_of(m);
    return !last || (m->lock.number <= *last && !waits_here(m));
}

static void note_number(const struct msg *m)
{
    uint64_t *last = number_of(m);
    if (last)
        *last = MAX(*last, m->lock.number);
}

static void handle_lock(struct msg *m)
{
    const struct body_lock *l = &m->lock;
    bool sets = l->op == LOCK_SET || l->op == LOCK_SET_WAIT, asks = sets || l->op == LOCK_TEST;
    struct record *r = record_find(l->fid);
    if (l->kind > LOCK_FLOCK || l->type > HELD_NONE || l->start > l->end || l->op > LOCK_WEAKEN ||
        (asks && l->type == HELD_NONE)) {
        home_refuse(m, -EINVAL);
    } else if (asks ? !home_may_grant(m->head.view, l->fid)
                    : !home_may_tell(m->head.view, l->fid)) {
        home_ask_again(m);
    } else if (asks && blind_locks(r, l->fid)) {
        home_refuse(m, -EIO);
    } else if (sets && is_late(m)) {
        home_refuse(m, -ESTALE);
    } else if (asks) {
        if (sets)
            note_number(m);
        ask_lock(m);
    } else if (r && (l->op == LOCK_UNLOCK || l->op == LOCK_WEAKEN) && makes_two(r, m) &&
               is_full(r)) {
        home_refuse(m, -ENOLCK);
    } else {
        note_number(m);
        if (r && l->op == LOCK_CANCEL)
            cancel(r, m);
        else if (r && l->op == LOCK_WEAKEN)
            weaken(r, m);
        else if (r)
            unlock(r, m);
        home_reply_locked(m, NULL);
    }
}

void home_lock_start(void)
{
    home_handle(MSG_LOCK, handle_lock);
}
