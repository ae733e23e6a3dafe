/* store_pass.c - files whose data file applications read and write through the kernel (FUSE
 * passthrough): this daemon sees them opened and closed, and nothing in between.
 *
 *     pass_open (write)   "may be dirty" (CORE_PASS) is in the record before the open is answered.
 *         |               From then on the data file itself is the record: all of it is here, its
 *         |               length is the file's size, its time stamps say whether somebody stored.
 *     look                a sample: size, mtime, ctime.  Another one than the last: the file changed
 *         |
 *     mark                a copy-out begins: a sample, the data file's pages written back (a mapping's
 *         |               next store moves ctime then), and each chunk whose hash is not the one that
 *         |               is on the PFS is marked dirty, as if it had been written here
 *     copy-out            as always (store_copyout.c)
 *         |
 *     settle              the same sample as before it: the hashes of what was copied are those on the
 *                         PFS.  And nobody is left who can store, and still the same sample: clean.
 *                         Else the flush counts ("flushed"), but the file stays "may be dirty", and
 *                         the next change makes it dirty again.
 *
 * This is docs/protocol.md, F3 to F7, with F5 under f->lock, which opens take too.  A hash counts
 * only if the sample was the same from before it was made to after the bytes were on the PFS.
 *
 * A data file with live descriptors or mappings is never evicted and never emptied for a new
 * version (who reads it would get zeros): the new version gets a data file of its own, and `life`
 * tells the two apart.  That somebody may have a mapping left is in the record (`passed`), so that
 * it outlives the daemon, until a lease proves that nobody has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "placement/store_int.h"
#include "transport/hash.h"

/* of a local file system's clock: a sample this young proves nothing */
#define GRAIN_NS  INT64_C(10000000)
#define DIRECT_NS INT64_C(1000000000) /* an O_DIRECT write lasts less: no barrier waits for it */

struct pass_hash {
    uint64_t index, hash;
};

static struct {
    struct lock lock; /* RANK_LEAF: the list, which holds a reference to each of its files */
    struct file *list;
    unsigned n;
    void (*wake)(void);
    void (*changed)(struct file *f);
    _Atomic uint64_t pinned;
    _Atomic unsigned open; /* files with descriptors */
} pass = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* ---- samples ---- */

static int64_t ns_of(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool same_sample(const struct pass_sample *a, const struct pass_sample *b)
{
    return a->known && b->known && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

/* Blocks of the data file that no page of the records stands for: counted, so that limits hold. */
static void count_blocks(struct file *f, const struct stat *st)
{
    if (core(f)->flags & CORE_DELETED)
        return;
    uint64_t pages = (f->rec->valid - f->rec->zero) * PAGE, blocks = (uint64_t)st->st_blocks * 512;
    uint64_t extra = is_pass(f) && blocks > pages ? blocks - pages : 0;
    space_count((int64_t)(extra - f->pass.counted), (int64_t)(extra - f->pass.counted));
    f->pass.counted = extra;
}

static bool take_sample(struct file *f, struct pass_sample *s)
{
    struct stat st;
    int err = datafile_stat(f, &st);
    if (err) {
        log_error("the cache's disk: a data file's attributes: %s", strerror(-err));
        return false;
    }
    *s = (struct pass_sample){(uint64_t)st.st_size, ns_of(st.st_mtim), ns_of(st.st_ctim), true};
    count_blocks(f, &st);
    return true;
}

/* Somebody stored: size and times are what the data file says.  It only grows so; what shrinks it
 * comes by store_truncate. */
static void took_changes(struct file *f, const struct pass_sample *s)
{
    struct file_core *c = core_change(f->rec);
    if (s->mtime_ns != f->pass.seen.mtime_ns || s->size != f->pass.seen.size) {
        c->mtime_ns = s->mtime_ns;
        c->flags &= ~(uint32_t)CORE_MTIME_SET;
    }
    c->size = MAX(c->size, s->size);
    c->ctime_ns = MAX(c->ctime_ns, s->ctime_ns);
    store_commit(f);
    store_changed(f);
}

/* utimens came after the last store, and the daemon died: the time that it set still holds. */
static bool time_was_set_last(const struct file *f, const struct pass_sample *now)
{
    const struct file_core *c = core(f);
    return (c->flags & CORE_MTIME_SET) && now->mtime_ns <= c->ctime_ns && now->size <= c->size;
}

bool store_pass_look(struct file *f)
{
    struct pass_sample now;
    if (!is_pass(f))
        return false;
    if (!take_sample(f, &now)) {
        f->pass.seen.known = false; /* nothing is proved any more: it counts as changed */
        return false;
    }
    if (same_sample(&now, &f->pass.seen))
        return false;
    bool first = !f->pass.seen.known;
    if (first) /* after a start: all of it may be news */
        f->pass.seen.mtime_ns = now.mtime_ns;
    if (first && time_was_set_last(f, &now))
        f->pass.seen.size = now.size;
    took_changes(f, &now);
    f->pass.seen = now;
    return true;
}

void store_pass_peek(struct file *f)
{
    if (!f->pass.closed)
        store_pass_look(f);
}

bool store_pass_flushed(const struct file *f)
{
    return is_pass(f) && f->pass.seen.known && f->pass.flushed == f->change && !f->rec->dirty &&
           core(f)->cut == NO_CUT;
}

/* ---- who has it ---- */

bool store_pass_holds(struct file *f)
{
    if (f->pass.opens)
        return true;
    if (f->rec->passed && datafile_alone(f))
        f->rec->passed = 0;
    return f->rec->passed;
}

static void pin(struct file *f)
{
    if (f->pass.opens++)
        return;
    atomic_fetch_add(&pass.open, 1);
    f->pass.pinned = core(f)->size;
    atomic_fetch_add(&pass.pinned, f->pass.pinned);
}

static void unpin(struct file *f)
{
    if (--f->pass.opens)
        return;
    atomic_fetch_sub(&pass.open, 1);
    atomic_fetch_sub(&pass.pinned, f->pass.pinned);
    f->pass.pinned = 0;
}

uint64_t store_pass_pinned(void)
{
    return atomic_load(&pass.pinned);
}

unsigned store_pass_open_files(void)
{
    return atomic_load(&pass.open);
}

/* ---- opening ---- */

static bool is_whole(struct file *f)
{
    const struct file_core *c = core(f);
    if (is_pass(f))
        return true;
    if (!(c->flags & CORE_BASE) || c->flags & CORE_DELETED)
        return false;
    uint64_t end = MIN(c->size, c->base_end);
    return !end || pages_find(f, 0, last_page(0, end), BITS_VALID, false) > last_page(0, end);
}

/* On the list of those that are sampled, until nobody can store into it any more. */
static void watch(struct file *f)
{
    file_ref(f);
    lock_take(&pass.lock);
    bool listed = f->pass.prev;
    if (!listed) {
        f->pass.next = pass.list;
        f->pass.prev = &pass.list;
        if (f->pass.next)
            f->pass.next->pass.prev = &f->pass.next;
        pass.list = f;
        pass.n++;
    }
    void (*wake)(void) = pass.wake;
    lock_drop(&pass.lock);
    if (listed)
        file_put(f);
    else if (wake)
        wake();
}

static void wake_sampler(void)
{
    lock_take(&pass.lock);
    void (*wake)(void) = pass.wake;
    lock_drop(&pass.lock);
    if (wake)
        wake();
}

static void unwatch(struct file *f)
{
    lock_take(&pass.lock);
    bool listed = f->pass.prev;
    if (listed) {
        *f->pass.prev = f->pass.next;
        if (f->pass.next)
            f->pass.next->pass.prev = f->pass.prev;
        f->pass.prev = NULL;
        pass.n--;
    }
    lock_drop(&pass.lock);
    if (listed)
        file_put(f);
}

/* With a range on all of it: nothing is being put in or taken out. */
static int begin_pass(struct file *f, bool write, int *fd)
{
    if (!is_whole(f))
        return -ENODATA;
    if (!f->pass.opens && !space_pins(store_pass_pinned(), core(f)->size, write))
        return -ENOSPC;
    int err = is_pass(f) ? 0 : datafile_resize(f, core(f)->size);
    if (!err)
        err = datafile_open_again(f, fd);
    if (err)
        return err;
    f->rec->passed = 1;
    crash_order();
    if (write && !is_pass(f)) {
        bool was_dirty = is_dirty(f);
        core_change(f->rec)->flags |= CORE_PASS | CORE_DIRTY;
        store_commit(f);
        take_sample(f, &f->pass.seen);
        f->pass.flushed = was_dirty ? f->change - 1 : f->change;
        if (f->rec->covered.check) /* what was fsynced stays so */
            err = store_cover(f);
    }
    if (err)
        close(*fd);
    return err;
}

static void settle_unflushed(struct file *f);

int store_pass_open(struct file *f, bool write, int *fd, unsigned *life)
{
    struct range_op op;
    lock_take(&f->lock);
    /* a chunk that is read for another node must not change meanwhile: from now on it is not handed
     * out */
    range_begin(f, &op, write ? RANGE_WRITE : RANGE_READ, 0, UINT64_MAX);
    int err = begin_pass(f, write, fd);
    if (err && is_pass(f))
        settle_unflushed(f);
    if (!err) {
        pin(f);
        f->pass.writers += write;
        f->pass.closed &= !write;
        *life = f->pass.life;
    }
    range_end(f, &op);
    lock_drop(&f->lock);
    if (!err && write)
        watch(f);
    else if (!err)
        wake_sampler();
    return err;
}

void store_pass_make_room(void)
{
    space_keep_free();
}

void store_pass_direct(struct file *f)
{
    lock_take(&f->lock);
    f->pass.direct = true;
    lock_drop(&f->lock);
}

/* ---- clean again ---- */

/* F5: nobody can store any more, and nobody has since the flush. */
static bool nobody_stores(struct file *f)
{
    return !f->pass.writers && datafile_unwritten(f) && !store_pass_look(f) && f->pass.seen.known;
}

void store_pass_uncount(struct file *f)
{
    space_count(-(int64_t)f->pass.counted, -(int64_t)f->pass.counted);
    f->pass.counted = 0;
}

static void end_pass(struct file *f, bool clean)
{
    struct file_core *c = core_change(f->rec);
    c->flags &= ~(uint32_t)CORE_PASS;
    if (clean)
        c->flags &= ~(uint32_t)CORE_DIRTY;
    store_commit(f);
    f->pass.seen.known = false;
    f->pass.closed = false;
    store_pass_uncount(f);
}

/* Nothing came since the last flush that counted, and nothing more can come: no flush is owed. */
static void settle_unflushed(struct file *f)
{
    store_pass_look(f);
    if (store_pass_flushed(f) && !f->snapshots && nobody_stores(f))
        end_pass(f, true);
}

void store_pass_close(struct file *f, unsigned life, bool write)
{
    lock_take(&f->lock);
    if (life == f->pass.life) {
        unpin(f);
        f->pass.writers -= write;
    }
    if (!f->pass.writers)
        f->pass.direct = false;
    if (is_pass(f) && (write || !f->pass.closed)) /* closed: nothing came since the last look */
        settle_unflushed(f);
    bool dirty = write && is_dirty(f) && !store_pass_flushed(f);
    lock_drop(&f->lock);
    if (dirty && pass.changed)
        pass.changed(f);
}

int store_pass_renew(struct file *f)
{
    if (!store_pass_holds(f))
        return 0;
    int err = datafile_replace(f);
    if (err)
        return err;
    f->rec->passed = 0;
    f->pass.life++;
    while (f->pass.opens)
        unpin(f);
    f->pass.writers = 0;
    return 0;
}

/* ---- flushing ---- */

/* F4: until a store from then on would show in ctime. */
static void wait_for_clock(const struct pass_sample *s, bool direct)
{
    int64_t age = real_ns() - s->ctime_ns, wait = (direct ? DIRECT_NS : GRAIN_NS) - age;
    if (age >= 0 && wait > 0)
        nanosleep(&(struct timespec){.tv_nsec = MIN(wait, INT64_C(999999999))}, NULL);
}

/* Is the chunk on the PFS as it is here? */
static bool is_on_pfs(struct file *f, uint64_t index, uint64_t hash)
{
    struct chunk_record *c = state_chunk_find(f->fid, index);
    return c && (c->flags & CHUNK_HASH) && c->hash == hash && !(c->flags & CHUNK_WRITTEN) &&
           !bits_any(chunk_bits(c, BITS_DIRTY, state_words())) &&
           core(f)->base_end >= MIN((index + 1) * store_chunk_size(), core(f)->size);
}

static bool is_zeros(const uint8_t *buf, size_t len)
{
    return !buf[0] && !memcmp(buf, buf + 1, len - 1);
}

/* Pages [first, last] of one chunk become dirty; those without bytes beyond what the PFS has stay
 * holes. */
static int mark_chunk(struct file *f, uint64_t index, const uint8_t *buf, size_t len, uint64_t hash)
{
    uint64_t chunk = store_chunk_size(), first = index * state_pages(),
             last = last_page(index * chunk, len);
    int err = space_reserve(0, 1);
    if (err)
        return err;
    struct range_op op;
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_WRITE, first, last);
    uint32_t made = 0;
    if (!is_on_pfs(f, index, hash) && index * chunk < core(f)->size) {
        last = MIN(last, page_of(core(f)->size - 1));
        made = pages_begin_write(f, first, last);
        pages_end_write(f, first, last);
        for (uint64_t p = first; p <= last; p++)
            if (is_zeros(buf + (p - first) * PAGE, MIN(len - (p - first) * PAGE, (size_t)PAGE)))
                pages_end_punch(f, p, p);
        f->pass.hashes = xrealloc(f->pass.hashes, (f->pass.nhashes + 1) * sizeof(*f->pass.hashes));
        f->pass.hashes[f->pass.nhashes++] = (struct pass_hash){index, hash};
    }
    range_end(f, &op);
    lock_drop(&f->lock);
    space_return(0, 1 - made);
    return 0;
}

static int mark_chunks(struct file *f, uint64_t size, uint8_t *buf, int (*gate)(void *arg),
                       void *arg)
{
    uint64_t chunk = store_chunk_size();
    for (uint64_t i = 0; i * chunk < size; i++) {
        size_t len = (size_t)MIN(chunk, size - i * chunk);
        int err = gate ? gate(arg) : 0;
        if (!err)
            err = datafile_pread(f, buf, len, i * chunk);
        if (err)
            return err;
        uint64_t hash = data_hash(buf, len);
        lock_take(&f->lock);
        bool there = is_on_pfs(f, i, hash);
        lock_drop(&f->lock);
        if (!there)
            err = mark_chunk(f, i, buf, len, hash);
        if (err)
            return err;
    }
    return 0;
}

void store_pass_drop(struct file *f)
{
    free(f->pass.hashes);
    f->pass.hashes = NULL;
    f->pass.nhashes = 0;
}

/* F4.  A sample from which on every store shows: the clock has moved on since its ctime, writes
 * that had begun before have ended, mapped pages are write-protected; and no store came meanwhile,
 * which could have done what it shows before all that was so. */
static int solid_sample(struct file *f, const struct pass_sample *seen, bool direct)
{
    wait_for_clock(seen, direct);
    lock_take(&f->lock);
    bool quiet = !f->pass.writers && datafile_unwritten(f);
    lock_drop(&f->lock);
    if (quiet) /* nothing is under way, and nothing is mapped: most small files */
        return 0;
    int err = datafile_barrier(f);
    return err ? err : datafile_sync(f);
}

int store_pass_mark(struct file *f, int (*gate)(void *arg), void *arg)
{
    lock_take(&f->lock);
    bool any = is_pass(f) && (store_pass_look(f) || !store_pass_flushed(f));
    struct pass_sample seen = f->pass.seen;
    bool direct = f->pass.direct;
    store_pass_drop(f);
    lock_drop(&f->lock);
    if (!any)
        return 0;
    watch(f);
    int err = solid_sample(f, &seen, direct);
    if (err)
        return err;
    lock_take(&f->lock);
    store_pass_look(f);
    f->pass.marked = f->change;
    f->pass.solid = same_sample(&seen, &f->pass.seen) && direct == f->pass.direct;
    uint64_t size = core(f)->size;
    lock_drop(&f->lock);
    uint8_t *buf = xmalloc(MIN(size, (uint64_t)store_chunk_size()) + 1);
    err = mark_chunks(f, size, buf, gate, arg);
    free(buf);
    return err;
}

static void keep_hashes(struct file *f)
{
    for (size_t i = 0; i < f->pass.nhashes; i++) {
        struct chunk_record *c = state_chunk_find(f->fid, f->pass.hashes[i].index);
        if (!c || bits_any(chunk_bits(c, BITS_DIRTY, state_words())))
            continue;
        c->hash = f->pass.hashes[i].hash;
        crash_order();
        c->flags |= CHUNK_HASH;
    }
}

bool store_pass_settle(struct file *f, bool clean)
{
    if (!is_pass(f))
        return clean;
    if (store_pass_look(f) || !f->pass.seen.known || f->change != f->pass.marked || !f->pass.solid)
        clean = false;
    if (clean) {
        keep_hashes(f);
        f->pass.flushed = f->change;
    }
    store_pass_drop(f);
    if (clean && nobody_stores(f))
        end_pass(f, false); /* store_flushed does the rest */
    return clean;
}

/* ---- watching ---- */

void store_on_pass(void (*wake)(void), void (*changed)(struct file *f))
{
    lock_take(&pass.lock);
    pass.wake = wake;
    pass.changed = changed;
    lock_drop(&pass.lock);
}

/* Malloc'd. */
static struct fid *watched(unsigned *n)
{
    lock_take(&pass.lock);
    struct fid *fids = xcalloc(pass.n + 1, sizeof(*fids));
    *n = 0;
    for (struct file *f = pass.list; f; f = f->pass.next)
        fids[(*n)++] = f->fid;
    lock_drop(&pass.lock);
    return fids;
}

/* Nobody can store into it, or what is stored does not matter any more. */
static bool is_over(const struct file *f)
{
    return !is_pass(f) || core(f)->flags & CORE_DELETED;
}

enum look {
    LOOK_AGAIN,
    LOOK_CLOSED, /* dirty, but only an open that this daemon sees can change it: thousands of small
                  * files wait so for the lull */
    LOOK_OVER
};

/* With f->lock. */
static enum look look_further(struct file *f, bool news)
{
    if (is_over(f))
        return LOOK_OVER;
    f->pass.closed = !news && nobody_stores(f);
    return f->pass.closed ? LOOK_CLOSED : LOOK_AGAIN;
}

/* Looks at one; true: it is to be looked at again. */
static bool sample_one(struct file *f, void (*changed)(struct file *f),
                       void (*settled)(struct file *f))
{
    lock_take(&f->lock);
    store_pass_look(f);
    bool news = f->change != f->pass.sampled; /* others look too */
    f->pass.sampled = f->change;
    if (store_pass_flushed(f) && !f->pass.writers)
        settle_unflushed(f);
    enum look next = look_further(f, news);
    bool dirty = is_dirty(f) && !store_pass_flushed(f);
    lock_drop(&f->lock);
    if (news && dirty && next != LOOK_OVER)
        changed(f);
    else if (dirty && next != LOOK_OVER)
        store_tell_dirty(f, true);
    if (next == LOOK_AGAIN)
        return true;
    if (next == LOOK_OVER)
        settled(f);
    unwatch(f);
    lock_take(&f->lock); /* it may have been opened meanwhile, and found on the list */
    bool again = !is_over(f) && (next == LOOK_OVER || f->pass.writers);
    lock_drop(&f->lock);
    if (again)
        watch(f);
    return again;
}

unsigned store_pass_sample(void (*changed)(struct file *f), void (*settled)(struct file *f))
{
    unsigned n, left = 0;
    struct fid *fids = watched(&n);
    for (unsigned i = 0; i < n; i++) {
        struct file *f = file_find(fids[i]);
        if (!f)
            continue;
        left += sample_one(f, changed, settled);
        file_put(f);
    }
    free(fids);
    if (n)
        space_watch();
    return left;
}

void store_pass_forget(void)
{
    unsigned n;
    struct fid *fids = watched(&n);
    for (unsigned i = 0; i < n; i++) {
        struct file *f = file_find(fids[i]);
        if (f) {
            unwatch(f);
            file_put(f);
        }
    }
    free(fids);
}
