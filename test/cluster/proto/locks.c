/* locks.c - commands about locks. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "placement/claims/lock_ask.h"
#include "placement/claims/lock_table.h"
#include "placement/ring/ring.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/view.h"

/* PATH KIND [TYPE] [START END] OWNER, as the command has them. */
static int lock_of(const struct command *c, bool type, bool range, struct lock_ask *a)
{
    int i = 3;

    memset(a, 0, sizeof(*a));
    a->flock = !strcmp(word(c, 2), "flock");
    a->type = F_UNLCK;
    a->end = INT64_MAX;
    a->pid = (uint32_t)getpid();
    if (type)
        a->type = !strcmp(word(c, i++), "w") ? F_WRLCK : F_RDLCK;
    if (range) {
        a->start = number(c, i++);
        a->end = number(c, i++);
    }
    a->owner = number(c, i);
    return fid_at(word(c, 1), &a->fid);
}

static void locked(void *arg, int err, const struct lock_ask *found)
{
    (void)found;
    answer_code(arg, err);
}

static void tested(void *arg, int err, const struct lock_ask *found)
{
    if (err)
        answer_code(arg, err);
    else if (found->type == F_UNLCK)
        answer(arg, "free");
    else
        answer(arg, "%s %" PRIu64 " %" PRIu64, found->type == F_WRLCK ? "w" : "r", found->start,
               found->end);
}

void do_lock(struct command *c)
{
    bool unlocks = !strcmp(word(c, 0), "unlock"), wait = !strcmp(word(c, 7), "wait");
    struct lock_ask a;
    int err = lock_of(c, !unlocks, true, &a);
    uint64_t id;

    if (err) {
        answer_code(c, err);
        return;
    }
    id = c->lock_id = lock_new_id();
    command_waits(c);
    lock_request_as(id, &a, wait, locked, c);
}

void do_test(struct command *c)
{
    struct lock_ask a;
    int err = lock_of(c, true, true, &a);

    if (err)
        answer_code(c, err);
    else
        lock_test(lock_new_id(), &a, tested, c);
}

void do_drop(struct command *c)
{
    struct lock_ask a;
    int err = lock_of(c, false, false, &a);

    if (err)
        answer_code(c, err);
    else
        lock_drop_owner(a.fid, a.flock, a.owner, locked, c);
}

void do_cancel(struct command *c)
{
    uint64_t id = command_lock_id(word(c, 1));

    if (id)
        lock_cancel(id);
    answer_code(c, id ? 0 : -ENOENT);
}

void do_number(struct command *c)
{
    answer(c, "%" PRIu64, lock_new_id());
}

void do_late(void *arg)
{
    struct command *c = arg;
    const struct view *v = members_view();
    struct msg *m, *r = NULL;
    struct lock_ask a;
    int err = v ? lock_of(c, true, true, &a) : -ENOTCONN;

    if (err) {
        answer_code(c, err);
        return;
    }
    m = msg_new(MSG_LOCK);
    m->lock.fid = a.fid;
    m->lock.number = number(c, 7);
    m->lock.op = !strcmp(word(c, 8), "unlock") ? LOCK_UNLOCK : LOCK_SET;
    m->lock.kind = a.flock ? LOCK_FLOCK : LOCK_FCNTL;
    m->lock.type = a.type == F_WRLCK ? HELD_WRITE : HELD_READ;
    m->lock.owner = a.owner;
    m->lock.start = a.flock ? 0 : a.start;
    m->lock.end = a.flock ? UINT64_MAX : a.end;
    err = peer_call(view_home(v, a.fid), m, 5000, NULL, 0, &r);
    if (r)
        msg_free(r);
    answer_code(c, err);
}
