/* store_version.c - which version of the PFS file the clean pages are of, and what a claim or a new version
 * does to them.
 */
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "placement/store/store_version.h"

#include <errno.h>

#include "transport/fid.h"
#include "transport/marks.h"

/* ---- versions ---- */

/* same: the bytes stay.  What was told of a version stays told; what moved ctime alone moves the told one. */
static void take_version(struct file_core *c, const struct version *v, bool same)
{
    bool known = c->flags & CORE_BASE;
    if (!known || !same || c->base.mtime_ns != v->mtime_ns)
        c->mtime_ns = v->mtime_ns;
    if (!known || !version_eq(&c->base, v))
        c->ctime_ns = v->ctime_ns;
    c->base = *v;
    c->size = c->base_end = v->size;
    c->cut = NO_CUT;
    c->flags = (c->flags | CORE_BASE) & ~(uint32_t)(CORE_MTIME_SET | CORE_FLUSHING);
}

static bool owes(const struct file *f)
{
    return is_dirty(f) || (core(f)->flags & CORE_CLAIMED);
}

/* Are the clean pages bytes of v? */
static bool pages_are_of(const struct file *f, const struct version *v,
                         const struct version *same_as)
{
    const struct file_core *c = core(f);
    if (!(c->flags & CORE_BASE) || (c->flags & CORE_RACY))
        return false;
    return version_eq(&c->base, v) || (same_as && version_is_same(&c->base, v, same_as));
}

/* With a RANGE_DROP on the whole file.  -EBUSY: it became dirty or claimed during the wait. */
static int set_version(struct file *f, const struct version *v, const struct version *same_as)
{
    if (owes(f))
        return -EBUSY;
    bool are = pages_are_of(f, v, same_as), known = core(f)->flags & CORE_BASE;
    bool same = are || (known && version_eq(&core(f)->base, v));
    if (!are) {
        uint64_t bytes;
        int err = store_drop_all(f, &bytes);
        count(stale_bytes, bytes);
        f->change++;
        if (err)
            return err;
    }
    if (owes(f))
        return -EBUSY;
    struct file_core *c = core_change(f->rec);
    take_version(c, v, same);
    c->flags &= ~(uint32_t)CORE_RACY;
    store_commit(f);
    f->rec->trace.ntold = 0;
    pages_release_all(f, true);
    return 0;
}

/* Has the file got a version by now that is neither of the two? */
static bool moved_on(const struct file *f, const struct version *v, const struct version *before)
{
    const struct file_core *c = core(f);
    return (c->flags & CORE_BASE) && !version_eq(&c->base, v) &&
           !(before && version_eq(&c->base, before));
}

/* Drops pages of another version than v.  follows: only if the version is `before`, or none. */
static int become(struct file *f, const struct version *v, const struct version *same_as,
                  bool follows, const struct version *before)
{
    struct range_op op;
    int err = 0;
    lock_take(&f->lock);
    if (owes(f)) {
        err = -EBUSY;
    } else if (!pages_are_of(f, v, NULL)) {
        range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
        err = follows && moved_on(f, v, before) ? -ESTALE : set_version(f, v, same_as);
        range_end(f, &op);
    }
    lock_drop(&f->lock);
    return err;
}

int store_set_version(struct file *f, const struct version *v, const struct version *same_as)
{
    int err;
    do
        err = become(f, v, same_as, false, NULL);
    while (store_room_again(f, err));
    return err;
}

int store_follow_version(struct file *f, const struct version *v, const struct version *before,
                         const struct version *same_as)
{
    int err;
    do
        err = become(f, v, same_as, true, before);
    while (store_room_again(f, err));
    return err;
}

/* A file that is written here nobody else in the session writes: what has moved ctime alone was a chmod,
 * chown, link or setxattr at another node.  Clean bytes may be another node's: they need the version
 * itself. */
static bool is_base(const struct file *f, const struct version *v)
{
    const struct file_core *c = core(f);
    if (!(c->flags & CORE_BASE))
        return false;
    return owes(f) ? version_same_bytes(&c->base, v) : version_eq(&c->base, v);
}

static void move_ctime(struct file *f, int64_t ctime_ns)
{
    if (core(f)->ctime_ns >= ctime_ns)
        return;
    core_change(f->rec)->ctime_ns = ctime_ns;
    store_commit(f);
}

void store_move_ctime(struct file *f, int64_t ctime_ns)
{
    lock_take(&f->lock);
    move_ctime(f, ctime_ns);
    lock_drop(&f->lock);
}

void store_tell(struct file *f, const struct version *v, const struct told *told)
{
    lock_take(&f->lock);
    const struct file_core *now = core(f);
    bool own = now->mtime_ns == v->mtime_ns && now->ctime_ns == v->ctime_ns;
    if ((now->flags & CORE_BASE) && version_eq(&now->base, v) && !is_dirty(f) && own) {
        struct file_core *c = core_change(f->rec);
        c->mtime_ns = told->mtime_ns;
        c->ctime_ns = told->ctime_ns;
        store_commit(f);
    }
    lock_drop(&f->lock);
}

bool store_same_data(struct file *f, const struct version *before, const struct version *after)
{
    lock_take(&f->lock);
    bool same = is_base(f, before), flushing = core(f)->flags & CORE_FLUSHING;
    trace_follow(f, before, after);
    if (!same && owes(f)) /* it is seen at once, also in the middle of a run */
        move_ctime(f, after->ctime_ns);
    if (same) {
        struct file_core *c = core_change(f->rec);
        c->base = *after;
        c->ctime_ns = MAX(c->ctime_ns, after->ctime_ns);
        if (!f->only_here && (!is_dirty(f) || kernel_io_flushed(f))) {
            if (has_kernel_io(f) && c->mtime_ns != after->mtime_ns)
                c->flags |= CORE_MTIME_SET; /* the data file's own time does not tell */
            c->mtime_ns = after->mtime_ns; /* utimens */
        }
        store_commit(f);
    }
    lock_drop(&f->lock);
    return same && !flushing;
}

/* ---- claims ---- */

static int set_claim(struct file *f, uint64_t number_inc, uint64_t number, const struct version *base)
{
    struct range_op op;
    int err = 0;
    lock_take(&f->lock);
    if (base && !owes(f) && !pages_are_of(f, base, NULL)) {
        range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
        err = set_version(f, base, NULL);
        range_end(f, &op);
    }
    if (!err || err == -EBUSY) { /* dirty by now: the base stays */
        struct file_core *c = core_change(f->rec);
        c->claim_inc = number_inc;
        c->claim_number = number;
        c->flags |= CORE_CLAIMED;
        store_commit(f);
        err = 0;
    }
    lock_drop(&f->lock);
    return err;
}

int store_set_claim(struct file *f, uint64_t number_inc, uint64_t number,
                    const struct version *base)
{
    int err;
    do
        err = set_claim(f, number_inc, number, base);
    while (store_room_again(f, err));
    return err;
}

/* Whole-second time stamps: another node's write within the same second could leave the same
 * version. */
static bool version_may_repeat(const struct version *v)
{
    bool whole = v->mtime_ns % 1000000000 == 0 && v->ctime_ns % 1000000000 == 0;
    int64_t now_ns = real_ns() + session_clock_offset_ns();
    return whole && now_ns - v->ctime_ns < INT64_C(2000000000);
}

bool store_clear_claim(struct file *f, const struct version *clean_version)
{
    lock_take(&f->lock);
    /* From now on another node may overwrite the file: a power loss must not bring anything back, not
     * even what an fsync covered again while the lock was dropped. */
    int err = 0;
    while (!err && !is_dirty(f) && f->rec->covered.check)
        err = store_uncover(f);
    bool clean = !err && !is_dirty(f);
    if (clean) {
        struct file_core *c = core_change(f->rec);
        if (clean_version && clean_version->size == c->size) {
            take_version(c, clean_version, version_eq(&c->base, clean_version));
            if (version_may_repeat(clean_version))
                c->flags |= CORE_RACY;
        }
        c->claim_inc = c->claim_number = 0;
        c->flags &= ~(uint32_t)(CORE_CLAIMED | CORE_FLUSHING | CORE_MTIME_SET);
        store_commit(f);
        f->rec->trace.ntold = 0;
        pages_release_all(f, true);
    }
    lock_drop(&f->lock);
    return clean;
}
