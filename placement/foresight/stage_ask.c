/* stage_ask.c - the messages of a stage.
 *
 * One thread asks; answers come in the network thread, and wait on a list until that thread takes
 * them.  A node has two messages at a time.  A node that does not answer is asked again when it is
 * not suspected, or the view is another one.
 */
#include "placement/foresight/stage_int.h"

#include <errno.h>
#include <stdlib.h>

#include "transport/peer.h"
#include "transport/times.h"

#define NOW_FILES                                                                                  \
    64 /* of BRING_NOW: so that progress is seen, and little is asked for in vain when the stage   \
          ends */
#define TICK_MS    200 /* the view and the one who waits are looked at so often */
#define PAGE_BYTES 4096u

struct batch {
    struct batch *next; /* of stage.answered */
    struct stage *stage;
    enum bring_what what;
    size_t lane;
    unsigned slot; /* of lane.request */
    size_t portion[BRING_FILES];
    uint32_t n;
    int err;
    struct msg *reply; /* or NULL */
};

/* ---- one message ---- */

/* Network thread. */
static void on_brought(void *arg, int err, struct msg *reply, bool *keep)
{
    struct batch *b = arg;
    struct stage *s = b->stage;
    b->err = err;
    b->reply = err ? NULL : reply;
    *keep = b->reply;
    lock_take(&s->lock);
    b->next = s->answered;
    s->answered = b;
    pthread_cond_broadcast(&s->news);
    lock_drop(&s->lock);
}

static void fill(const struct stage *s, const struct batch *b, struct item_wanted *v)
{
    const struct lane *l = &s->lanes[b->lane];
    for (uint32_t i = 0; i < b->n; i++) {
        const struct portion *u = &l->v[b->portion[i]];
        const struct staged_file *f = &s->files[u->file];
        v[i] = (struct item_wanted){.fid = f->fid, .version = f->version, .path = f->path};
        portion_range(s, u, &v[i].off, &v[i].len);
    }
}

/* Takes the batch over. */
static void send_batch(struct batch *b)
{
    struct stage *s = b->stage;
    struct item_wanted v[BRING_FILES];
    struct msg *m = msg_new(MSG_BRING);
    fill(s, b, v);
    m->bring.stage = s->number;
    m->bring.what = (uint8_t)b->what;
    m->bring.owned = s->how.spread && !s->whole;
    m->bring.pin_ms = s->how.pin_ms;
    m->bring.files.n = b->n;
    m->bring.files.v = v;
    struct lane *l = &s->lanes[b->lane];
    l->asked++;
    b->slot = l->request[0] ? 1 : 0;
    l->request[b->slot] = UINT64_MAX;
    l->request[b->slot] = peer_request(l->node, m, T_SUSPECT, NULL, 0, on_brought, b);
}

static bool has_todo(struct lane *l)
{
    while (l->next < l->n && l->v[l->next].state != PORTION_TODO)
        l->next++;
    return l->next < l->n;
}

static void ask_lane(struct stage *s, size_t lane, enum bring_what what)
{
    struct lane *l = &s->lanes[lane];
    uint32_t most = what == BRING_NOW ? NOW_FILES : BRING_FILES;
    while (l->asked < LANE_MESSAGES && !l->silent && has_todo(l)) {
        struct batch *b = xcalloc(1, sizeof(*b));
        b->stage = s;
        b->what = what;
        b->lane = lane;
        for (size_t k = l->next; k < l->n && b->n < most; k++) {
            if (l->v[k].state != PORTION_TODO)
                continue;
            l->v[k].state = PORTION_ASKED;
            b->portion[b->n++] = k;
        }
        send_batch(b);
    }
}

/* ---- one answer ---- */

static void not_answered(struct lane *l, const struct batch *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (l->v[b->portion[i]].state == PORTION_ASKED)
            l->v[b->portion[i]].state = PORTION_TODO;
    l->next = 0;
    l->silent = true;
}

static void take_item(struct stage *s, struct lane *l, struct portion *u, const struct batch *b,
                      const struct item_brought *is)
{
    if (u->state != PORTION_ASKED)
        return; /* its node has gone meanwhile, and another one was asked */
    u->state = PORTION_DONE;
    u->here = is->here;
    if (b->what == BRING_LOOK) {
        u->bytes = is->wanted;
        l->kept += is->kept;
        l->needed += (is->wanted + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        return;
    }
    lock_take(&s->lock);
    s->done_bytes += u->bytes;
    lock_drop(&s->lock);
    if (is->err)
        stage_failed(s, u->file, l->node, -(int)MIN(is->err, 4095u));
}

static void take_answer(struct stage *s, struct batch *b)
{
    struct lane *l = &s->lanes[b->lane];
    struct item_brought failed = {.err = (uint32_t)-b->err};
    bool wrong = b->reply && b->reply->brought.files.n != b->n;
    bool again = members_no_contact(b->err) || b->err == -ECANCELED || b->err == -EAGAIN;
    l->asked--;
    l->request[b->slot] = 0;
    if (wrong)
        failed.err = EBADMSG;
    if (again)
        not_answered(l, b);
    for (uint32_t i = 0; i < b->n && !again; i++)
        take_item(s, l, &l->v[b->portion[i]], b,
                  b->reply && !wrong ? &b->reply->brought.files.v[i] : &failed);
    if (b->reply && !wrong)
        l->room = b->reply->brought.room;
    msg_free(b->reply);
    free(b);
}

/* Waits for answers, a moment at most. */
static void take_answers(struct stage *s, uint64_t ms)
{
    uint64_t until = boot_ms() + ms, now;
    lock_take(&s->lock);
    while (!s->answered && (now = boot_ms()) < until)
        lock_wait(&s->lock, &s->news, until - now);
    struct batch *all = s->answered;
    s->answered = NULL;
    lock_drop(&s->lock);
    for (struct batch *b = all, *next; b; b = next) {
        next = b->next;
        take_answer(s, b);
    }
}

/* ---- all of them ---- */

/* Is anything asked, or to be? */
static bool goes_on_asking(struct stage *s)
{
    bool any = false;
    for (size_t i = 0; i < s->nlanes; i++)
        any |= s->lanes[i].asked || has_todo(&s->lanes[i]);
    return any;
}

/* A node that was silent, and is thought to be there. */
static void ask_silent_again(struct stage *s)
{
    for (size_t i = 0; i < s->nlanes; i++)
        if (!members_suspected(s->lanes[i].node))
            s->lanes[i].silent = false;
}

static bool is_stopped(struct stage *s)
{
    lock_take(&s->lock);
    bool stop = s->stop;
    lock_drop(&s->lock);
    return stop;
}

/* Their answers come soon, or are here. */
static void cancel_asked(struct stage *s)
{
    for (size_t i = 0; i < s->nlanes; i++)
        for (unsigned k = 0; k < LANE_MESSAGES; k++)
            if (s->lanes[i].request[k])
                peer_cancel(s->lanes[i].request[k]);
}

static void wait_for_asked(struct stage *s)
{
    bool any;
    do {
        any = false;
        for (size_t i = 0; i < s->nlanes; i++)
            any |= s->lanes[i].asked;
        if (any)
            take_answers(s, TICK_MS);
    } while (any);
}

int stage_ask(struct stage *s, enum bring_what what, bool (*goes_on)(void *arg), void *arg)
{
    uint64_t tick = boot_ms();
    bool stop = false;
    while (!stop && (portions_follow_view(s) || goes_on_asking(s))) {
        for (size_t i = 0; i < s->nlanes; i++)
            ask_lane(s, i, what);
        take_answers(s, TICK_MS);
        stop = is_stopped(s);
        if (boot_ms() - tick < TICK_MS)
            continue;
        tick = boot_ms();
        ask_silent_again(s);
        stop |= goes_on && !goes_on(arg);
    }
    cancel_asked(s); /* only if it was stopped are there any */
    wait_for_asked(s);
    return stop ? -ECANCELED : 0;
}

void stage_tell(struct stage *s, enum bring_what what)
{
    const struct view *v = members_view();
    if (!s->nlanes && v) {
        s->lanes = xcalloc(v->nmembers, sizeof(*s->lanes));
        s->nlanes = v->nmembers;
        for (uint32_t i = 0; i < v->nmembers; i++)
            s->lanes[i].node = v->members[i].id;
    }
    for (size_t i = 0; i < s->nlanes; i++) {
        struct batch *b = xcalloc(1, sizeof(*b));
        b->stage = s;
        b->what = what;
        b->lane = i;
        send_batch(b);
    }
    wait_for_asked(s);
}
