/* collect_self.c - what this node says of itself in ADOPTED: in which views it had which records, and which files are blind. */
#include "placement/claims/collect_int.h"
#include "placement/ring/ring.h"

#include <stdlib.h>
#include <string.h>

#define VIEWS_BACK 16 /* as far as members.c reads */

/* This node's state now, and its state when the adopted view began (the contents of ADOPTED of that view,
 * also when that is sent again). */
static struct self {
    uint64_t view; /* frozen: of which view */
    uint64_t home_view;
    uint32_t nnextof;
    struct item_nextof *nextof;
    uint32_t nblinds;
    struct item_blind *blinds;
} self, frozen;

static void *copy_of(const void *p, size_t n, size_t size)
{
    void *c = xmalloc(n * size + 1);
    if (n)
        memcpy(c, p, n * size);
    return c;
}

bool collect_is_next(uint64_t home, uint64_t view)
{
    for (uint32_t i = 0; i < self.nnextof; i++)
        if (self.nextof[i].home == home && self.nextof[i].view == view)
            return true;
    return false;
}

void collect_note_next(uint64_t home, uint64_t view)
{
    if (collect_is_next(home, view))
        return;
    self.nextof = xrealloc(self.nextof, (self.nnextof + 1) * sizeof(*self.nextof));
    self.nextof[self.nnextof++] = (struct item_nextof){home, view};
}

void collect_fill(const struct view *v, struct body_adopted *b)
{
    const struct self *s = v->number == frozen.view ? &frozen : &self;
    b->home_view = s->home_view;
    b->nextof.n = s->nnextof;
    b->nextof.v = copy_of(s->nextof, s->nnextof, sizeof(*s->nextof));
    b->blinds.n = s->nblinds;
    b->blinds.v = copy_of(s->blinds, s->nblinds, sizeof(*s->blinds));
}

/* ---- blind pairs ---- */

static bool some_still_absent(const struct view *then, const struct view *v, uint64_t *id)
{
    for (uint32_t i = 0; i < then->nabsent; i++) {
        if (view_absent(v, then->absents[i].id)) {
            *id = then->absents[i].id;
            return true;
        }
    }
    return false;
}

static void say_blind(const struct view *at, const struct view *v)
{
    uint64_t id = v->absents[0].id;
    if (at)
        some_still_absent(at, v, &id);
    log_warn("node %s did not end in order, and no node is left that knows which files it has not "
             "flushed: files that it may have changed give EIO until it is back with its cache "
             "directory; \"eddy forget --node %s MOUNTPOINT\" gives up its data",
             members_name(id), members_name(id));
}

void collect_add_blind(const struct view *v, struct item_blind b)
{
    const struct view *at = members_view_number(b.at);
    uint64_t id;
    if (!v->nabsent || (at && !some_still_absent(at, v, &id)))
        return;
    for (uint32_t i = 0; i < self.nblinds; i++)
        if (self.blinds[i].before == b.before && self.blinds[i].at == b.at)
            return;
    self.blinds = xrealloc(self.blinds, (self.nblinds + 1) * sizeof(*self.blinds));
    self.blinds[self.nblinds++] = b;
    say_blind(at, v);
}

static bool gone(const struct view *before, uint64_t id, const struct view *v)
{
    const struct member *m = view_member(before, id);
    return !m || !view_has(v, id, m->incarnation);
}

/* Drops what no later view can need. */
static void forget_old(const struct view *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < self.nnextof; i++)
        if (self.nextof[i].view + VIEWS_BACK > v->number)
            self.nextof[n++] = self.nextof[i];
    self.nnextof = n;
    n = 0;
    for (uint32_t i = 0; i < self.nblinds; i++) {
        const struct view *at = members_view_number(self.blinds[i].at);
        uint64_t id;
        if (v->nabsent && (!at || some_still_absent(at, v, &id)))
            self.blinds[n++] = self.blinds[i];
    }
    self.nblinds = n;
}

uint64_t collect_blind(const struct view *v, struct fid fid)
{
    for (uint32_t i = 0; i < self.nblinds; i++) {
        const struct view *before = members_view_number(self.blinds[i].before);
        const struct view *at = members_view_number(self.blinds[i].at);
        uint64_t id = v->nabsent ? v->absents[0].id : 0;
        if (!before || !at)
            return id; /* too old to know which files: it is all files without a record */
        if (!some_still_absent(at, v, &id))
            continue;
        uint64_t home = ring_home(ring_of(before), fid, 0);
        uint64_t next = ring_home(ring_of(before), fid, 1);
        if (gone(before, home, at) && (!next || gone(before, next, at)))
            return id;
    }
    return 0;
}

/* ---- a view's beginning and end ---- */

void collect_self_begin(const struct view *v)
{
    if (v)
        forget_old(v);
    free(frozen.nextof);
    free(frozen.blinds);
    frozen = self;
    frozen.view = v ? v->number : 0;
    frozen.nextof = copy_of(self.nextof, self.nnextof, sizeof(*self.nextof));
    frozen.blinds = copy_of(self.blinds, self.nblinds, sizeof(*self.blinds));
}

void collect_self_complete(const struct view *v)
{
    self.home_view = v->number;
    collect_note_next(members_self(), v->number);
}

bool collect_self_is_complete(const struct view *v)
{
    return self.home_view == v->number;
}

void collect_self_stop(void)
{
    free(self.nextof);
    free(self.blinds);
    free(frozen.nextof);
    free(frozen.blinds);
    self = frozen = (struct self){0};
}
