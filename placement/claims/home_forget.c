/* home_forget.c - FORGET: an operator gives up what absent nodes have of a file (docs/protocol.md,
 * rule 17).
 *
 *     FORGET --> mark in the session directory (pool_session) --> W + T_piece --> record dropped, COPY
 *
 * The asker repeats it until the answer is that it is done; the first request after the wait ends it.
 * Until then a node that is cut off, and runs, may still be writing a piece that it began before it
 * could see the mark.  A new view ends all of it: the new home begins again, with the same mark.
 */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "placement/ring/ring.h"
#include "transport/loop.h"
#include "transport/marks.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct forget {
    struct forget *next;
    struct fid fid;
    uint64_t view, first_node;
    struct mark *marks;
    uint32_t nmarks;
    uint64_t marked_ms; /* 0: they are being written */
    int err;
};

static struct forget *forgets; /* of this view */

/* ---- marks ---- */

static void free_forget(struct forget *f)
{
    free(f->marks);
    free(f);
}

static void take_out(struct forget *f)
{
    struct forget **p = &forgets;
    while (*p && *p != f)
        p = &(*p)->next;
    if (*p)
        *p = f->next;
}

static void marked(void *arg)
{
    struct forget *f = arg;
    lock_take(&home_lock);
    if (home.view && home.view->number == f->view)
        f->marked_ms = boot_ms(); /* still in the list: one view, one list */
    else
        free_forget(f);
    lock_drop(&home_lock);
}

static void write_marks(void *arg)
{
    struct forget *f = arg;
    for (uint32_t i = 0; i < f->nmarks && !f->err; i++)
        f->err = session_write_mark(&f->marks[i]);
    loop_post(marked, f);
}

/* The claimant's request; for a blind file all requests of all nodes that may have it. */
static void begin(const struct record *r, struct fid fid)
{
    struct forget *f = xcalloc(1, sizeof(*f));
    const struct view *v = home.view;
    f->fid = fid;
    f->view = v->number;
    f->marks = xcalloc(v->nabsent + 1, sizeof(*f->marks));
    if (r && r->claimant)
        f->marks[f->nmarks++] = (struct mark){fid, r->claimant, r->number_inc, r->number};
    for (uint32_t i = 0; i < v->nabsent && !(r && r->claimant); i++)
        f->marks[f->nmarks++] =
            (struct mark){fid, v->absents[i].id, v->absents[i].incarnation, UINT64_MAX};
    f->first_node = f->marks[0].node;
    f->next = forgets;
    forgets = f;
    pool_submit(pool_session, write_marks, f);
}

void home_forgets_drop(void)
{
    struct forget *f;
    while ((f = forgets)) {
        forgets = f->next;
        if (f->marked_ms)
            free_forget(f); /* else its job comes back, and frees it */
        else
            f->view = 0;
    }
}

/* ---- requests ---- */

static void reply(struct msg *m, enum forget_state state, uint64_t node, uint64_t wait_ms)
{
    struct msg *r = msg_new(MSG_FORGOTTEN);
    r->forgotten.state = (uint8_t)state;
    r->forgotten.node = node;
    r->forgotten.wait_ms = (uint32_t)wait_ms;
    peer_reply(m, r);
    msg_free(m);
}

static void finish(struct forget *f, struct msg *m)
{
    const struct record *known = record_find(f->fid);
    struct record *r = record_make(f->fid);
    uint64_t node = f->first_node;
    take_out(f);
    free_forget(f);
    r->claimant = 0; /* the locks of absent nodes stay */
    r->unknown = known ? r->unknown & ~RECORD_CLAIM_UNKNOWN : RECORD_LOCKS_UNKNOWN;
    hint_set(r->fid, NULL, NULL);
    home_changed(r);
    reply(m, FORGET_DONE, node, 0);
}

static void go_on(struct forget *f, struct msg *m)
{
    uint64_t due = f->marked_ms + T_WAIT + T_PIECE, now = boot_ms();
    int err = f->marked_ms ? f->err : 0;
    if (err) {
        take_out(f);
        free_forget(f);
        home_refuse(m, err);
    } else if (f->marked_ms && now >= due) {
        finish(f, m);
    } else {
        reply(m, FORGET_WAITS, f->first_node, f->marked_ms ? due - now : T_WAIT + T_PIECE);
    }
}

static void handle_forget(struct msg *m)
{
    struct fid fid = m->forget.fid;
    struct forget *f = forgets;
    if (!home_may_grant(m->head.view, fid)) {
        home_ask_again(m);
        return;
    }
    while (f && !fid_eq(f->fid, fid))
        f = f->next;
    const struct record *r = record_find(fid);
    if (f) {
        go_on(f, m);
    } else if (r && r->claimant && view_member(home.view, r->claimant)) {
        reply(m, FORGET_PRESENT, r->claimant, 0);
    } else if ((r && r->claimant) || home_blind_claim(r, fid)) {
        begin(r, fid);
        go_on(forgets, m);
    } else {
        reply(m, FORGET_NOTHING, 0, 0);
    }
}

void home_forget_start(void)
{
    home_handle(MSG_FORGET, handle_forget);
}
