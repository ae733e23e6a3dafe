/* store.c - the store as a whole, and a file's state: versions, claims, the marks of a flush.
 *
 * Reading is in store_read.c, changing in store_write.c, copy-out in store_copyout.c, start after a
 * crash in store_recover.c.
 */
#include "placement/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/ballast.h"
#include "placement/fid.h"
#include "placement/store_int.h"
#include "transport/session.h"

struct store store = {.dir = {.fd = -1}};

/* ---- opening ---- */

static int fail(int code, char *err, size_t errlen, const char *what)
{
    snprintf(err, errlen, "cache directory %s: %s: %s", store.dir.path, what, strerror(-code));
    return code;
}

static void count_dirty(struct file_record *r, void *arg)
{
    const struct file_core *c = core_of(r);
    *(unsigned *)arg += (c->flags & CORE_DIRTY) && !(c->flags & CORE_DELETED);
}

/* The slabs are of another chunk size: emptied if nothing in them is owed to the PFS. */
static int change_chunk_size(uint32_t chunk_size, struct state_report *rep, char *err,
                             size_t errlen)
{
    unsigned dirty = 0, had = store.dir.chunk_size;
    state_each_file(count_dirty, &dirty);
    if (dirty) {
        snprintf(err, errlen,
                 "cache directory %s has chunks of %u bytes and %u files that are not on the PFS "
                 "yet: start once with "
                 "--chunk-size %u, or name another directory with --cache-dir",
                 store.dir.path, had, dirty, had);
        return -EINVAL;
    }
    state_close(false);
    int e = cachedir_empty(&store.dir, chunk_size);
    if (e)
        return fail(e, err, errlen, "emptying it for another chunk size");
    log_info("cache directory %s had chunks of %u bytes: emptied, as the chunk size is %u now",
             store.dir.path, had, chunk_size);
    e = state_open(store.dir.slabs_fd, chunk_size, store.dir.boot_id, rep);
    return e ? fail(e, err, errlen, "mapping its records") : 0;
}

static int open_state(const struct store_config *c, struct state_report *rep, char *err,
                      size_t errlen)
{
    int e = datafile_probe(store.dir.fd);
    if (e == -EOPNOTSUPP)
        return fail(e, err, errlen,
                    "its file system can not punch holes (ext4, xfs, btrfs and tmpfs can): name "
                    "another one with "
                    "--cache-dir");
    if (e)
        return fail(e, err, errlen,
                    "can not be written (is the disk full?): name another one with --cache-dir");
    e = state_open(store.dir.slabs_fd, store.dir.chunk_size, store.dir.boot_id, rep);
    if (e)
        return fail(e, err, errlen, "mapping its records");
    if (store.dir.chunk_size != c->chunk_size)
        e = change_chunk_size(c->chunk_size, rep, err, errlen);
    if (e)
        state_close(false);
    return e;
}

/* One slab of each kind, at least, or nothing could ever be cached or written. */
static int first_slabs(char *err, size_t errlen)
{
    int e = space_reserve_files(1);
    if (!e) {
        state_unreserve(SLAB_FILES, 1);
        e = space_reserve(0, 1);
    }
    if (!e)
        space_return(0, 1);
    return e ? fail(e, err, errlen,
                    "no room for its records: the disk is full, or --cache-size is too small: make "
                    "room, or name "
                    "another one with --cache-dir")
             : 0;
}

static int start(const struct store_config *c, const struct state_report *rep, char *err,
                 size_t errlen)
{
    struct space_config space = {.size = c->size,
                                 .percent = c->percent,
                                 .dirfd = store.dir.fd,
                                 .dev = store.dir.dev,
                                 .node_id = store.dir.node_id};
    datafile_start(store.dir.data_fd);
    space_start(&space);
    store.lost_power = rep->power_loss;
    int e = store_recover(rep);
    if (e)
        fail(e, err, errlen, "repairing what the last daemon left");
    if (!e) {
        e = state_start();
        if (e)
            fail(e, err, errlen, "writing its records");
    }
    if (!e)
        e = first_slabs(err, errlen);
    if (e)
        space_stop();
    return e;
}

int store_open(const struct store_config *c, char *err, size_t errlen)
{
    struct state_report rep;
    if (store.open)
        die("store_open: it is open");
    int e = cachedir_open(&store.dir, c->dir, c->dir_is_default, c->chunk_size, err, errlen);
    if (e)
        return e;
    e = cachedir_begin_incarnation(&store.dir, err, errlen);
    if (!e)
        e = open_state(c, &rep, err, errlen);
    if (!e) {
        e = start(c, &rep, err, errlen);
        if (e)
            state_close(false);
    }
    if (e)
        cachedir_close(&store.dir);
    store.open = !e;
    return e;
}

void store_close(bool clean)
{
    if (!store.open)
        return;
    if (clean && syncfs(store.dir.fd) < 0) {
        log_warn("cache directory %s: syncfs: %s: not marked as clean", store.dir.path,
                 strerror(errno));
        clean = false;
    }
    int err = state_close(clean);
    if (err)
        log_warn("cache directory %s: writing its records: %s", store.dir.path, strerror(-err));
    space_stop();
    cachedir_close(&store.dir);
    store.open = false;
}

int store_dirfd(void)
{
    return store.dir.fd;
}

bool store_lost_power(void)
{
    return store.lost_power;
}

const char *store_dir(void)
{
    return store.dir.path;
}

uint32_t store_weight(void)
{
    return (uint32_t)MIN(MAX(space_meant() >> 20, UINT64_C(1)), (uint64_t)WEIGHT_MAX);
}

uint64_t store_node_id(void)
{
    return store.dir.node_id;
}

uint64_t store_incarnation(void)
{
    return store.dir.incarnation;
}

uint32_t store_chunk_size(void)
{
    return store.dir.chunk_size;
}

void store_on_dirty(void (*fn)(struct file *f))
{
    store.on_dirty = fn;
}

void store_on_unsynced(void (*fn)(void))
{
    store.on_unsynced = fn;
}

/* ---- a file's state ---- */

void store_changed(struct file *f)
{
    f->change++;
    if (f->synced && store.on_unsynced)
        store.on_unsynced();
    f->synced = false;
}

void store_commit(struct file *f)
{
    core_commit(f->rec);
    if (!is_dirty(f))
        store_not_covered(f);
    state_busy_set(f->rec, core_busy(core(f)));
}

bool store_mark_dirty(struct file *f)
{
    if (core(f)->flags & (CORE_DIRTY | CORE_DELETED))
        return false;
    core_change(f->rec)->flags |= CORE_DIRTY;
    store_commit(f);
    return true;
}

/* With f->lock, which is dropped meanwhile. */
static void sync_record(struct file *f)
{
    store_not_covered(f);
    lock_drop(&f->lock);
    int err = slab_sync(f->rec, sizeof(*f->rec));
    if (err)
        log_error("the cache's disk: writing a record: %s", strerror(-err));
    lock_take(&f->lock);
}

void store_uncover(struct file *f)
{
    if (!f->rec->covered.check)
        return;
    f->rec->covered.check = 0;
    sync_record(f);
}

void store_cover_cut(struct file *f, uint64_t size)
{
    struct file_core *k = &f->rec->covered;
    if (!k->check || size >= k->size)
        return;
    k->size = size;
    k->base_end = MIN(k->base_end, size);
    k->cut = MIN(k->cut, size);
    k->check = core_check(k, f->fid);
    sync_record(f);
}

/* The flush changes the PFS file: after a power loss its version differs by our own doing. */
static void cover_flushing(struct file *f)
{
    struct file_core *k = &f->rec->covered;
    if (!k->check || (k->flags & CORE_FLUSHING))
        return;
    k->flags |= CORE_FLUSHING;
    k->check = core_check(k, f->fid);
    sync_record(f);
}

void store_cover_flushed(struct file *f)
{
    struct file_core *k = &f->rec->covered;
    const struct file_core *c = core(f);
    if (!k->check)
        return;
    k->base = c->base;
    /* No longer than it was fsynced: the data file, or the last page, has nothing behind that. */
    k->base_end = MIN(c->base_end, k->size);
    k->cut = c->cut;
    k->flags = (k->flags | CORE_BASE) & ~(uint32_t)CORE_FLUSHING;
    k->check = core_check(k, f->fid);
    sync_record(f);
}

uint64_t store_drop_all(struct file *f, bool spare)
{
    uint64_t bytes = pages_drop_from(f, 0);
    if (!f->rec->data_made)
        return bytes;
    crash_order();
    int renewed = spare ? store_pass_renew(f) : 0;
    if (renewed)
        log_error("the cache's disk: a new data file: %s", strerror(-renewed));
    lock_drop(&f->lock);
    int err = datafile_truncate(f, 0);
    if (err)
        log_error("the cache's disk: truncating a data file: %s", strerror(-err));
    lock_take(&f->lock);
    return bytes;
}

/* st_blocks: what is here, and what is still on the PFS as if it had no holes. */
static uint64_t blocks_of(const struct file *f)
{
    const struct file_record *r = f->rec;
    uint64_t base = (core(f)->base_end + PAGE - 1) / PAGE, present = r->valid - r->zero;
    return (present + (base > r->valid ? base - r->valid : 0)) * (PAGE / 512);
}

void store_info(struct file *f, struct file_info *out)
{
    lock_take(&f->lock);
    store_pass_peek(f);
    const struct file_core *c = core(f);
    *out = (struct file_info){
        .size = c->size,
        .mtime_ns = c->mtime_ns,
        .ctime_ns = c->ctime_ns,
        .blocks = blocks_of(f),
        .base = c->base,
        .base_known = c->flags & CORE_BASE,
        .base_end = c->base_end,
        .cut = c->cut,
        .dirty_bytes = f->rec->dirty * PAGE + f->pass.counted,
        .change = f->change,
        .dirty = is_dirty(f) && !store_pass_flushed(f),
        .claimed = c->flags & CORE_CLAIMED,
        .claim_inc = c->claim_inc,
        .claim_number = c->claim_number,
        .pass = is_pass(f),
        .mtime_set = c->flags & CORE_MTIME_SET,
        .racy = c->flags & CORE_RACY,
        .flushing = c->flags & CORE_FLUSHING,
        .policy = f->rec->policy,
        .leaving = f->rec->leaving,
        .loss_told = f->rec->loss_told,
    };
    lock_drop(&f->lock);
}

/* ---- versions ---- */

static void take_version(struct file_core *c, const struct version *v)
{
    c->base = *v;
    c->size = c->base_end = v->size;
    c->cut = NO_CUT;
    c->mtime_ns = v->mtime_ns;
    c->ctime_ns = v->ctime_ns;
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

/* With a RANGE_DROP on all of it.  -EBUSY: it became dirty or claimed while we waited. */
static int set_version(struct file *f, const struct version *v, const struct version *same_as)
{
    if (owes(f))
        return -EBUSY;
    if (!pages_are_of(f, v, same_as)) {
        count(stale_bytes, store_drop_all(f, true));
        f->change++;
    }
    if (owes(f))
        return -EBUSY;
    struct file_core *c = core_change(f->rec);
    take_version(c, v);
    c->flags &= ~(uint32_t)CORE_RACY;
    store_commit(f);
    pages_settle_all(f, true);
    return 0;
}

int store_set_version(struct file *f, const struct version *v, const struct version *same_as)
{
    struct range_op op;
    int err = 0;
    lock_take(&f->lock);
    if (owes(f)) {
        err = -EBUSY;
    } else if (!pages_are_of(f, v, NULL)) {
        range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
        err = set_version(f, v, same_as);
        range_end(f, &op);
    }
    lock_drop(&f->lock);
    return err;
}

void store_same_data(struct file *f, const struct version *before, const struct version *after)
{
    lock_take(&f->lock);
    const struct file_core *now = core(f);
    if ((now->flags & CORE_BASE) && version_eq(&now->base, before)) {
        struct file_core *c = core_change(f->rec);
        c->base = *after;
        c->ctime_ns = MAX(c->ctime_ns, after->ctime_ns);
        if (!is_dirty(f) || store_pass_flushed(f))
            c->mtime_ns = after->mtime_ns; /* utimens */
        store_commit(f);
    }
    lock_drop(&f->lock);
}

/* ---- claims ---- */

void store_set_claim(struct file *f, uint64_t number_inc, uint64_t number,
                     const struct version *base)
{
    struct range_op op;
    lock_take(&f->lock);
    if (base && !owes(f) && !pages_are_of(f, base, NULL)) {
        range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
        set_version(f, base, NULL); /* not if it is dirty by now: the base is what it was */
        range_end(f, &op);
    }
    struct file_core *c = core_change(f->rec);
    c->claim_inc = number_inc;
    c->claim_number = number;
    c->flags |= CORE_CLAIMED;
    store_commit(f);
    lock_drop(&f->lock);
}

/* Whole-second time stamps: another node's write within the same second could leave the same
 * version. */
static bool version_may_repeat(const struct version *v)
{
    bool whole = v->mtime_ns % 1000000000 == 0 && v->ctime_ns % 1000000000 == 0;
    return whole && real_ns() - v->ctime_ns < INT64_C(2000000000);
}

bool store_clear_claim(struct file *f, const struct version *clean_version)
{
    lock_take(&f->lock);
    bool clean = !is_dirty(f);
    if (clean) {
        struct file_core *c = core_change(f->rec);
        if (clean_version && clean_version->size == c->size) {
            take_version(c, clean_version);
            if (version_may_repeat(clean_version))
                c->flags |= CORE_RACY;
        }
        c->claim_inc = c->claim_number = 0;
        c->flags &= ~(uint32_t)(CORE_CLAIMED | CORE_FLUSHING | CORE_MTIME_SET);
        store_commit(f);
        pages_settle_all(f, true);
        /* A power loss must not bring back what another node may overwrite from now on. */
        store_uncover(f);
    }
    lock_drop(&f->lock);
    return clean;
}

void store_set_new(struct file *f, const struct version *base)
{
    struct range_op op;
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
    if (is_pass(f)) { /* before the record says so: see pass_resize in store_write.c */
        int err = datafile_resize(f, 0);
        if (err)
            log_error("the cache's disk: truncating a data file: %s", strerror(-err));
    }
    bool was_dirty = is_dirty(f);
    struct file_core *c = core_change(f->rec);
    uint64_t had =
        was_dirty ? UINT64_MAX
                  : base->size; /* a partial flush may have put more there than the version says */
    uint32_t keep = c->flags;
    take_version(c, base);
    c->size = c->base_end = 0;
    c->flags = (c->flags & ~(uint32_t)CORE_RACY) | (keep & CORE_FLUSHING);
    if (had) {
        c->cut = 0;
        c->flags |= CORE_DIRTY;
        c->mtime_ns = c->ctime_ns = real_ns();
    }
    store_commit(f);
    for (struct snapshot *s = f->snapshots; s; s = s->next)
        s->pages->cut_since = 0;
    store_uncover(f);
    store_drop_all(f, false);
    f->change++;
    range_end(f, &op);
    bool became = is_dirty(f) && !was_dirty;
    lock_drop(&f->lock);
    if (became && store.on_dirty)
        store.on_dirty(f);
}

void store_set_deleted(struct file *f)
{
    lock_take(&f->lock);
    core_change(f->rec)->flags |= CORE_DELETED;
    store_commit(f);
    pages_clean_all(f);
    pages_settle_all(f, false);
    store_pass_uncount(f);
    f->change++;
    store_uncover(f);
    lock_drop(&f->lock);
}

void store_set_policy(struct file *f, uint8_t policy)
{
    lock_take(&f->lock);
    f->rec->policy = policy;
    lock_drop(&f->lock);
}

void store_set_leaving(struct fid fid, bool leaving)
{
    struct file *f = store.open ? file_find(fid) : NULL;
    if (!f)
        return;
    lock_take(&f->lock);
    f->rec->leaving = leaving;
    lock_drop(&f->lock);
    file_put(f);
}

void store_set_reborn(struct file *f)
{
    struct range_op op;
    lock_take(&f->lock);
    f->unlinked = false;
    f->rec->leaving = false;
    if (core(f)->flags & CORE_DELETED) {
        range_begin(f, &op, RANGE_DROP, 0, UINT64_MAX);
        struct file_core *c = core_change(f->rec);
        c->flags &= CORE_CLAIMED;
        c->size = c->base_end = 0;
        c->cut = NO_CUT;
        store_commit(f);
        store_uncover(f);
        store_drop_all(f, true);
        f->change++;
        range_end(f, &op);
    }
    lock_drop(&f->lock);
}

/* ---- marks of a flush ---- */

void store_flush_begins(struct file *f)
{
    lock_take(&f->lock);
    if (!(core(f)->flags & CORE_FLUSHING)) {
        core_change(f->rec)->flags |= CORE_FLUSHING;
        store_commit(f);
        cover_flushing(f);
    }
    lock_drop(&f->lock);
}

void store_set_raised_mode(struct file *f, uint32_t mode)
{
    lock_take(&f->lock);
    core_change(f->rec)->raised_mode = mode;
    store_commit(f);
    lock_drop(&f->lock);
}

bool store_raised_mode(struct file *f, uint32_t *mode)
{
    lock_take(&f->lock);
    *mode = core(f)->raised_mode;
    lock_drop(&f->lock);
    return *mode != STORE_NO_MODE;
}

/* ---- the whole ---- */

int store_each_claimed(int (*cb)(void *arg, struct file *f), void *arg)
{
    size_t n;
    struct fid *fids = state_busy(&n);
    int err = 0;
    for (size_t i = 0; i < n && !err; i++) {
        struct file *f = file_find(fids[i]);
        if (!f)
            continue;
        lock_take(&f->lock);
        bool still = core_busy(core(f));
        lock_drop(&f->lock);
        if (still)
            err = cb(arg, f);
        file_put(f);
    }
    free(fids);
    return err;
}

void store_usage(struct store_usage *out)
{
    *out = (struct store_usage){.files = state_files(),
                                .chunks = state_chunks(),
                                .pinned = store_pass_pinned(),
                                .ballast = ballast_size() - ballast_owed()};
    space_usage(out);
}
