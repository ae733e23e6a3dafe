/* prefetch_target.c - one target: it is looked up and looked at, admitted, and what is missing is fetched, piece by piece. */
#include <errno.h>
#include <string.h>

#include "placement/chunks/fetch.h"
#include "placement/chunks/owner.h"
#include "placement/claims/look.h"
#include "placement/foresight/find.h"
#include "placement/foresight/hint_files.h"
#include "placement/foresight/prefetch_int.h"
#include "placement/foresight/watch.h"
#include "placement/store/store_hint.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/members.h"
#include "transport/view.h"

#define TRIES_MAX 8u /* looks at a staged file whose bytes were not the right ones when they had come */
#define PIECE     8u /* chunks that are fetched before the next look whether they are still wanted */

bool prefetch_full;

struct work {
    struct target *t;
    struct found file;
    struct version version;
    uint64_t off, end; /* of what is wanted, and exists */
    uint64_t bytes;    /* of these: all, or those in chunks that this node owns */
    uint64_t view;  /* its number, before it was looked at: who owns which chunks */
    unsigned flushed, changes; /* hinted's, before it was looked at */
    bool again; /* it was looked at before, in vain */
    bool cut;   /* it is too large */
    bool looks; /* look_closed is owed */
    struct fetched_ahead came;
};

/* With hints_lock: the reader still wants it. */
static bool is_wanted(const struct target *t)
{
    return !t->queue->ended && t->first != NO_ENTRY && t->admitted;
}

static bool still_wanted(const struct target *t)
{
    lock_take(&hints_lock);
    bool wanted = is_wanted(t) && t->queue->started;
    lock_drop(&hints_lock);
    return wanted;
}

static bool is_wanted_chunk(const struct work *w, uint64_t index)
{
    return !w->t->queue->owned || owner_is_here(w->file.f->fid, index);
}

/* Calls for each part of what is wanted that lies in one chunk, or for all of it at once if all chunks are wanted.  Stops when
 * fn returns true, and returns that. */
static bool any_part(struct work *w, bool (*fn)(struct work *w, uint64_t off, uint64_t len))
{
    uint64_t chunk = store_chunk_size();
    if (!w->t->queue->owned)
        return w->off < w->end && fn(w, w->off, w->end - w->off);
    for (uint64_t off = w->off, end; off < w->end; off = end) {
        end = MIN(w->end, (off / chunk + 1) * chunk);
        if (is_wanted_chunk(w, off / chunk) && fn(w, off, end - off))
            return true;
    }
    return false;
}

static bool add_bytes(struct work *w, uint64_t off, uint64_t len)
{
    (void)off;
    w->bytes += len;
    return false;
}

static bool part_is_missing(struct work *w, uint64_t off, uint64_t len)
{
    uint64_t miss, n;
    return store_missing(w->file.f, off, len, &miss, &n);
}

static bool is_missing(struct work *w)
{
    return any_part(w, part_is_missing);
}

static uint64_t view_now(void)
{
    const struct view *v = members_view();
    return v ? v->number : 0;
}

/* What there is of it now: the state of its life, before it is admitted. */
static enum life look_at(struct work *w, uint64_t largest)
{
    struct file_info info;
    store_info(w->file.f, &info);
    w->view = view_now();
    w->version = info.base;
    uint64_t size = MAX(info.size, w->file.at.size), len_wanted = w->t->len;
    w->off = MIN(w->t->off, size);
    w->end = len_wanted && len_wanted < size - w->off ? w->off + len_wanted : size;
    w->cut = !w->t->queue->staged && w->end - w->off > largest;
    if (w->cut)
        w->end = w->off + largest;
    w->bytes = 0;
    any_part(w, add_bytes);
    if (w->file.at.where == WHERE_NODE || w->file.at.where == WHERE_LOST)
        return LIFE_INIT; /* neither fetched nor flushed because of a hint */
    if (info.dirty_bytes) /* of what the kernel has written, none may be known yet: it counts as flushed too early */
        return LIFE_WRITTEN;
    return is_missing(w) ? LIFE_GONE : LIFE_FLUSHED;
}

/* With hints_lock.  As long as it is admitted, this node looks at the file, so that its home tells of changes.  What has changed
 * since it was opened is looked at again. */
static void look_on(struct work *w, enum life life)
{
    struct target *t = w->t;
    struct hinted *h = t->file;
    bool same = h->changes == w->changes && fid_eq(h->fid, w->file.fid);
    if (!same)
        hints_step(t, LIFE_OTHER_VERSION);
    else if (life == LIFE_INIT && !t->queue->staged) /* a stage says so */
        watch_for(t);
    else
        t->looks = 0;
    if (!same) {
        t->redo = true;
    } else if (life != LIFE_INIT && !h->looked_at) {
        h->looked_at = true;
        w->looks = false;
    }
}

static void lost(struct target *t)
{
    lock_take(&hints_lock);
    if (is_wanted(t) && hints_step(t, LIFE_EVICT))
        t->redo = true;
    lock_drop(&hints_lock);
}

/* A staged file that changes again and again is given up: with the error.  With hints_lock. */
static bool is_tried_enough(struct target *t)
{
    return t->queue->staged && ++t->tries == TRIES_MAX;
}

/* With hints_lock: nothing of a staged target is to be fetched now. */
static void say_reached(const struct work *w, enum life life)
{
    struct target *t = w->t;
    if (t->redo && !is_tried_enough(t)) /* it has changed since it was opened */
        return;
    int err = t->redo ? -ESTALE : life != LIFE_INIT ? 0 : w->file.at.where == WHERE_LOST ? -EHOSTDOWN : -EBUSY;
    t->redo = false;
    hints_reached(t, err);
}

/* Admits the target as what it was found to be.  False: nothing more is to be done. */
static bool take_up(struct work *w, enum life life)
{
    struct target *t = w->t;
    lock_take(&hints_lock);
    bool wanted = !t->queue->ended && t->first != NO_ENTRY;
    if (life == LIFE_WRITTEN && t->file->flushed != w->flushed)
        life = LIFE_FLUSHED; /* meanwhile */
    if (wanted) {
        hints_admit(t, w->bytes);
        t->cut = w->cut;
        hints_set_life(t, life);
        hints_step(t, LIFE_ADMIT);
        count(hints_admitted, 1);
        if (life != LIFE_INIT)
            hints_tell(t, NEWS_HINTED);
        look_on(w, life);
    }
    bool fetches = wanted && t->life == LIFE_READING;
    if (wanted && !fetches && t->queue->staged)
        say_reached(w, life);
    lock_drop(&hints_lock);
    prefetch_tell_store();
    if (wanted && life == LIFE_FLUSHED && is_missing(w)) /* it left before the store had heard of the hint */
        lost(t);
    return fetches;
}

/* The store took no more: the target waits until something leaves; but a staged one not, if nothing will. */
static void is_full(struct target *t)
{
    struct room r = room_now();
    lock_take(&hints_lock);
    bool wanted = is_wanted(t);
    if (wanted) {
        hints_step(t, LIFE_GIVE_UP);
        hints_unadmit(t);
    }
    bool waits = !t->queue->staged || !room_stays_as_it_is(&r);
    prefetch_full |= waits;
    if (wanted && waits)
        t->queue->next = MIN(t->queue->next, t->first);
    else if (wanted)
        hints_reached(t, -ENOSPC);
    lock_drop(&hints_lock);
}

/* Piece by piece, each made of whole chunks. */
static int fetch_missing(struct work *w)
{
    uint64_t chunk = store_chunk_size(), piece = PIECE * chunk;
    int err = 0;
    for (uint64_t off = w->off / chunk * chunk; !err && off < w->end; off += piece) {
        if (!still_wanted(w->t))
            return -ECANCELED;
        fetch_yield();
        struct fetched from = {.ahead = &w->came};
        struct fetch want = {.v = w->version,
                             .off = off,
                             .len = MIN(piece, w->end - off),
                             .owned = w->t->queue->owned,
                             .idle = true,
                             .from = &from};
        err = fetch_range(w->file.f, &want, NULL);
    }
    return err;
}

/* The fetch has ended, of a hint.  With hints_lock, as below. */
static void end_hinted(struct work *w, int err, bool left_again)
{
    struct target *t = w->t;
    if (!is_wanted(t))
        return;
    if (t->file->changes != w->changes || err)
        watch_for(t);
    else if (left_again)
        t->redo = true;
    else
        hints_step(t, LIFE_HERE);
}

/* ... of a stage, which is told why a file cannot be brought. */
static void end_staged(struct work *w, int err, bool left_again)
{
    struct target *t = w->t;
    bool changed = err == -ESTALE || t->file->changes != w->changes;
    if ((left_again || changed) && is_wanted(t) && !is_tried_enough(t)) {
        t->redo = true;
    } else if (!err && !left_again && !changed && is_wanted(t)) {
        hints_step(t, LIFE_HERE);
        hints_reached(t, 0);
    } else if (changed && is_wanted(t)) {
        hints_reached(t, -ESTALE);
    } else if (err && err != -ENOSPC && err != -ECANCELED) {
        hints_reached(t, err);
    }
}

static void fetch_target(struct work *w)
{
    struct target *t = w->t;
    store_hint_coming(w->file.f, w->off, w->end - w->off);
    int err = fetch_missing(w);
    store_hint_coming(w->file.f, 0, 0);
    bool left_again = !err && is_missing(w);
    uint64_t bytes = w->came.peer + w->came.pfs;
    count(prefetched_bytes, bytes);
    bool others = t->queue->owned && w->view != view_now(); /* are wanted now: this node may own more chunks */
    if (err == -ENOSPC || (left_again && t->queue->staged && !others))
        is_full(t);
    else if (err && err != -ECANCELED)
        log_debug("%s: is not fetched ahead: %s", t->file->path, strerror(-err));
    lock_take(&hints_lock);
    t->queue->fetched_bytes += bytes;
    if (t->queue->staged)
        end_staged(w, err, left_again);
    else
        end_hinted(w, err, left_again);
    bool kept = t->hinted && t->life == LIFE_CONSUMED; /* for its next entry */
    if (!is_wanted(t) && !t->reached && !kept) { /* consumed or given up while chunks were on their way */
        hints_tell(t, t->first == NO_ENTRY ? NEWS_NEVER : NEWS_UNKNOWN);
        t->redo |= t->queue->staged; /* who stages waits for it */
    }
    lock_drop(&hints_lock);
}

/* No file has the name, or another node its bytes. */
static void is_absent(struct target *t, int err)
{
    lock_take(&hints_lock);
    if (!t->queue->ended && t->first != NO_ENTRY) {
        hints_admit(t, 0);
        hints_set_life(t, LIFE_INIT);
        if (t->queue->staged)
            hints_reached(t, err);
        else
            watch_for(t);
    }
    lock_drop(&hints_lock);
}

static void note_before(struct work *w)
{
    struct hinted *h = w->t->file;
    lock_take(&hints_lock);
    if (!w->t->queue->ended)
        hints_set_fid(h, w->file.fid);
    w->flushed = h->flushed;
    w->changes = h->changes;
    w->again = w->t->looks;
    lock_drop(&hints_lock);
}

/* What a staged name led to when the stage was begun; NULL: its queue says nothing of that. */
static const struct fid *guess_of(const struct target *t, struct fid *fid)
{
    lock_take(&hints_lock);
    *fid = t->file->fid;
    lock_drop(&hints_lock);
    return t->queue->staged && !fid_is_zero(*fid) ? fid : NULL;
}

static int open_found(struct work *w)
{
    note_before(w);
    return w->again && found_is_elsewhere(&w->file) ? -EBUSY : found_open(w->t->file->path, &w->file);
}

static int find_and_open(struct work *w)
{
    struct fid fid;
    const char *path = w->t->file->path;
    int err = find_hinted(path, guess_of(w->t, &fid), &w->file);
    if (!err)
        err = open_found(w);
    if ((err == -ESTALE || err == -ENOENT) && w->file.guessed) {
        found_end(&w->file);
        err = find_hinted(path, NULL, &w->file);
        if (!err)
            err = open_found(w);
    }
    return err;
}

void prefetch_target(struct target *t, uint64_t largest)
{
    struct work w = {.t = t};
    int err = find_and_open(&w);
    if (err) {
        is_absent(t, err);
    } else {
        look_opened(w.file.fid); /* while it is open: so no change between is missed */
        w.looks = true;
        if (take_up(&w, look_at(&w, largest)))
            fetch_target(&w);
        if (w.looks)
            look_closed(w.file.fid);
    }
    found_end(&w.file);
}
