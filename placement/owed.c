/* owed.c - what other nodes have acknowledged, and no sync has covered.
 *
 * The bytes are at the claimant, or at a node that has borrowed the part.  Only if an operator has forgotten that node, or its claim
 * (eddy forget), they are lost.  The mark of it is in the session directory until that node is back and has put its bytes
 * aside.  The node may be the same daemon, which was cut off: so the marks are read whenever a member has been missing since
 * the change, whoever it was (ended_departures).
 */
#include "placement/owed.h"

#include "placement/claims/ended.h"
#include "transport/base.h"
#include "transport/marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void owed_init(struct owed *o)
{
    lock_init(&o->lock, RANK_LEAF);
}

void owed_free(struct owed *o)
{
    free(o->v);
    lock_destroy(&o->lock);
}

void owed_note(struct owed *o, uint64_t node, uint64_t incarnation, uint64_t departures)
{
    if (!o)
        return;
    lock_take(&o->lock);
    unsigned i = 0;
    o->notes++;
    while (i < o->n && o->v[i].node != node)
        i++;
    if (i == o->n) {
        o->v = xrealloc(o->v, (o->n + 1) * sizeof(*o->v));
        o->v[o->n++] = (struct debt){node, incarnation, departures};
    } else { /* the earlier change is not covered either */
        o->v[i].incarnation = MIN(o->v[i].incarnation, incarnation);
        o->v[i].departures = MIN(o->v[i].departures, departures);
    }
    lock_drop(&o->lock);
}

void owed_note_claimant(struct owed *o, uint64_t node, uint64_t incarnation, uint64_t departures)
{
    lock_take(&o->lock);
    o->claimant = node;
    lock_drop(&o->lock);
    owed_note(o, node, incarnation, departures);
}

uint64_t owed_notes(struct owed *o)
{
    lock_take(&o->lock);
    uint64_t notes = o->notes;
    lock_drop(&o->lock);
    return notes;
}

bool owed_is_doubtful(struct owed *o)
{
    uint64_t now = ended_departures();
    bool doubtful = false;
    lock_take(&o->lock);
    for (unsigned i = 0; i < o->n; i++)
        doubtful |= o->v[i].departures != now;
    lock_drop(&o->lock);
    return doubtful;
}

/* A claim keeps its number over starts of its node, and a node that serves a file has settled each older mark of it. */
static bool covers(const struct mark *m, struct fid fid, uint64_t inc)
{
    return fid_is_zero(m->fid) ? m->incarnation >= inc : fid_eq(m->fid, fid);
}

/* Marks that cannot be read count: the bytes may be lost. */
static bool was_forgotten(struct fid fid, uint64_t node, uint64_t inc)
{
    struct mark *marks;
    uint32_t n;
    bool was = false;
    if (session_read_marks(node, &marks, &n))
        return true;
    for (uint32_t i = 0; i < n; i++)
        was |= covers(&marks[i], fid, inc);
    free(marks);
    return was;
}

static bool is_lost(struct fid fid, const struct debt *d)
{
    return d->departures != ended_departures() && !ended_in_order(d->node, d->incarnation) && was_forgotten(fid, d->node, d->incarnation);
}

void owed_look(struct owed *o, struct fid fid, bool all)
{
    lock_take(&o->lock);
    unsigned n = o->n;
    uint64_t notes = o->notes;
    struct debt *v = xcalloc(n + 1, sizeof(*v));
    if (n)
        memcpy(v, o->v, n * sizeof(*v));
    lock_drop(&o->lock);
    bool lost = false;
    for (unsigned i = 0; i < n && !lost; i++)
        lost = is_lost(fid, &v[i]);
    free(v);
    lock_take(&o->lock);
    o->given_up |= lost;
    if ((all || lost) && o->notes == notes)
        o->n = 0;
    lock_drop(&o->lock);
}

bool owed_moves(struct owed *o, uint64_t claimant)
{
    lock_take(&o->lock);
    bool moves = o->n && claimant != o->claimant;
    lock_drop(&o->lock);
    return moves;
}

int owed_said(struct owed *o)
{
    lock_take(&o->lock);
    bool given_up = o->given_up;
    o->given_up = false;
    lock_drop(&o->lock);
    return given_up ? -EIO : 0;
}

void owed_covered(struct owed *o, uint64_t notes)
{
    lock_take(&o->lock);
    if (o->notes == notes)
        o->n = 0;
    lock_drop(&o->lock);
}
