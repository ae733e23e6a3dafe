/* stage_portions.c - which node is asked for which portions.
 *
 * Files that are to be here: all portions are this node's.  Spread: a node has a portion if it owns
 * one of the portion's chunks, so a portion of several chunks is with several nodes; each brings
 * what it owns.
 */
#include "placement/foresight/stage_int.h"

#include <errno.h>
#include <stdlib.h>

#include "placement/ring/ring.h"
#include "placement/store/store_open.h"

static uint64_t portion_bytes(void)
{
    return PORTION_CHUNKS * (uint64_t)store_chunk_size();
}

static uint32_t parts_of(const struct staged_file *f)
{
    return (uint32_t)MAX((f->version.size + portion_bytes() - 1) / portion_bytes(), (uint64_t)1);
}

void portion_range(const struct stage *s, const struct portion *u, uint64_t *off, uint64_t *len)
{
    bool whole = u->part == PORTION_WHOLE;
    bool last = whole || u->part + 1 == parts_of(&s->files[u->file]);
    *off = whole ? 0 : u->part * portion_bytes();
    *len = last ? 0 : portion_bytes();
}

static struct lane *lane_of(struct stage *s, uint64_t node)
{
    for (size_t i = 0; i < s->nlanes; i++)
        if (s->lanes[i].node == node)
            return &s->lanes[i];
    s->lanes = xrealloc(s->lanes, (s->nlanes + 1) * sizeof(*s->lanes));
    s->lanes[s->nlanes] = (struct lane){.node = node};
    return &s->lanes[s->nlanes++];
}

static int add_portion(struct stage *s, uint64_t node, uint32_t file, uint32_t part, uint64_t bytes)
{
    struct lane *l = lane_of(s, node);
    if (l->n && l->v[l->n - 1].file == file && l->v[l->n - 1].part == part &&
        l->v[l->n - 1].state == PORTION_TODO)
        return 0; /* for another chunk of it */
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        int err = stage_charge(s, (cap - l->cap) * sizeof(*l->v));
        if (err)
            return err;
        l->v = xrealloc(l->v, cap * sizeof(*l->v));
        l->cap = cap;
    }
    l->v[l->n++] = (struct portion){.file = file, .part = part, .bytes = bytes};
    return 0;
}

/* Chunks of the portion: [*first, *end); an empty file counts as one. */
static void chunks_of(const struct stage *s, uint32_t file, uint32_t part, uint64_t *first,
                      uint64_t *end)
{
    uint64_t chunk = store_chunk_size(), size = s->files[file].version.size;
    uint64_t all = MAX((size + chunk - 1) / chunk, (uint64_t)1);
    *first = part * (uint64_t)PORTION_CHUNKS;
    *end = MIN(all, *first + PORTION_CHUNKS);
}

static int add_owners(struct stage *s, uint32_t file, uint32_t part)
{
    uint64_t i, end;
    int err = 0;
    for (chunks_of(s, file, part, &i, &end); !err && i < end; i++)
        err = add_portion(s, ring_owner(ring_of(s->view), s->files[file].fid, i, 0), file, part, 0);
    return err;
}

static int add_file(struct stage *s, uint32_t file)
{
    int err = 0;
    for (uint32_t i = 0; s->whole && !err && i < s->view->nmembers; i++)
        err = add_portion(s, s->view->members[i].id, file, PORTION_WHOLE, 0);
    for (uint32_t part = 0; !s->whole && !err && part < parts_of(&s->files[file]); part++)
        err = s->how.spread ? add_owners(s, file, part)
                            : add_portion(s, members_self(), file, part, 0);
    return err;
}

int portions_make(struct stage *s)
{
    portions_free(s);
    s->view = members_view();
    int err = s->view ? 0 : -EAGAIN;
    for (size_t i = 0; !err && i < s->nfiles; i++)
        err = add_file(s, (uint32_t)i);
    return err;
}

void portions_reset(struct stage *s)
{
    for (size_t i = 0; i < s->nlanes; i++) {
        struct lane *l = &s->lanes[i];
        for (size_t k = 0; k < l->n; k++)
            l->v[k].state = PORTION_TODO;
        l->next = 0;
    }
}

void portions_free(struct stage *s)
{
    for (size_t i = 0; i < s->nlanes; i++)
        free(s->lanes[i].v);
    free(s->lanes);
    s->lanes = NULL;
    s->nlanes = 0;
}

/* ---- another view ---- */

static bool has(const struct view *v, const struct view *before, uint64_t node)
{
    const struct member *now = view_member(v, node), *then = view_member(before, node);
    return now && then && now->incarnation == then->incarnation;
}

/* Chunks of the portion that the lane's node owned in the view before, and another one owns now,
 * are asked of that one, unless the node still is there and has brought them. */
static bool follow(struct stage *s, const struct lane *l, const struct portion *u,
                   const struct view *before)
{
    uint64_t i, end;
    bool any = false, stays = has(s->view, before, l->node);
    struct portion copy = *u; /* add_portion moves the lanes */
    uint64_t node = l->node;
    for (chunks_of(s, copy.file, copy.part, &i, &end); i < end; i++) {
        struct fid fid = s->files[copy.file].fid;
        uint64_t now = ring_owner(ring_of(s->view), fid, i, 0);
        if (ring_owner(ring_of(before), fid, i, 0) != node ||
            (stays && (now == node || copy.state == PORTION_DONE)))
            continue;
        if (add_portion(s, now, copy.file, copy.part, copy.bytes))
            stage_failed(s, copy.file, now, -ENOBUFS);
        else if (copy.state == PORTION_DONE && !any)
            stage_more(s, copy.bytes);
        any = true;
    }
    return any;
}

/* The first n portions are not asked of a node that has gone; they are with others now, or behind
 * them. */
static void leave(struct lane *l, size_t n)
{
    for (size_t i = 0; i < n; i++)
        l->v[i].state = PORTION_DONE;
}

bool portions_follow_view(struct stage *s)
{
    const struct view *v = members_view(), *before = s->view;
    bool any = false;
    if (!v || v == before)
        return false;
    s->view = v;
    for (size_t i = 0, lanes = s->nlanes; i < lanes; i++) {
        bool stays = has(v, before, s->lanes[i].node);
        size_t n = s->lanes[i].n;
        for (size_t k = 0; k < n && s->how.spread && !s->whole; k++)
            any |= follow(s, &s->lanes[i], &s->lanes[i].v[k], before);
        if (!stays && (s->how.spread || s->whole))
            leave(&s->lanes[i], n);
        s->lanes[i].silent = false;
    }
    return any;
}
