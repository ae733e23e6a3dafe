/* looks.c - commands about looking: asking as one who keeps what it finds, being told, and telling falsely. */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/claims/claim.h"
#include "placement/claims/claim_watch.h"
#include "placement/claims/home_int.h"
#include "transport/lock.h"
#include "transport/members.h"
#include "transport/peer.h"
#include "transport/view.h"

#define FILES_MAX 64

/* The ticket of the last look at each of some files. */
static struct {
    struct lock lock;
    struct fid fids[FILES_MAX];
    struct look_ticket tickets[FILES_MAX];
    unsigned n;
} seen = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

static struct look_ticket *ticket_of(struct fid fid)
{
    unsigned i = 0;

    while (i < seen.n && !fid_eq(seen.fids[i], fid))
        i++;
    if (i == FILES_MAX)
        die("too many files were looked at");
    if (i == seen.n)
        seen.fids[seen.n++] = fid;
    return &seen.tickets[i];
}

static _Atomic unsigned ended, left; /* files of which the beliefs have ended; what is left then */

/* ---- looking ---- */

static void show(struct command *c, const struct location *at)
{
    if (at->where == WHERE_PFS || at->where == WHERE_HERE)
        answer(c, "%s %s", at->where == WHERE_PFS ? "PFS" : "HERE", at->keep ? "keep" : "-");
    else
        answer(c, "%s %s", at->where == WHERE_NODE ? "NODE" : "LOST", members_name(at->node));
}

void do_look(void *arg)
{
    struct command *c = arg;
    bool open = !strcmp(word(c, 2), "open");
    struct location at;
    struct fid fid;
    int err = fid_at(word(c, 1), &fid);

    if (!err && open)
        look_opened(fid);
    if (!err)
        err = claim_where(fid, open ? LOOK_OPEN : LOOK_STAT, &at);
    if (err) {
        answer_code(c, err);
        return;
    }
    lock_take(&seen.lock);
    *ticket_of(fid) = at.ticket;
    lock_drop(&seen.lock);
    show(c, &at);
}

void do_closed(struct command *c)
{
    struct fid fid;
    int err = fid_at(word(c, 1), &fid);

    if (!err)
        look_closed(fid);
    answer_code(c, err);
}

/* But for the time, which is short. */
void do_holds(struct command *c)
{
    struct fid fid;
    int err = fid_at(word(c, 1), &fid);

    if (err) {
        answer_code(c, err);
        return;
    }
    lock_take(&seen.lock);
    bool holds = ticket_of(fid)->breaks == look_now(fid).breaks;
    lock_drop(&seen.lock);
    answer(c, holds ? "yes" : "no");
}

void do_looks(struct command *c)
{
    struct home_status h;

    home_status(&h);
    answer(c, "sent %" PRIu64 " received %" PRIu64 " open %u lookers %u ended %u",
           counted(breaks_sent), counted(breaks_received), look_open_files(), h.lookers, ended);
}

/* As this node, the home, knows them. */
void do_lookers(struct command *c)
{
    struct looker_found found[LOOKERS_NAMED + 1];
    char text[256] = "";
    struct fid fid;
    int err = fid_at(word(c, 1), &fid);

    if (err) {
        answer_code(c, err);
        return;
    }
    lock_take(&home_lock);
    unsigned n = lookers_of(fid, found);
    for (unsigned i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s:%s",
                 found[i].node == LOOKER_ANY ? "any" : home.view->members[found[i].node].name,
                 found[i].look == LOOK_OPEN    ? "open"
                 : found[i].look == LOOK_QUIET ? "quiet"
                                               : "stat");
    lock_drop(&home_lock);
    answer(c, "lookers%s", text);
}

/* ---- being told ---- */

static unsigned end_beliefs(struct fid fid)
{
    (void)fid;
    ended++;
    return left;
}

void do_left(struct command *c)
{
    left = (unsigned)number(c, 1);
    look_on_break(end_beliefs);
    answer_code(c, 0);
}

void do_watchers(struct command *c)
{
    struct claim_watcher v[CLAIM_WATCHERS_MAX];
    char text[256] = "";
    struct file *f = NULL;
    struct fid fid;
    int err = fid_at(word(c, 1), &fid);
    unsigned any;

    if (!err && !(f = file_find(fid)))
        err = -ENOENT;
    if (err) {
        answer_code(c, err);
        return;
    }
    unsigned n = claim_watchers(f, v, &any);
    for (unsigned i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s:%u",
                 members_name(v[i].node), v[i].kinds);
    file_put(f);
    answer(c, "watchers%s%s", text, any ? " all" : "");
}

/* ---- telling falsely ---- */

uint64_t node_named(const char *name)
{
    const struct view *v = members_view();

    for (uint32_t i = 0; v && i < v->nmembers; i++)
        if (!strcmp(v->members[i].name, name))
            return v->members[i].id;
    return 0;
}

void do_break(void *arg)
{
    struct command *c = arg;
    uint64_t node = node_named(word(c, 1));
    struct fid fid;
    int err = node ? fid_at(word(c, 2), &fid) : -ENOENT;

    if (!err) {
        struct msg *m = msg_new(MSG_BREAK);

        m->brk.fid = fid;
        m->brk.grant = 1;
        err = peer_call(node, m, 2000, NULL, 0, NULL);
    }
    answer(c, "%s", err == -E_ASK_AGAIN ? "ask again" : err ? "other" : "OK");
}

void do_pretend_looks(struct command *c)
{
    uint64_t n = number(c, 1);

    for (uint64_t i = 1; i <= n; i++)
        look_opened((struct fid){i * 0x9e3779b97f4a7c15u, i});
    answer_code(c, 0);
}
