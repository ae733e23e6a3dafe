/* store_recover.c - start: repairs what the last daemon left.
 *
 * After the daemon's death (same boot) the records are as it left them, at worst in the middle of a
 * change (pages.c tells the orders).  Pages whose write was never acknowledged are dropped, and so is
 * what a truncation cut off.
 *
 * After a power loss the records and the data files are as old or new as the kernel happened to
 * write them.  Only what an fsync covered is known: the covered core with the dirty pages that are
 * covered.  So:
 *
 *   clean pages           dropped: they are on the PFS
 *
 *   dirty, covered        kept, in the state of that fsync; what came after it is lost and named
 *
 *   dirty, never covered  "suspect": moved to suspect/ and named, kept, never flushed
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "placement/store/datafile.h"
#include "placement/store/datafile_kernel_io.h"
#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "transport/fid.h"

struct recovery {
    const struct state_report *rep;
    int err; /* the first one: the store does not open, nothing more is touched */
};

/* pages.c needs a struct file: makes one that is not in the table. */
static void borrow(struct file *f, struct file_record *r)
{
    *f = (struct file){.fid = r->fid, .rec = r, .data_fd = -1, .hollow = pages_hollow(r)};
}

static const char *name_of(const struct file_record *r, char path[STATE_PATH_MAX + 1])
{
    char hex[FID_TEXT];
    if (!state_path_get(r, path))
        snprintf(path, STATE_PATH_MAX, "(fid %s)", fid_text(r->fid, hex));
    return path;
}

static int punch(struct file *f, uint64_t first, uint64_t last)
{
    return datafile_punch(f, first * PAGE, (last - first + 1) * PAGE);
}

static void forget(struct file *f)
{
    pages_drop_from(f, 0);
    state_busy_set(f->rec, false);
    datafile_close(f);
    int err = f->rec->data_made ? datafile_remove(f->fid) : 0;
    if (err)
        log_warn("a data file can not be removed from the cache: %s", strerror(-err));
    state_file_free(f->rec);
}

/* ---- after the daemon's death ---- */

/* Drops pages whose write began and was never acknowledged.  Their bytes go first: if this start dies here,
 * the records tell the next one what to repeat. */
static int drop_begun(struct file *f, struct chunk_record *c, bool *any)
{
    uint32_t pages = state_pages(), words = state_words();
    uint64_t *dirty = chunk_bits(c, BITS_DIRTY, words), *valid = chunk_bits(c, BITS_VALID, words);
    for (uint32_t i = 0; i < pages; i++)
        if (bit_get(dirty, i) && !bit_get(valid, i)) {
            uint64_t page = c->index * pages + i;
            int err = punch(f, page, page);
            if (err)
                return err;
            pages_fail_write(f, page, page);
            *any = true;
            if (!bits_any(dirty) && !bits_any(valid))
                break; /* the record is gone */
        }
    return 0;
}

static int repair_chunks(struct file *f, bool *any)
{
    struct chunk_record *c;
    uint32_t pages = state_pages(), words = state_words();
    int err = 0;
    for (uint32_t no = f->rec->first_chunk, next; !err && (c = state_chunk_at(no)); no = next) {
        next = c->file_next;
        if (bits_any(chunk_bits(c, BITS_DIRTY, words))) {
            err = drop_begun(f, c, any);
        } else if (!bits_any(chunk_bits(c, BITS_VALID, words))) {
            err = punch(f, c->index * pages,
                        c->index * pages + pages - 1); /* a fill or an eviction was under way */
            if (!err)
                pages_release(f, c);
            *any = true;
        }
    }
    return err;
}

/* The data file is longer than the record says if it was written since the last sample.  It is shorter if a
 * truncation was under way, which cuts the data file first (pass_resize in store_resize.c).  A writer may
 * have made it longer again since.  So it is not known where it was cut, and need not be: the chunks' hashes
 * show what changed. */
static void take_length(struct file *f, uint64_t size)
{
    struct file_core *c = core_change(f->rec);
    if (size < c->size) {
        struct chunk_record *last = state_chunk_find(f->fid, page_of(size) / state_pages());
        if (last)
            last->flags = (uint16_t)(last->flags & ~CHUNK_HASH);
        c->cut = MIN(c->cut, size);
        c->base_end = MIN(c->base_end, size);
    }
    c->size = size;
    store_commit(f);
}

/* The kernel served writers of the file, and may still: all that its data file has counts. */
static void repair_kernel_io(struct file *f)
{
    struct stat st;
    struct chunk_record *c;
    int err = datafile_stat(f, &st);
    if (err && err != -ENOENT)
        log_error("the cache's disk: a data file's attributes: %s", strerror(-err));
    for (uint32_t no = f->rec->first_chunk; (c = state_chunk_at(no)); no = c->file_next) {
        uint64_t *dirty = chunk_bits(c, BITS_DIRTY, state_words());
        for (uint32_t i = 0; i < state_pages(); i++)
            if (bit_get(dirty, i)) /* marked for a flush: its bytes are there */
                pages_end_write(f, c->index * state_pages() + i, c->index * state_pages() + i);
    }
    if (!err && (uint64_t)st.st_size != core(f)->size)
        take_length(f, (uint64_t)st.st_size);
    pages_drop_from(f, (core(f)->size + PAGE - 1) / PAGE);
}

static int repair(struct file *f)
{
    struct file_core *c;
    if (core(f)->flags & CORE_KERNEL_IO) {
        repair_kernel_io(f);
        return 0;
    }
    bool changed = false;
    int err = repair_chunks(f, &changed);
    if (!err)
        err = store_clear_pages(f);
    if (err)
        return err;
    if (f->rec->dirty && !(core(f)->flags & CORE_DIRTY)) {
        core_change(f->rec)->flags |= CORE_DIRTY;
        store_commit(f);
    }
    const struct file_core *k = core(f);
    if (pages_drop_from(f, (k->size + PAGE - 1) / PAGE))
        changed = true;
    if (changed || f->rec->uncut || core_busy(k)) {
        err = datafile_truncate(f, k->size); /* a truncation or an extension was under way */
        if (err)
            return err;
        f->rec->uncut = 0;
    }
    if (!core_busy(k) && (k->base.size != k->size || k->base_end != k->size)) {
        store_not_whole(f); /* this never happens by itself: the record is not trusted */
        pages_drop_from(f, 0);
        c = core_change(f->rec);
        c->size = c->base_end = c->base.size;
        store_commit(f);
    }
    return 0;
}

/* ---- after a power loss ---- */

/* Is the page clean, and does the PFS have it, if at all, only under a version that is not known any more?
 * If an fsync covered the page, a run that did not end had cleaned it.  If not, it is newer than the fsync:
 * such a run had cleaned it, and CORE_FLUSHING has it cut off on the PFS; or it is the page that base_end is
 * in, read from the PFS since. */
static bool is_beyond_base(struct chunk_record *c, uint32_t bit, const struct file_core *k)
{
    uint64_t at = (c->index * state_pages() + bit) * PAGE;
    return bit_get(chunk_bits(c, BITS_VALID, state_words()), bit) &&
           !bit_get(chunk_bits(c, BITS_DIRTY, state_words()), bit) && at < k->size &&
           MIN(at + PAGE, k->size) > k->base_end;
}

/* Did a run that did not end clean the page, beyond what the PFS keeps of that run?  back_to_covered cuts it
 * off. */
static bool is_news(struct chunk_record *c, uint32_t bit, const struct file_core *k)
{
    return is_beyond_base(c, bit, k) && (c->index * state_pages() + bit) * PAGE >= k->base_end;
}

/* Drops pages that are not both dirty and covered; returns how many dirty bytes are lost.  Makes pages dirty
 * again that a run had cleaned which did not end. */
static uint64_t drop_uncovered(struct file *f)
{
    struct chunk_record *c;
    uint64_t lost = 0;
    uint32_t words = state_words(), pages = state_pages();
    for (uint32_t no = f->rec->first_chunk, next; (c = state_chunk_at(no)); no = next) {
        next = c->file_next;
        const uint64_t *covered = chunk_bits(c, BITS_COVERED, words);
        const uint64_t *dirty = chunk_bits(c, BITS_DIRTY, words);
        for (uint32_t i = 0; i < pages; i++) {
            bool keep = bit_get(covered, i) && bit_get(chunk_bits(c, BITS_VALID, words), i);
            if (keep && is_beyond_base(c, i, core(f)))
                pages_dirty_again(f, c, i);
            if (keep && bit_get(dirty, i))
                continue;
            lost += bit_get(dirty, i) || is_news(c, i, core(f)) ? PAGE : 0;
            pages_forget(f, c, i);
        }
        pages_release(f, c);
    }
    return lost;
}

/* What the disk has of the trace may be older or newer than the last change of the PFS file. */
static void lose_trace(struct file *f)
{
    f->rec->trace.kind = TRACE_ANY;
}

/* For kernel I/O, as on any disk: what was fsynced is there; what was stored over it since may be there in
 * part.  Every chunk is copied to the PFS again. */
static int pass_back_to_covered(struct file *f)
{
    char path[STATE_PATH_MAX + 1];
    struct chunk_record *c;
    struct stat st;
    int err = datafile_stat(f, &st);
    struct file_core *k = core_change(f->rec);
    *k = f->rec->covered;
    lose_trace(f);
    if (!err && !(k->flags & CORE_MTIME_SET))
        k->mtime_ns = ns_of_time(st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    store_commit(f);
    for (uint32_t no = f->rec->first_chunk; (c = state_chunk_at(no)); no = c->file_next)
        c->flags = (uint16_t)(c->flags & ~CHUNK_HASH);
    f->rec->loss_told = true;
    log_error(
        "power loss: %s: what was written to it after its last fsync is lost, or there in part",
        name_of(f->rec, path));
    if (!err && (uint64_t)st.st_size < core(f)->size) /* a truncation had got to the disk */
        take_length(f, (uint64_t)st.st_size);
    return err && err != -ENOENT ? err : datafile_resize(f, core(f)->size);
}

/* A data file that was made after the fsync may not be on the disk, though the record tells of it.  If the
 * file has no pages, nothing is missing.  If it has, reads return EIO. */
static void lacks_data_file(struct file *f)
{
    struct stat st;
    if (f->rec->valid == f->rec->zero && datafile_stat(f, &st) == -ENOENT)
        f->rec->data_made = DATA_NONE;
}

/* Punches the holes that the record tells of: the disk may not have got the punch.  Reads here and the PFS
 * must get the same bytes. */
static int punch_zeros(struct file *f)
{
    uint64_t last = page_of(UINT64_MAX), page = 0, until;
    int err = 0;
    while (!err && f->rec->zero && (page = pages_find(f, page, last, BITS_ZERO, true)) <= last) {
        until = pages_find(f, page, last, BITS_ZERO, false);
        err = punch(f, page, until - 1);
        page = until;
    }
    return err;
}

static int back_to_covered(struct file *f)
{
    char path[STATE_PATH_MAX + 1];
    if (f->rec->covered.flags & CORE_KERNEL_IO)
        return pass_back_to_covered(f);
    bool older = f->rec->covered.check != core(f)->check;
    struct file_core *c = core_change(f->rec);
    *c = f->rec->covered;
    lose_trace(f);
    /* A run may have written bytes to the PFS that are newer than the fsync: a run that did not end, or one
     * of a longer file.  Where the file has a hole now, or is made longer, the PFS must have a hole, too. */
    if (c->flags & CORE_FLUSHING || (c->flags & CORE_BASE && c->base.size > c->base_end))
        c->cut = MIN(c->cut, c->base_end);
    store_commit(f);
    uint64_t lost = drop_uncovered(f);
    f->rec->loss_told = lost || older;
    if (f->rec->loss_told)
        log_error("power loss: %s: what was written to it after its last fsync is lost (%llu bytes "
                  "of pages): kept as fsynced",
                  name_of(f->rec, path), (unsigned long long)lost);
    lacks_data_file(f);
    int err = punch_zeros(f);
    return err ? err : store_punch_invalid(f); /* bytes may have come without their record */
}

/* What may not be on the PFS: of kernel I/O, which is in no record, all that the data file has. */
static uint64_t bytes_in_doubt(struct file *f)
{
    struct stat st;
    bool stored = core(f)->flags & CORE_KERNEL_IO && !datafile_stat(f, &st);
    return MAX(f->rec->dirty * PAGE, stored ? (uint64_t)st.st_blocks * 512 : 0);
}

static int write_note(int dirfd, const struct file *f, const char *path, uint64_t bytes)
{
    char name[FID_TEXT + 4], hex[FID_TEXT];
    snprintf(name, sizeof(name), "%s.txt", fid_text(f->fid, hex));
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    const struct file_core *c = core(f);
    int n = dprintf(fd, "bytes %llu\nsize %llu\nmtime %lld\nbase_end %llu\npath %s\n",
                    (unsigned long long)bytes, (unsigned long long)c->size, (long long)c->mtime_ns,
                    (unsigned long long)c->base_end, path);
    int err = n < 0 || fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return err;
}

static int set_aside(struct file *f, const char *why)
{
    char path[STATE_PATH_MAX + 1];
    if (mkdirat(store.dir.fd, "suspect", 0700) < 0 && errno != EEXIST)
        return -errno;
    int dirfd = openat(store.dir.fd, "suspect", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dirfd < 0)
        return -errno;
    uint64_t bytes = bytes_in_doubt(f);
    int err = write_note(dirfd, f, name_of(f->rec, path), bytes);
    if (!err)
        err = datafile_set_aside(f->fid, dirfd);
    if (!err && fsync(dirfd) < 0)
        err = -errno;
    close(dirfd);
    if (err)
        return err;
    char hex[FID_TEXT];
    log_error("power loss: %s: %llu bytes that were not on the PFS are in doubt (%s): kept in "
              "%s/suspect/%s, not flushed",
              path, (unsigned long long)bytes, why, store.dir.path, fid_text(f->fid, hex));
    pages_drop_from(f, 0);
    state_busy_set(f->rec, false);
    datafile_close(f);
    state_file_free(f->rec);
    return 0;
}

/* Why it can not go back to the state of its last fsync; NULL: it can. */
static const char *doubt_of(const struct recovery *rv, struct file *f)
{
    const struct file_core *k = &f->rec->covered;
    if (!k->check)
        return "no fsync covers them";
    if (!core_is_sane(f->rec, k))
        return "the record of its fsync is damaged";
    if (rv->rep->damaged_slabs || rv->rep->torn_chunks)
        return "the cache's records are damaged";
    if (f->rec->doubled == DOUBLED_COVERED || (f->rec->doubled && !rv->rep->power_loss))
        return "there are two records of one chunk";
    return NULL;
}

/* True: the record is gone. */
static bool after_power_loss(struct recovery *rv, struct file *f)
{
    const char *doubt = doubt_of(rv, f);
    if (!doubt) {
        int err = back_to_covered(f);
        rv->err = err ? err : rv->err;
        return false;
    }
    int err = set_aside(f, doubt);
    if (err)
        rv->err = err;
    return true;
}

/* ---- each record ---- */

static void recover_file(struct file_record *r, void *arg)
{
    struct recovery *rv = arg;
    struct file f;
    borrow(&f, r);
    space_count((int64_t)(r->valid - r->zero) * PAGE, (int64_t)(r->dirty - f.hollow) * PAGE);
    if (rv->err)
        return;
    if (rv->rep->power_loss || rv->rep->damaged_slabs || rv->rep->torn_chunks || r->doubled)
        store_not_whole(&f);
    if (core(&f)->flags & CORE_DELETED) {
        forget(&f);
        return;
    }
    bool doubt = rv->rep->power_loss ||
                 (is_dirty(&f) && (rv->rep->damaged_slabs || rv->rep->torn_chunks || r->doubled));
    if (doubt && after_power_loss(rv, &f))
        return;
    rv->err = repair(&f); /* also after a clean end: a disk can rot */
    if (rv->err)
        return;
    if (!core_busy(core(&f)) && (r->first_chunk == SLOT_NONE || !(core(&f)->flags & CORE_BASE))) {
        forget(&f);
        return;
    }
    pages_release_all(&f, false);
    datafile_close(&f);
}

/* What a power loss left in doubt is set aside in new files.  So the clean ones, which are dropped, go first. */
static void drop_clean(struct file_record *r, void *arg)
{
    struct file f;
    (void)arg;
    borrow(&f, r);
    if (!is_dirty(&f) && !r->dirty) {
        space_count((int64_t)(r->valid - r->zero) * PAGE, 0);
        forget(&f);
    }
}

static bool known_fid(struct fid fid)
{
    return state_file_find(fid) != NULL;
}

int store_recover(const struct state_report *rep)
{
    struct recovery rv = {.rep = rep};
    if (rep->power_loss)
        state_each_file(drop_clean, NULL);
    state_each_file(recover_file, &rv);
    if (rep->power_loss || rep->torn_files || rep->damaged_slabs)
        datafile_sweep(known_fid);
    return rv.err;
}
