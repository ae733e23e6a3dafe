/* members_twin.c - two daemons with one node id: a cache directory was copied (docs/protocol.md, rule 19).
 *
 * A newer incarnation is in the older one's place: no node waits for the older one, because the lock of their
 * one cache directory proves that it has ended.  The lock of a copy proves nothing.  So a daemon that starts
 * asks the one that the newest view has in its place, before it says anything to other nodes:
 *
 *     it answers               refused: the view's one goes on
 *     its port refuses         it has ended
 *     silent, but this very directory is the one that it ran on       it has ended
 *     silent otherwise         waits until a view is without it, or until no node touches the view
 *
 * If both run all the same (they could not see each other), the one that the newest view has goes on, and the
 * other one ends.
 */
#include "transport/loop.h"
#include "transport/members_int.h"
#include "transport/peer.h"
#include "transport/peer_twin.h"
#include "transport/session.h"
#include "transport/view.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS 1000

/* ---- at the start ---- */

/* The member with this node's id and another incarnation.  -ENOENT: there is none; -errno. */
static int read_other(const struct member *self, struct member *other, bool *stale)
{
    uint64_t newest, age_ms;
    struct view *v;
    int err = session_newest(&newest);
    if (err || !newest)
        return err ? err : -ENOENT;
    err = session_read_view(newest, &v);
    if (err)
        return err == -ENOENT ? -EAGAIN : err; /* it was removed as old just now */
    const struct member *m = view_member(v, self->id);
    bool found = m && m->incarnation != self->incarnation;
    if (found)
        *other = *m;
    view_free(v);
    *stale = !session_view_age_ms(newest, &age_ms) && age_ms >= T_STALE;
    return found ? 0 : -ENOENT;
}

/* 0: it has ended; -EEXIST: it lives; -EAGAIN: not known. */
static int ask_other(const struct members_config *c, const struct member *other, bool stale)
{
    int err = peer_find_twin(c->self.id, other->addr);
    if (err == -ENOTUNIQ)
        return -EEXIST;
    if (err == -ECONNREFUSED || err == -EACCES || err == -EPROTO)
        return 0;
    return other->incarnation == c->former || stale ? 0 : -EAGAIN;
}

static int refuse(const struct member *other, char *err, size_t errlen)
{
    snprintf(
        err, errlen,
        "node %s at %s is in the session with the identity of this cache directory, which is a "
        "copy of its: end that node first, or give an empty --cache-dir here",
        other->name, other->addr);
    return -EEXIST;
}

static void say_waits(const struct members_config *c, const struct member *other, uint64_t end)
{
    char why[384];
    uint64_t now = boot_ms();
    snprintf(
        why, sizeof(why),
        "node %s at %s, which has the identity of this cache directory, does not answer; it goes "
        "on when the others have taken it out of the session, or %u s after their last sign of "
        "life",
        other->name, other->addr, T_STALE / 1000);
    if (c->ops.waits)
        c->ops.waits(why, (unsigned)((end - MIN(end, now) + 999) / 1000));
}

int members_look_for_twin(unsigned timeout_s, char *err, size_t errlen)
{
    const struct members_config *c = &members_st.cfg;
    uint64_t end = boot_ms() + timeout_s * 1000ull;
    for (bool said = false;; poll(NULL, 0, LOOK_MS)) {
        struct member other = {.id = 0};
        bool stale = false;
        int e = read_other(&c->self, &other, &stale);
        if (e == -ENOENT)
            return 0;
        if (!e)
            e = ask_other(c, &other, stale);
        members_st.ended = e ? 0 : other.incarnation;
        if (e == -EEXIST)
            return refuse(&other, err, errlen);
        if (e != -EAGAIN) {
            if (e)
                snprintf(err, errlen, "the session's views cannot be read: %s", strerror(-e));
            return e;
        }
        if (boot_ms() >= end) {
            snprintf(err, errlen,
                     "whether another daemon runs with the identity of this cache directory was "
                     "not known within %u s (--wait-timeout): node %s at %s does not answer",
                     timeout_s, other.name, other.addr);
            return -ETIMEDOUT;
        }
        if (!said && other.id)
            say_waits(c, &other, end);
        said |= other.id != 0;
    }
}

/* ---- while it runs ---- */

static bool is_other(uint64_t incarnation)
{
    return incarnation != members_st.cfg.self.incarnation && incarnation != members_st.ended &&
           (!members_st.cfg.former || incarnation != members_st.cfg.former);
}

/* The other one in this node's place.  Absent nodes are looked at only if this one was a member: before
 * that, an absent one is what it was itself. */
static bool find_other(const struct view *v, struct member *out)
{
    uint64_t id = members_st.cfg.self.id;
    const struct member *m = view_member(v, id);
    if (m) {
        *out = *m;
        return is_other(m->incarnation);
    }
    for (uint32_t i = 0; i < v->nabsent && members_st.last; i++) {
        const struct absent *a = &v->absents[i];
        if (a->id != id)
            continue;
        *out = (struct member){.id = id, .incarnation = a->incarnation, .addr = "?"};
        memcpy(out->name, a->name, sizeof(out->name));
        return is_other(a->incarnation);
    }
    return false;
}

bool members_is_replaced(const struct view *v)
{
    struct member by;
    if (!find_other(v, &by))
        return false;
    if (!members_st.last) {
        members_now.unsure = true;
        members_wake();
        return true;
    }
    bool was_joined = members_st.view;
    members_st.left = true;
    members_st.view = NULL;
    members_now.adopted = NULL;
    members_now.lease_until_ms = 0;
    peer_set_view(0);
    if (was_joined)
        members_st.cfg.ops.adopted(NULL);
    if (members_st.cfg.ops.replaced)
        members_st.cfg.ops.replaced(&by);
    return true;
}
