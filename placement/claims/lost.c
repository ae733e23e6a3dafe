/* lost.c - see lost.h. */
#include "placement/claims/lost.h"

#include "placement/claims/record.h"
#include "placement/pfs/pfs_fid.h"
#include "transport/lock.h"
#include "transport/loop.h"
#include "transport/marks.h"
#include "transport/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define AGAIN_MS 2000

/* When each absent node was first seen to be absent. */
struct away {
    uint64_t id, incarnation;
    int64_t since_s;
};

struct list {
    struct lost_file *v;
    uint32_t n, room;
    uint64_t left_out; /* beyond LOST_FILES_MAX */
};

static struct {
    struct lock lock; /* RANK_LEAF */
    struct away *away;
    uint32_t naway;
    struct list list;
    bool reading;
    uint64_t read_ms;
} lost = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* ---- reading ---- */

struct reading {
    const struct away *from;
    const struct mark *marks;
    uint32_t nmarks;
    struct list list;
};

static void free_list(struct list *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        free(l->v[i].path);
    free(l->v);
    *l = (struct list){0};
}

/* A mark made while its node was away covers all that the node has of the file. */
static bool is_forgotten(const struct reading *r, struct fid fid)
{
    for (uint32_t i = 0; i < r->nmarks; i++) {
        const struct mark *m = &r->marks[i];
        if (m->node == r->from->id && (fid_is_zero(m->fid) || fid_eq(m->fid, fid)))
            return true;
    }
    return false;
}

static int add(void *arg, const char *session, uint64_t node, const char *node_name, struct fid fid,
               const char *path)
{
    struct reading *r = arg;
    (void)session;
    if (is_forgotten(r, fid))
        return 0;
    if (r->list.n == LOST_FILES_MAX) {
        r->list.left_out++;
        return 0;
    }
    if (r->list.n == r->list.room) {
        r->list.room = MAX(2 * r->list.room, 64u);
        r->list.v = xrealloc(r->list.v, r->list.room * sizeof(*r->list.v));
    }
    struct lost_file *l = &r->list.v[r->list.n++];
    *l = (struct lost_file){
        .fid = fid, .node = node, .since_s = r->from->since_s, .path = xstrdup(path)};
    snprintf(l->node_name, sizeof(l->node_name), "%s", node_name);
    return 0;
}

static struct away *copy_away(uint32_t *n)
{
    lock_take(&lost.lock);
    struct away *copy = xcalloc(lost.naway + 1, sizeof(*copy));
    for (uint32_t i = 0; i < lost.naway; i++)
        copy[i] = lost.away[i];
    *n = lost.naway;
    lock_drop(&lost.lock);
    return copy;
}

/* Once, until all can be named again.  Only pool_session's thread. */
static void say_left_out(uint64_t left_out)
{
    static bool said;
    if (left_out && !said)
        log_warn("%u files are only on nodes that left and %" PRIu64
                 " more: \"eddy status\" names no more than the first, \"eddy check\" of the PFS "
                 "directory names all of them",
                 LOST_FILES_MAX, left_out);
    said = left_out;
}

static void read_job(void *arg)
{
    struct mark *marks = NULL;
    struct reading r = {0};
    uint32_t n;
    struct away *away = copy_away(&n);
    int err = n ? session_read_marks(0, &marks, &r.nmarks) : 0;
    (void)arg;
    r.marks = marks;
    for (uint32_t i = 0; i < n && !err; i++) {
        r.from = &away[i];
        err = session_each_dirty_here(away[i].id, add, &r);
    }
    if (!err)
        say_left_out(r.list.left_out);
    lock_take(&lost.lock);
    struct list old = err ? r.list : lost.list;
    if (!err)
        lost.list = r.list;
    lost.reading = false;
    lost.read_ms = boot_ms();
    lock_drop(&lost.lock);
    free_list(&old);
    free(marks);
    free(away);
}

static void read_soon(bool now)
{
    lock_take(&lost.lock);
    bool begin =
        !lost.reading && lost.naway && pool_session && (now || boot_ms() - lost.read_ms > AGAIN_MS);
    lost.reading |= begin;
    lock_drop(&lost.lock);
    if (begin)
        pool_submit(pool_session, read_job, NULL);
}

/* ---- views ---- */

static int64_t since_of(const struct absent *a)
{
    for (uint32_t i = 0; i < lost.naway; i++)
        if (lost.away[i].id == a->id && lost.away[i].incarnation == a->incarnation)
            return lost.away[i].since_s;
    return real_ns() / 1000000000;
}

void lost_look(const struct view *v)
{
    if (!v)
        return;
    struct away *away = xcalloc(v->nabsent + 1, sizeof(*away));
    lock_take(&lost.lock);
    for (uint32_t i = 0; i < v->nabsent; i++)
        away[i] =
            (struct away){v->absents[i].id, v->absents[i].incarnation, since_of(&v->absents[i])};
    free(lost.away);
    lost.away = away;
    lost.naway = v->nabsent;
    lock_drop(&lost.lock);
    read_soon(true);
}

static bool is_away(uint64_t id)
{
    for (uint32_t i = 0; i < lost.naway; i++)
        if (lost.away[i].id == id)
            return true;
    return false;
}

int lost_each(int (*cb)(void *arg, const struct lost_file *l), void *arg)
{
    int rc = 0;
    read_soon(false);
    lock_take(&lost.lock);
    for (uint32_t i = 0; i < lost.list.n && !rc; i++)
        if (is_away(lost.list.v[i].node)) /* a node that is back has flushed, or is about to */
            rc = cb(arg, &lost.list.v[i]);
    lock_drop(&lost.lock);
    return rc;
}

uint64_t lost_left_out(void)
{
    lock_take(&lost.lock);
    uint64_t n = lost.naway ? lost.list.left_out : 0;
    lock_drop(&lost.lock);
    return n;
}

void lost_stop(void)
{
    lock_take(&lost.lock);
    free(lost.away);
    lost.away = NULL;
    lost.naway = 0;
    free_list(&lost.list);
    lock_drop(&lost.lock);
}
