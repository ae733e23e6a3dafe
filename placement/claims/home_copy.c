/* home_copy.c - COPY: next gets what the home has, before a request is answered (docs/protocol.md,
 * rules 7 and 9).
 *
 *     record changed --> stamp + 1 --> COPY to next --> COPIED --> requests that wait for it are answered
 *
 * When the home is complete in a new view each next gets all its records, stamped (view, 0), in
 * pieces: the next one goes when next says NEXT_PIECE, and COPIED comes for the last one alone.  A piece
 * has the records as they are when it goes: one that has changed meanwhile says more than was asked
 * for.  Each file stands for itself, so next may hold some records of this view before it has all;
 * only of all does it tell (collect_note_next).  Requests are sent again until they are answered or
 * the view is over.
 */
#include "placement/claims/home_answer.h"
#include "placement/claims/home_int.h"
#include "placement/claims/ranges.h"
#include "placement/ring/ring.h"
#include "transport/peer.h"
#include "transport/view.h"

#include <stdlib.h>

/* ---- the home's side ---- */

/* The files of which this home had records when it became complete, those of one next behind each
 * other. */
struct all_files {
    unsigned users;
    uint32_t *
        at; /* the first one of each next by its index in the view, and the end of the last one's */
    struct fid *v;
};

struct copy {
    uint64_t view, to;
    /* of one file */
    struct fid fid;
    uint64_t count;
    /* of all: the piece under way has the files from `at` on and before `upto`, of those before `end` */
    struct all_files *all; /* NULL: of one file */
    uint32_t piece, at, upto, end;
};

static void copied(void *arg, int err, struct msg *reply, bool *keep);

static void all_files_put(struct all_files *all)
{
    if (--all->users)
        return;
    free(all->at);
    free(all->v);
    free(all);
}

static void copy_end(void *arg)
{
    struct copy *c = arg;
    if (c->all)
        all_files_put(c->all);
    free(c);
}

/* One record with its locks. */
static void send_one_copy(struct copy *c, const struct record *r)
{
    struct msg *m = msg_new(MSG_COPY);
    struct item_record item = record_item(r);
    m->copy.heard = r->heard;
    m->copy.records.n = 1;
    m->copy.records.v = &item;
    lock_items_add(r->fid, r->locks, 0, &m->copy.locks.n, &m->copy.locks.v);
    struct item_lock *locks = m->copy.locks.v;
    peer_request(c->to, m, T_PING, NULL, 0, copied, c);
    free(locks);
}

/* When it is sent again a piece has the same files, as they are now, or the first ones of them if they have
 * more records and locks by now.  Not one that is behind them: next may have taken the piece as it was. */
static void send_piece(struct copy *c)
{
    struct item_record *records = xmalloc(MSG_PIECE_ITEMS * sizeof(*records));
    struct item_lock *locks = NULL;
    struct msg *m = msg_new(MSG_COPY);
    struct body_copy *b = &m->copy;
    uint32_t i = c->at, limit = c->upto > c->at ? c->upto : c->end;

    b->records.v = records;
    while (i < limit && b->records.n + b->locks.n < MSG_PIECE_ITEMS) {
        const struct record *r = record_find(c->all->v[i++]);
        if (!r)
            continue;
        records[b->records.n++] = record_item(r);
        lock_items_add(r->fid, r->locks, 0, &b->locks.n, &locks);
    }
    c->upto = i;
    b->locks.v = locks;
    b->first = 1;
    b->piece = c->piece;
    b->more = i < c->end;
    peer_request(c->to, m, T_SUSPECT, NULL, 0, copied, c);
    free(records);
    free(locks);
}

/* Sends it as it is now: a newer count replaces an older one. */
static void send_copy(struct copy *c)
{
    const struct record *r = c->all ? NULL : record_find(c->fid);
    if (c->all)
        send_piece(c);
    else if (r && r->stamp_view == c->view && r->stamp_count == c->count)
        send_one_copy(c, r);
    else
        copy_end(c);
}

static bool is_over(const struct copy *c)
{
    return !home.view || home.view->number != c->view;
}

static void copy_again(void *arg)
{
    struct copy *c = arg;
    lock_take(&home_lock);
    if (is_over(c))
        copy_end(c);
    else
        send_copy(c);
    lock_drop(&home_lock);
}

/* Next wants this piece. */
static void take_more(struct copy *c, uint32_t piece)
{
    if (c->upto == c->end || piece != c->piece + 1) {
        home_later(copy_again, copy_end, c);
        return;
    }
    c->piece = piece;
    c->at = c->upto;
    send_piece(c);
}

static void take_lookers(struct fid fid, const struct body_copied *b)
{
    for (uint32_t i = 0; i < b->lookers.n; i++) {
        const struct item_looker *l = &b->lookers.v[i];
        const struct member *m = view_member(home.view, l->node);
        enum look look = l->look == LOOK_OPEN || l->look == LOOK_QUIET ? l->look : LOOK_STAT;
        if (m)
            looker_note(fid, (uint32_t)(m - home.view->members), look, l->number);
        else if (!l->node)
            looker_note(fid, LOOKER_ANY, look, 0);
    }
}

/* Next has all of it. */
static void take_copied(struct copy *c, const struct body_copied *said)
{
    const struct member *to = view_member(home.view, c->to);
    struct record *r = c->all ? NULL : record_find(c->fid);
    if (!c->all)
        take_lookers(c->fid, said);
    if (r && r->claimant && r->stamp_view == c->view && r->stamp_count == c->count)
        r->heard = true;
    if (c->all && to)
        home.acked[to - home.view->members] = true;
    else if (r && r->stamp_view == c->view)
        home_answer_pending(r, c->count);
    copy_end(c);
}

static void copied(void *arg, int err, struct msg *reply, bool *keep)
{
    struct copy *c = arg;
    (void)keep;
    lock_take(&home_lock);
    if (is_over(c)) {
        copy_end(c);
    } else if (err) {
        if (err != -E_ASK_AGAIN)
            members_doubt(c->to);
        home_later(copy_again, copy_end, c);
    } else if (reply->head.type == MSG_NEXT_PIECE) {
        take_more(c, reply->next_piece.piece);
    } else {
        take_copied(c, &reply->copied);
    }
    lock_drop(&home_lock);
}

void home_changed(struct record *r)
{
    uint64_t next = ring_home(home.ring, r->fid, 1);
    r->stamp_view = home.view->number;
    r->stamp_count = ++home.count;
    r->touched_ms = boot_ms();
    if (!next) {
        home_answer_pending(r, r->stamp_count);
        return;
    }
    struct copy *c = xcalloc(1, sizeof(*c));
    *c = (struct copy){
        .view = home.view->number, .to = next, .fid = r->fid, .count = r->stamp_count};
    send_copy(c);
}

struct finding {
    struct fid *files;
    uint32_t n, *next; /* by file: the index of its next among the members */
};

static void find_file(struct record *r, void *arg)
{
    struct finding *f = arg;
    if (ring_home(home.ring, r->fid, 0) != members_self())
        return;
    uint64_t next = ring_home(home.ring, r->fid, 1);
    if (!next)
        return;
    f->files[f->n] = r->fid;
    f->next[f->n++] = (uint32_t)(view_member(home.view, next) - home.view->members);
}

/* All records once, not once for each member: see reports.h. */
static struct all_files *find_all_files(const struct view *v)
{
    struct all_files *all = xcalloc(1, sizeof(*all));
    size_t room = (size_t)record_count() + 1;
    struct finding f = {.files = xmalloc(room * sizeof(*f.files)),
                        .next = xmalloc(room * sizeof(*f.next))};
    record_each(find_file, &f);
    all->users = 1;
    all->v = f.files;
    all->at = ranges_sort(f.files, f.n, sizeof(*f.files), f.next, v->nmembers);
    free(f.next);
    return all;
}

void home_copy_all(const struct view *v)
{
    struct all_files *all = find_all_files(v);
    for (uint32_t i = 0; i < v->nmembers; i++) {
        if (v->members[i].id == members_self())
            continue;
        struct copy *c = xcalloc(1, sizeof(*c));
        *c = (struct copy){.view = v->number,
                           .to = v->members[i].id,
                           .all = all,
                           .at = all->at[i],
                           .upto = all->at[i],
                           .end = all->at[i + 1]};
        all->users++;
        send_copy(c);
    }
    all_files_put(all);
}

/* ---- next's side ---- */

static bool newer(const struct item_record *a, const struct record *r)
{
    return a->stamp_view != r->stamp_view ? a->stamp_view > r->stamp_view
                                          : a->stamp_count >= r->stamp_count;
}

/* nlocks: of the locks behind `lock` the first ones are this record's.  Answers how many. */
static uint32_t take_record(const struct msg *m, const struct item_record *in,
                            const struct item_lock *lock, uint32_t nlocks)
{
    struct record *r = NULL;
    uint32_t n = 0;
    if (ring_home(home.ring, in->fid, 0) == m->head.sender &&
        ring_home(home.ring, in->fid, 1) == members_self() && in->stamp_view == home.view->number)
        r = record_make(in->fid);
    if (r && !newer(in, r))
        r = NULL;
    if (r) {
        if (m->copy.heard && r->claimant && !in->claimant && r->stamp_view == in->stamp_view)
            lookers_forget(in->fid); /* the home has them, and nobody was entered since */
        r->claimant = in->claimant;
        r->number_inc = in->number_inc;
        r->number = in->number;
        r->stamp_view = in->stamp_view;
        r->stamp_count = in->stamp_count;
        r->unknown = in->unknown;
        lock_list_free(&r->locks);
    }
    for (; n < nlocks && fid_eq(lock[n].fid, in->fid); n++) {
        struct held_lock held = lock_of_item(&lock[n]);
        if (r)
            lock_add(&r->locks, &held);
    }
    return n;
}

static void take_records(const struct msg *m)
{
    const struct body_copy *b = &m->copy;
    uint32_t locks = 0;
    for (uint32_t i = 0; i < b->records.n; i++)
        locks += take_record(m, &b->records.v[i], b->locks.v + locks, b->locks.n - locks);
}

/* Pieces come in their order, each after the answer to the one before: another one is a copy of one
 * that was taken, or comes again. */
static void take_piece(const struct msg *m)
{
    uint32_t *pieces = &home.copied[view_member(home.view, m->head.sender) - home.view->members];
    if (*pieces != m->copy.piece)
        return;
    take_records(m);
    *pieces = m->copy.more ? *pieces + 1 : COPIED_ALL;
    if (*pieces == COPIED_ALL)
        collect_note_next(m->head.sender, home.view->number);
}

/* Those that this node, as next, has let keep what they found of the file.  From now on there are no more: it says
 * AT NODE. */
static uint32_t own_lookers(const struct msg *m, struct item_looker out[LOOKERS_NAMED + 1])
{
    struct looker_found found[LOOKERS_NAMED + 1];
    uint32_t n = m->copy.records.n == 1 ? lookers_of(m->copy.records.v[0].fid, found) : 0;
    for (uint32_t i = 0; i < n; i++) {
        bool any = found[i].node == LOOKER_ANY;
        out[i] = (struct item_looker){any ? 0 : home.view->members[found[i].node].id,
                                      (uint8_t)found[i].look, found[i].number};
    }
    return n;
}

static void answer_copy(const struct msg *m)
{
    const struct member *from = view_member(home.view, m->head.sender);
    uint32_t pieces = m->copy.first ? home.copied[from - home.view->members] : COPIED_ALL;
    struct msg *r = msg_new(pieces == COPIED_ALL ? MSG_COPIED : MSG_NEXT_PIECE);
    struct item_looker lookers[LOOKERS_NAMED + 1];
    if (pieces == COPIED_ALL) {
        r->copied.view = home.view->number;
        r->copied.lookers.v = lookers;
        r->copied.lookers.n = m->copy.first ? 0 : own_lookers(m, lookers);
    } else {
        r->next_piece.view = home.view->number;
        r->next_piece.piece = pieces;
    }
    peer_reply(m, r);
}

static void handle_copy(struct msg *m)
{
    /* leaving: the farewells have said what this node has; a copy accepted now would not be in them */
    if (!home.view || members_leaving() || m->head.view != home.view->number ||
        !view_has(home.view, m->head.sender, m->head.incarnation)) {
        home_ask_again(m);
        return;
    }
    if (m->copy.first)
        take_piece(m);
    else
        take_records(m);
    answer_copy(m);
    msg_free(m);
}

void home_copy_start(void)
{
    home_handle(MSG_COPY, handle_copy);
}
