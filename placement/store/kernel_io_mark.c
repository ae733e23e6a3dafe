/* kernel_io_mark.c - the copy-out of a file that the kernel's writers may change at any time.  Before it,
 * what changed is found by hashes and marked dirty; where there are no bytes, nothing is looked at.  After it,
 * it is decided which of these hashes count.
 * (F4 to F6 of docs/protocol.md; the head of kernel_io.c tells the whole.)
 */
#include "placement/store/datafile.h"
#include "placement/store/datafile_kernel_io.h"
#include "placement/store/kernel_io.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "placement/store/kernel_io_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/hash.h"

struct kernel_io_hash {
    uint64_t index, hash;
    bool copied; /* made of the bytes that went to the PFS; else of those that were marked */
};

/* F4: waits until any later store would show in ctime. */
static void wait_for_clock(const struct kernel_io_sample *s)
{
    int64_t age = real_ns() - s->ctime_ns, wait = STORE_GRAIN_NS - age;
    if (age >= 0 && wait > 0)
        nanosleep(&(struct timespec){.tv_nsec = wait}, NULL);
}

/* Has the PFS the chunk as it is here? */
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

static void add_hash(struct file *f, uint64_t index, uint64_t hash, bool copied)
{
    f->kernel_io.hashes = xrealloc(f->kernel_io.hashes, (f->kernel_io.nhashes + 1) * sizeof(*f->kernel_io.hashes));
    f->kernel_io.hashes[f->kernel_io.nhashes++] = (struct kernel_io_hash){index, hash, copied};
}

/* Which of the chunk's pages at off are zeros without blocks in the data file.  Without f->lock, as a look
 * for data waits for writers.  A write of such a page since then shows in the next sample.  Malloc'd. */
static bool *find_holes(struct file *f, uint64_t off, const uint8_t *buf, size_t len)
{
    bool *holes = xcalloc(len / PAGE + 1, sizeof(*holes));
    uint64_t data = 0, hole = 0;
    for (size_t at = 0; at < len; at += PAGE) {
        size_t n = MIN(len - at, (size_t)PAGE);
        if (!is_zeros(buf + at, n))
            continue;
        if (off + at >= hole)
            datafile_extent(f, off + at, &data, &hole);
        holes[at / PAGE] = off + at + n <= data;
    }
    return holes;
}

/* What a mark does with a page. */
enum { LEFT, WRITTEN, EMPTIED };

/* A hole needs nothing, unless the PFS has bytes there, or had, as the record of the page says. */
static int fate_of(const struct chunk_record *c, uint32_t bit, bool hole)
{
    uint32_t words = state_words();
    struct chunk_record *r = (struct chunk_record *)c;
    if (!hole)
        return WRITTEN;
    bool has_bytes = r && bit_get(chunk_bits(r, BITS_VALID, words), bit) &&
                     !bit_get(chunk_bits(r, BITS_ZERO, words), bit);
    return has_bytes ? EMPTIED : LEFT;
}

/* Marks pages [first, last] of one chunk.  Returns how many chunk records were made.  With f->lock and a
 * WRITE op. */
static uint32_t mark_pages(struct file *f, uint64_t first, uint64_t last, const bool *holes)
{
    uint32_t made = 0;
    uint64_t until;
    for (uint64_t p = first; p <= last; p = until + 1) {
        struct chunk_record *c = state_chunk_find(f->fid, first / state_pages());
        int fate = fate_of(c, (uint32_t)(p - first), holes[p - first]);
        until = p;
        while (until < last && fate == fate_of(c, (uint32_t)(until + 1 - first), holes[until + 1 - first]))
            until++;
        if (fate == LEFT)
            continue;
        made += pages_begin_write(f, p, until);
        if (fate == EMPTIED)
            pages_end_punch(f, p, until);
        else
            pages_end_write(f, p, until);
    }
    return made;
}

/* Pages that may have changed become dirty. */
static int mark_chunk(struct file *f, uint64_t index, const uint8_t *buf, size_t len, uint64_t hash)
{
    uint64_t chunk = store_chunk_size(), first = index * state_pages(),
             last = last_page(index * chunk, len);
    /* a file that is longer than the cache may be still has to be flushed */
    int err = space_reserve(0, 1, SPACE_DISK);
    if (err)
        return err;
    bool *holes = find_holes(f, index * chunk, buf, len);
    struct range_op op;
    lock_take(&f->lock);
    range_begin(f, &op, RANGE_WRITE, first, last);
    uint32_t made = 0;
    if (!is_on_pfs(f, index, hash) && index * chunk < core(f)->size) {
        made = mark_pages(f, first, MIN(last, page_of(core(f)->size - 1)), holes);
        add_hash(f, index, hash, false);
    }
    range_end(f, &op);
    lock_drop(&f->lock);
    free(holes);
    space_return(0, 1 - made);
    return 0;
}

/* ---- which chunks ---- */

/* A walk over the chunks that have bytes: in the data file, or in the records, and so on the PFS.  All others
 * are holes in both, however many there are. */
struct walk {
    struct file *f;
    uint64_t *recorded; /* chunks that had bytes in the records when the walk began; in order */
    size_t n, at;
    uint64_t data, hole; /* the data file has bytes from data to hole, and none before that */
};

static bool has_bytes(struct chunk_record *c)
{
    const uint64_t *valid = chunk_bits(c, BITS_VALID, state_words());
    const uint64_t *zero = chunk_bits(c, BITS_ZERO, state_words());
    for (uint32_t w = 0; w < state_words(); w++)
        if (valid[w] & ~zero[w])
            return true;
    return false;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void walk_begin(struct walk *w, struct file *f)
{
    struct chunk_record *c;
    size_t room = 0;
    *w = (struct walk){.f = f};
    lock_take(&f->lock);
    for (uint32_t no = f->rec->first_chunk; (c = state_chunk_at(no)); no = c->file_next) {
        if (!has_bytes(c))
            continue;
        if (w->n == room)
            w->recorded = xrealloc(w->recorded, (room = room * 2 + 16) * sizeof(*w->recorded));
        w->recorded[w->n++] = c->index;
    }
    lock_drop(&f->lock);
    if (w->n)
        qsort(w->recorded, w->n, sizeof(*w->recorded), by_number);
}

static void walk_end(struct walk *w)
{
    free(w->recorded);
}

/* The first chunk with bytes from `index` on, which grows from call to call; UINT64_MAX: there is none. */
static uint64_t walk_next(struct walk *w, uint64_t index)
{
    uint64_t chunk = store_chunk_size(), off = index * chunk;
    if (off >= w->hole)
        datafile_extent(w->f, off, &w->data, &w->hole);
    while (w->at < w->n && w->recorded[w->at] < index)
        w->at++;
    uint64_t data = w->data == UINT64_MAX ? UINT64_MAX : MAX(off, w->data) / chunk;
    return MIN(data, w->at < w->n ? w->recorded[w->at] : UINT64_MAX);
}

static int mark_chunks(struct walk *walk, uint64_t size, uint8_t *buf, int (*gate)(void *arg),
                       void *arg)
{
    struct file *f = walk->f;
    uint64_t chunk = store_chunk_size(), chunks = (size + chunk - 1) / chunk;
    for (uint64_t i = 0; (i = walk_next(walk, i)) < chunks; i++) {
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

void kernel_io_drop(struct file *f)
{
    free(f->kernel_io.hashes);
    f->kernel_io.hashes = NULL;
    f->kernel_io.nhashes = 0;
}

static int sync_pages(struct file *f)
{
    lock_take(&f->lock);
    int err = store_sync_data(f);
    lock_drop(&f->lock);
    return err;
}

/* With f->lock. */
void kernel_io_cut(struct file *f, uint64_t cut)
{
    size_t n = 0;
    for (size_t i = 0; i < f->kernel_io.nhashes; i++)
        if ((f->kernel_io.hashes[i].index + 1) * store_chunk_size() <= cut)
            f->kernel_io.hashes[n++] = f->kernel_io.hashes[i];
    f->kernel_io.nhashes = n;
}

/* F4.  Makes sure that every store after the sample `seen` shows: the clock has moved on since its ctime,
 * writes that had begun before have ended, and mapped pages are write-protected.  The caller then checks that
 * no store came meanwhile: it could have moved the time stamps before all this was so. */
static int solid_sample(struct file *f, const struct kernel_io_sample *seen)
{
    wait_for_clock(seen);
    lock_take(&f->lock);
    bool quiet = !f->kernel_io.writers && datafile_unwritten(f);
    lock_drop(&f->lock);
    if (quiet) /* nothing is under way, and nothing is mapped: most small files */
        return 0;
    int err = datafile_barrier(f);
    return err ? err : sync_pages(f);
}

int kernel_io_mark(struct file *f, int (*gate)(void *arg), void *arg)
{
    lock_take(&f->lock);
    bool any = has_kernel_io(f) && (kernel_io_look(f) || !kernel_io_flushed(f));
    struct kernel_io_sample seen = f->kernel_io.seen;
    kernel_io_drop(f);
    lock_drop(&f->lock);
    if (!any)
        return 0;
    kernel_io_watch(f);
    int err = solid_sample(f, &seen);
    if (err)
        return err;
    lock_take(&f->lock);
    kernel_io_look(f);
    f->kernel_io.marked = f->change;
    f->kernel_io.solid = kernel_io_same_sample(&seen, &f->kernel_io.seen);
    uint64_t size = core(f)->size;
    lock_drop(&f->lock);
    uint8_t *buf = xmalloc(MIN(size, (uint64_t)store_chunk_size()) + 1);
    struct walk walk;
    walk_begin(&walk, f);
    err = mark_chunks(&walk, size, buf, gate, arg);
    walk_end(&walk);
    free(buf);
    return err;
}

/* ---- after a power loss ---- */

bool store_hole_owed(struct file *f, uint64_t from, uint64_t *off, uint64_t *len)
{
    lock_take(&f->lock);
    uint64_t size = core(f)->size;
    bool owed = has_kernel_io(f) && !f->rec->whole;
    lock_drop(&f->lock);
    while (owed && from < size) {
        uint64_t data, hole;
        datafile_extent(f, from, &data, &hole);
        if (data > from) {
            *off = from;
            *len = MIN(data, size) - from;
            return true;
        }
        from = hole;
    }
    return false;
}

/* ---- what counts ---- */

/* Is what was hashed by the mark still what is here? */
static bool marks_count(struct file *f)
{
    return !kernel_io_look(f) && f->kernel_io.seen.known && f->change == f->kernel_io.marked &&
           f->kernel_io.solid;
}

/* So only hashes count that are made of the copied bytes themselves. */
bool kernel_io_needs_copy(struct file *f)
{
    return has_kernel_io(f) && !marks_count(f);
}

void kernel_io_copied(struct file *f, const void *buf, size_t len, uint64_t off, uint64_t size)
{
    uint64_t chunk = store_chunk_size(), first = (off + chunk - 1) / chunk, end = off + len;
    lock_take(&f->lock);
    bool needed = kernel_io_needs_copy(f);
    lock_drop(&f->lock);
    for (uint64_t i = first; needed && i * chunk < end; i++) {
        size_t n = (size_t)MIN(chunk, end - i * chunk);
        if (n < chunk && end < size)
            break; /* a part of one */
        uint64_t hash = data_hash((const uint8_t *)buf + (i * chunk - off), n);
        lock_take(&f->lock);
        add_hash(f, i, hash, true);
        lock_drop(&f->lock);
    }
}

static void keep_hashes(struct file *f, bool copied)
{
    for (size_t i = 0; i < f->kernel_io.nhashes; i++) {
        const struct kernel_io_hash *h = &f->kernel_io.hashes[i];
        struct chunk_record *c = state_chunk_find(f->fid, h->index);
        if (h->copied != copied || !c || bits_any(chunk_bits(c, BITS_DIRTY, state_words())))
            continue;
        c->hash = h->hash;
        crash_order();
        c->flags |= CHUNK_HASH;
    }
}

bool kernel_io_conclude(struct file *f, bool clean)
{
    if (!has_kernel_io(f))
        return clean;
    clean = marks_count(f) && clean;
    if (clean) {
        keep_hashes(f, false);
        f->kernel_io.flushed = f->change;
    } else if (core(f)->cut == NO_CUT) {
        /* the bytes here may have changed, but the PFS has what was copied: the next flush leaves out
         * what is still the same */
        keep_hashes(f, true);
    }
    kernel_io_drop(f);
    if (clean && kernel_io_nobody_stores(f))
        kernel_io_end(f, false); /* store_flushed does the rest */
    return clean;
}
