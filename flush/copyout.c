/* copyout.c - one run over one file: what is dirty goes to the PFS (docs/protocol.md, F1 and F2).
 *
 *   cut first    a truncation that the PFS has not seen; pages written behind it come after
 *   pages        by offset, neighbours joined into pieces (piece.h); holes are punched or left out
 *   size         the file's, which may end in a hole
 *   fsync        and the error that close would return; of a huge file after each batch
 *   times, mode  as the application has set them
 *   only then    dirty bits are cleared, of pages that did not change since the snapshot.  The
 *                claim goes back when nothing is dirty and the file is not open for writing
 *
 * A failure before that leaves everything dirty.  The bytes of dirty pages can always be read: dirty pages
 * are never evicted.  What a run makes of the PFS file is noted before and after each change (trace.h), so
 * that an edit by somebody else is seen before the next run.
 */
#include "flush/copyout.h"
#include "flush/flush_int.h"
#include "flush/gate.h"
#include "flush/queue.h"
#include "placement/borrow.h"
#include "placement/borrow_flush.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_forget.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_write.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

#include <errno.h>
#include <stdlib.h>

#define VIEW_MIN (UINT64_C(128) << 10) /* for fewer bytes a view costs more than the copy */

struct copyout {
    struct file *f;
    struct gate *gate;
    uint64_t change; /* before the first snapshot */
    uint64_t looks;  /* the same; store_pfs_looks */
    char *buf;
    size_t size;        /* of buf */
    uint64_t piece;     /* writes end at its multiples */
    struct snapshot *s; /* the batch that is not fsynced yet */
    uint64_t looked_ms; /* before the PFS was asked what it has then */
    struct statx before;
};

/* Its last name is gone: no program can read it on the PFS any more.  Processes that have it open go on
 * reading from the store. */
static int drop_deleted(struct file *f, bool *clean)
{
    file_set_unlinked(f, true);
    store_set_deleted(f);
    *clean = true;
    return 0;
}

/* Idle priority is only for work that may take long, without anything that others wait for.  The caller has noted the write
 * (store_flush_changes). */
static int write_bytes(struct copyout *p, const void *bytes, size_t len, uint64_t off)
{
    bool idle = p->gate->idle;
    if (idle)
        priority_idle();
    int err = pfs_write(p->f, bytes, len, off);
    if (idle)
        priority_normal();
    store_flush_changed(p->f);
    return err;
}

static int truncate_to(struct file *f, uint64_t size)
{
    store_flush_changes(f, size, 0);
    int err = pfs_truncate(f, size);
    store_flush_changed(f);
    return err;
}

static void note_punch(struct file *f, uint64_t off, uint64_t len)
{
    store_flush_changes(f, off, (size_t)MIN(len, (uint64_t)PIECE));
}

/* The caller has noted it. */
static int punch(struct file *f, uint64_t off, uint64_t len)
{
    int err = pfs_punch(f, off, len);
    store_flush_changed(f);
    return err;
}

/* A hole of the snapshot.  The run may have waited for a lull since, so what was written there meanwhile stays.  It is noted before
 * the look, for the same reason as in write_copy. */
static int punch_left(struct copyout *p, uint64_t off, uint64_t end)
{
    int err = 0;
    for (uint64_t until; !err && off < end; off = until) {
        note_punch(p->f, off, end - off);
        if (!store_snapshot_next(p->s, &off, end, &until))
            break;
        err = punch(p->f, off, until - off);
    }
    return err;
}

/* It is noted before the bytes are read here: if they change after it, the PFS may get what is not here any more
 * (made.c). */
static int write_copy(struct copyout *p, size_t len, uint64_t off)
{
    store_flush_changes(p->f, off, len);
    int err = store_pread(p->f, p->buf, len, off);
    if (!err)
        err = write_bytes(p, p->buf, len, off);
    if (!err)
        kernel_io_copied(p->f, p->buf, len, off, p->s->size);
    return err;
}

/* Writes from the cache's pages without a copy, where that is cheaper: it takes half of the processor time.
 * */
static int write_piece(struct copyout *p, size_t len, uint64_t off)
{
    void *view = len >= VIEW_MIN && off % PAGE == 0 ? store_view(p->f, len, off) : NULL;
    if (!view)
        return write_copy(p, len, off);
    store_flush_changes(p->f, off, len);
    int err = write_bytes(p, view, len, off);
    store_unview(view, len);
    return err == -EFAULT ? write_copy(p, len, off) : err; /* the copy finds the error's reason */
}

/* As gate_wait, but -EIDRM: the file was removed meanwhile, and the run ends. */
static int may_go_on(struct gate *g, uint64_t len)
{
    int err = gate_wait(g, len);
    return !err && file_is_unlinked(g->f) ? -EIDRM : err;
}

static int sync_batch(struct copyout *p)
{
    int err = may_go_on(p->gate, 0);
    if (err)
        return err;
    bool idle = p->gate->idle;
    if (idle)
        priority_idle();
    err = pfs_sync(p->f);
    if (idle)
        priority_normal();
    return err;
}

/* How many bytes from `off` in run *i on can go into one write: runs that touch are joined. */
static size_t joined(const struct copyout *p, size_t i, uint64_t off)
{
    const struct snapshot *s = p->s;
    uint64_t end = s->extents[i].off + s->extents[i].len;
    while (piece_len(p->piece, off, end) == end - off && i + 1 < s->nextents && !s->extents[i + 1].hole &&
           s->extents[i + 1].off == end) {
        i++;
        end += s->extents[i].len;
    }
    return (size_t)MIN(piece_len(p->piece, off, end), (uint64_t)p->size);
}

static int copy_runs(struct copyout *p)
{
    const struct snapshot *s = p->s;
    uint64_t at = 0; /* all below is done */
    for (size_t i = 0; i < s->nextents; i++) {
        const struct extent *r = &s->extents[i];
        at = MAX(at, r->off);
        while (at < r->off + r->len) {
            size_t len = r->hole ? (size_t)(r->off + r->len - at) : joined(p, i, at);
            int err = may_go_on(p->gate, r->hole ? 0 : len);
            if (!err)
                err = r->hole ? punch_left(p, at, at + len) : write_piece(p, len, at);
            if (err)
                return err;
            at += len;
        }
    }
    return 0;
}

static int copy_batch(struct copyout *p)
{
    if (p->s->cut != NO_CUT) {
        int err = truncate_to(p->f, p->s->cut);
        if (err)
            return err;
    }
    return copy_runs(p);
}

/* Some dirty bytes have become clean: there is room for writers. */
static void note_progress(uint64_t bytes, bool idle)
{
    count(flushed_bytes, bytes);
    if (idle)
        count(flushed_lull_bytes, bytes);
    lock_take(&flush.lock);
    flush.progress++;
    pthread_cond_broadcast(&flush.ended);
    lock_drop(&flush.lock);
}

static void batch_done(struct copyout *p, bool ok)
{
    uint64_t bytes = p->s->bytes;
    store_snapshot_done(p->s, ok);
    p->s = NULL;
    if (ok)
        note_progress(bytes, p->gate->idle);
}

static int punch_owed(struct copyout *p)
{
    uint64_t off = 0, len = 0;
    int err = 0;
    while (!err && store_hole_owed(p->f, off + len, &off, &len)) {
        err = may_go_on(p->gate, 0);
        if (err)
            return err;
        note_punch(p->f, off, len);
        err = punch(p->f, off, len);
    }
    return err;
}

/* All batches; the last one is left in p->s without its fsync.  What is written behind the end that the file has now is for the next
 * run, as is what is written before the batch that is under way: else who appends, and writes a head again and again, would never
 * see a run end. */
static int copy_all(struct copyout *p)
{
    struct file_info info;
    store_info(p->f, &info);
    uint64_t from = 0, batch = MAX(room_batch() / p->piece, (uint64_t)1) * p->piece;
    for (;;) {
        int err = store_snapshot(p->f, from, batch - from % p->piece, &p->s);
        if (err) {
            p->s = NULL;
            return err == -ENODATA ? 0 : err;
        }
        err = copy_batch(p);
        if (err || p->s->last || !p->s->nextents)
            return err;
        const struct extent *end = &p->s->extents[p->s->nextents - 1];
        from = end->off + end->len;
        if (from >= info.size)
            return 0;
        err = sync_batch(p);
        if (err)
            return err;
        batch_done(p, true);
        err = gate_goes_on(p->gate);
        if (err)
            return err;
    }
}

static int set_size(struct file *f, uint64_t size)
{
    struct statx stx;
    int err = pfs_file_stat(f, &stx);
    if (!err && stx.stx_size != size)
        err = truncate_to(f, size);
    return err;
}

static bool may_be_lent(struct file *f, uint64_t off)
{
    uint64_t until;
    return !store_lent_is_known(f) || store_lent_to(f, off / LOAN_UNIT, off / LOAN_UNIT, &until);
}

/* Beside borrowers, who make the PFS file longer at any time: a truncation, also to a longer file, would cut off what they
 * have flushed.  So the last byte is allocated, which changes none.  Where the PFS cannot do that the byte is written: it is a
 * zero, as the PFS file is shorter.  But not if a borrower may write it: then a later run sets the size, when all is back.
 * Nothing is lent meanwhile. */
static int make_longer(struct copyout *p, uint64_t size)
{
    struct statx stx;
    int err = pfs_file_stat(p->f, &stx);
    if (err || stx.stx_size >= size)
        return err;
    store_flush_changes(p->f, size - 1, 1);
    err = pfs_make_longer(p->f, size);
    store_flush_changed(p->f);
    if (err == -EOPNOTSUPP)
        err = may_be_lent(p->f, size - 1) ? 0 : write_bytes(p, "", 1, size - 1);
    return err;
}

/* If parts were lent at any time of this run a later one cuts the file. */
static int set_size_alone(struct copyout *p, uint64_t size)
{
    struct file *f = p->f;
    int err = 0;
    store_lend_stop(f);
    bool shared = store_is_lent(f) || store_pfs_looks(f) != p->looks;
    if (!shared)
        err = set_size(f, size);
    else if (size)
        err = make_longer(p, size);
    store_lend_go(f);
    return err;
}

/* Size, fsync, times; then the PFS has it, as *stx says.  pfs_write_end is called in any case of no
 * error before it. */
static int publish(struct copyout *p, struct statx *stx)
{
    uint64_t size;
    int64_t mtime_ns;
    if (p->s) {
        size = p->s->size;
        mtime_ns = p->s->mtime_ns;
    } else { /* the rest was being written when its snapshot was to be taken: another run follows */
        struct file_info info;
        store_info(p->f, &info);
        size = info.size;
        mtime_ns = info.mtime_ns;
    }
    int err = set_size_alone(p, size);
    if (!err)
        err = sync_batch(p);
    if (err) {
        pfs_write_abort(p->f);
        return err;
    }
    p->looked_ms = boot_ms();
    store_flush_ends(p->f, mtime_ns);
    return pfs_write_end(p->f, mtime_ns, stx);
}

void flush_on_copied(flush_copied_fn fn)
{
    lock_take(&flush.lock);
    flush.on_copied = fn;
    while (!fn && flush.telling)
        lock_wait(&flush.lock, &flush.ended, 0);
    lock_drop(&flush.lock);
}

static void tell(struct file *f, const struct statx *stx, uint64_t looked_ms)
{
    lock_take(&flush.lock);
    flush_copied_fn fn = flush.on_copied;
    flush.telling += fn != NULL;
    lock_drop(&flush.lock);
    if (!fn)
        return;
    fn(f, stx, looked_ms);
    lock_take(&flush.lock);
    flush.telling--;
    pthread_cond_broadcast(&flush.ended);
    lock_drop(&flush.lock);
}

/* This comes before the store knows that f is clean: the sampler may give back the claim of a clean file at
 * any time. */
static void (*on_clean)(struct fid fid);

void flush_on_clean(void (*fn)(struct fid fid))
{
    on_clean = fn;
}

static void tell_copied(const struct copyout *p, const struct statx *stx)
{
    struct file_info info;
    store_info(p->f, &info);
    if (info.change == p->change)
        tell(p->f, stx, p->looked_ms);
}

/* The run has failed, or ends before its time.  What it has made of the PFS file is noted, unless nobody
 * waits for a look at a PFS that may hang. */
static void note_left(struct file *f)
{
    struct statx stx;
    store_flush_failed(f);
    lock_take(&flush.lock);
    bool stop = flush.stop;
    lock_drop(&flush.lock);
    if (stop || pfs_file_stat(f, &stx) || !stx.stx_nlink)
        return;
    struct version v = version_of(&stx);
    store_flush_left(f, &v);
}

static bool are_same_attributes(const struct statx *a, const struct statx *b)
{
    return a->stx_mode == b->stx_mode && a->stx_uid == b->stx_uid && a->stx_gid == b->stx_gid &&
           a->stx_nlink == b->stx_nlink;
}

static int run_copyout(struct copyout *p, bool *clean)
{
    struct statx stx;
    p->buf = xaligned(PAGE, p->size); /* a PFS that is a FUSE mount takes whole requests of it */
    int err = punch_owed(p);
    if (!err)
        err = copy_all(p);
    free(p->buf);
    p->buf = NULL;
    if (err) {
        pfs_write_abort(p->f);
    } else {
        gate_ends(p->gate);
        err = publish(p, &stx);
    }
    if (p->s)
        batch_done(p, !err);
    if (err) {
        note_left(p->f);
        return err;
    }
    if (!stx.stx_nlink)
        return drop_deleted(p->f, clean);
    struct version v = version_of(&stx);
    if (!are_same_attributes(&p->before, &stx)) /* else only this run has moved the PFS's ctime */
        store_move_ctime(p->f, v.ctime_ns);
    tell_copied(p, &stx);
    *clean = store_flushed(p->f, &v, p->change, &err);
    if (*clean)
        count(flushed_files, 1);
    if (*clean && on_clean)
        on_clean(p->f->fid);
    return err;
}

/* ---- a loan ----
 *
 * Its file belongs to the claimant, which cuts it and sets its size and times.  Other nodes write to other parts of it at
 * the same time: its version tells nothing. */

static int run_loan(struct copyout *p, bool *clean)
{
    p->buf = xaligned(PAGE, p->size);
    int err = copy_all(p);
    free(p->buf);
    if (!err) {
        gate_ends(p->gate);
        err = sync_batch(p);
    }
    pfs_write_abort(p->f);
    if (p->s)
        batch_done(p, !err);
    if (err)
        return err;
    *clean = store_loan_flushed(p->f, p->change, &err);
    if (*clean)
        count(flushed_files, 1);
    return err;
}

/* Its file may have been renamed while this node had no daemon, and so no descriptor of it. */
static int begin_loan(struct file *f, struct statx *before)
{
    int err = pfs_write_begin(f, before);
    bool moved = (err == -ENOENT || err == -ESTALE) && !pfs_find_near(f, before);
    return moved ? pfs_write_begin(f, before) : err;
}

static int begin_and_run_loan(struct gate *g, bool *clean)
{
    struct file *f = g->f;
    struct file_info info;
    struct copyout p = {.f = f, .gate = g};
    int err = gate_wait(g, 0);
    if (!err)
        err = begin_loan(f, &p.before);
    if (err)
        return err;
    store_info(f, &info);
    p.change = info.change;
    p.piece = piece_size(pfs_write_unit(f));
    p.size = (size_t)MIN((info.dirty_bytes + PAGE) / PAGE * PAGE, p.piece);
    return run_loan(&p, clean);
}

static int copyout_loan(struct gate *g, bool *clean)
{
    struct file *f = g->f;
    int err = begin_and_run_loan(g, clean);
    if (err == -ENOENT && borrow_may_flush(f) == -ENOENT) {
        err = conflict_loan(f);
        *clean = !err;
    } else if ((err == -ENOENT || err == -ESTALE) && borrow_is_removed(f)) {
        err = drop_deleted(f, clean);
    }
    return err;
}

/* ---- */

/* The search for what the kernel's writers changed waits for lulls, too. */
static int gate_of(void *arg)
{
    return may_go_on(arg, 0);
}

/* The gate admits no data of it into its file, but the data may be put beside it. */
static bool goes_beside(const struct file *f, int err)
{
    return err == -EIO && claim_is_forgotten(f);
}

static int begin_and_run(struct gate *g, bool *clean)
{
    struct file *f = g->f;
    int err = gate_wait(g, 0);
    if (err && !goes_beside(f, err))
        return err;
    if (conflict_is_due(f)) {
        err = conflict_check(f, clean);
        if (err || *clean)
            return err;
    }
    err = kernel_io_mark(f, gate_of, g);
    struct file_info info;
    struct copyout p = {.f = f, .gate = g};
    store_info(f, &info);
    int64_t stands_ns = info.stands_ns;
    if (!err)
        err = store_flush_begins(f); /* raising a mode for the flush is our own change, too */
    bool begins = !err;
    if (begins && (err = pfs_write_begin(f, &p.before)))
        store_flush_unbegun(f, &info);
    bool missing = err == -ENOENT || err == -ESTALE;
    bool removed = err == -EIDRM || (err && file_is_unlinked(f)); /* told meanwhile */
    if (removed || (missing && (info.leaving || pfs_was_removed(f))))
        return drop_deleted(f, clean);
    if (err)
        return err;
    if (version_of(&p.before).ctime_ns > stands_ns) /* an attribute was set elsewhere */
        store_move_ctime(f, version_of(&p.before).ctime_ns);
    p.looks = store_pfs_looks(f);
    store_info(f, &info); /* as late as possible: changes after it cost another run */
    p.change = info.change;
    p.piece = piece_size(pfs_write_unit(f));
    p.size = (size_t)MIN((info.dirty_bytes + PAGE) / PAGE * PAGE, p.piece);
    err = run_copyout(&p, clean);
    return err && file_is_unlinked(f) ? drop_deleted(f, clean) : err;
}

int copyout_file(struct gate *g, bool *clean)
{
    struct file *f = g->f;
    *clean = false;
    struct file_info info;
    store_info(f, &info);
    int err = 0;
    if (file_is_unlinked(f))
        err = drop_deleted(f, clean);
    else if (!info.dirty)
        *clean = true;
    else if (fid_is_loan(f->fid))
        err = copyout_loan(g, clean);
    else
        err = begin_and_run(g, clean);
    if (!err && *clean) {
        pfs_drop_clean(f);
        claim_give_back(f);
    }
    return err;
}
