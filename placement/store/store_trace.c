/* store_trace.c - the trace of a run in the record (trace.h): noted before each change of the PFS file, so
 * that it outlives the daemon.
 *
 * It is not a part of the core, which would be copied for each note.  While it is written, its kind is
 * TRACE_ANY: a daemon that dies then leaves a file that counts as this node's own doing.
 */
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend_int.h"
#include "placement/store/store_read.h"
#include "placement/store/store_write.h"
#include "transport/marks.h"
#include "transport/session.h"

/* ---- a run ---- */

/* With f->lock, as all below. */
static void set_kind(struct file *f, enum trace_kind kind)
{
    crash_order();
    f->rec->trace.kind = (uint8_t)kind;
    crash_order();
}

static void begin(struct file *f)
{
    const struct file_core *c = core(f);
    struct file_trace *t = &f->rec->trace;
    bool left = c->flags & CORE_FLUSHING && t->kind != TRACE_ANY;
    struct version v = {left ? MAX(c->size, t->v.size) : c->size, c->mtime_ns, real_ns()};
    set_kind(f, TRACE_ANY);
    t->v = v;
    t->off = UINT64_MAX;
    t->len = 0;
    t->under_way = 0;
    set_kind(f, TRACE_RUN);
}

int store_flush_begins(struct file *f)
{
    int err = 0;
    lock_take(&f->lock);
    begin(f);
    lend_flush_looks(f);
    if (!(core(f)->flags & CORE_FLUSHING)) {
        core_change(f->rec)->flags |= CORE_FLUSHING;
        store_commit(f);
        err = store_cover_flushing(f);
    }
    if (err) { /* the next flush begins with it, too */
        core_change(f->rec)->flags &= ~(uint32_t)CORE_FLUSHING;
        store_commit(f);
    }
    lock_drop(&f->lock);
    return err;
}

void store_flush_unbegun(struct file *f, const struct file_info *before)
{
    struct file_trace *t = &f->rec->trace;
    lock_take(&f->lock);
    if (!before->flushing) {
        core_change(f->rec)->flags &= ~(uint32_t)CORE_FLUSHING;
        store_commit(f);
    } else {
        set_kind(f, TRACE_ANY);
        t->v = before->trace.v;
        t->off = before->trace.off;
        t->len = before->trace.len;
        t->under_way = before->trace.under_way;
        set_kind(f, before->trace.kind);
    }
    lock_drop(&f->lock);
}

void store_flush_changes(struct file *f, uint64_t off, size_t len)
{
    struct file_trace *t = &f->rec->trace;
    lock_take(&f->lock);
    set_kind(f, TRACE_ANY);
    t->off = off;
    t->len = (uint32_t)len;
    t->v.size = MAX(t->v.size, off + len);
    t->v.ctime_ns = real_ns();
    t->under_way = 1;
    set_kind(f, TRACE_RUN);
    lock_drop(&f->lock);
}

void store_flush_changed(struct file *f)
{
    lock_take(&f->lock);
    f->rec->trace.v.ctime_ns = real_ns();
    lock_drop(&f->lock);
}

void store_flush_failed(struct file *f)
{
    lock_take(&f->lock);
    f->rec->trace.v.ctime_ns = real_ns();
    crash_order();
    f->rec->trace.under_way = 0;
    lock_drop(&f->lock);
}

void store_flush_ends(struct file *f, int64_t mtime_ns)
{
    lock_take(&f->lock);
    f->rec->trace.v.mtime_ns = mtime_ns;
    lend_flush_looks(f);
    lock_drop(&f->lock);
}

static void left(struct file *f, const struct version *v)
{
    set_kind(f, TRACE_ANY);
    f->rec->trace.v = *v;
    set_kind(f, TRACE_LEFT);
}

void store_flush_left(struct file *f, const struct version *v)
{
    lock_take(&f->lock);
    if (core(f)->flags & CORE_FLUSHING)
        left(f, v);
    lock_drop(&f->lock);
}

void trace_follow(struct file *f, const struct version *before, const struct version *after)
{
    const struct file_trace *t = &f->rec->trace;
    if (core(f)->flags & CORE_FLUSHING && t->kind == TRACE_LEFT && version_same_bytes(&t->v, before))
        left(f, after);
}

/* ---- utimens ---- */

/* What an fsync has covered comes back after a power loss, and the PFS's time must be known then. */
int store_note_time(struct file *f, int64_t mtime_ns)
{
    struct file_trace *t = &f->rec->trace;
    lock_take(&f->lock);
    t->told[1] = t->told[0];
    crash_order();
    t->told[0] = mtime_ns;
    crash_order();
    t->ntold = (uint8_t)MIN(t->ntold + 1u, ARRAY_LEN(t->told));
    int err = f->rec->covered.check ? store_sync_record(f) : 0;
    lock_drop(&f->lock);
    return err;
}
