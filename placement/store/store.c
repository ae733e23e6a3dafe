/* store.c - the store as a whole: opened, closed, asked about.  The files of the room:
 *
 *   the whole       store_self.c         the variable for the open store
 *                   store_recover.c      the start after a crash or power loss
 *                   store_write_out.c       brings all to the cache's disk before the end
 *                   unflushed_list.c     lists what is not on the PFS, for the tool
 *                   cachedir.c           the cache directory: checked, locked, its identity
 *
 *   a file          file.c               the table of files in use
 *                   file_path.c          the path that leads to a file
 *                   file_end.c           takes a file down after its last use
 *                   remover.c            does that later for small removed files
 *                   range.c              which calls work on which pages now
 *
 *   its state       store_state.c        the state that the record tells, and marks that outlive the daemon
 *                   store_record.c       the steps of a change of the record
 *                   store_version.c      versions and claims
 *                   pages.c              the bits of pages, changed in an order that survives a crash
 *                   page_bits.c          the bits of one chunk
 *                   page_set.c           the pages of a file at one moment
 *
 *   reading         store_hit.c          reads bytes that are here
 *                   store_read.c         what is here; whole chunks for other nodes
 *
 *   changing        store_write.c        writes, and times
 *                   store_resize.c       truncation and extension
 *                   store_punch.c        holes
 *                   store_fill.c         clean bytes from the PFS or another node
 *                   store_change.c       the steps that these four share
 *
 *   to the PFS      store_copyout.c      snapshots of dirty pages, and what is clean afterwards
 *
 *   fsync           store_sync.c         brings a file and its record to the disk
 *                   store_cover.c        what of that a power loss leaves
 *                   syncs.c              syncs of one descriptor by several threads
 *
 *   kernel I/O      kernel_io.c          opening and closing; how it all works
 *                   kernel_io_sample.c   has an application stored, and can it still?
 *                   kernel_io_mark.c     finds what changed, for a run
 *                   kernel_io_watch.c    the list of files to sample
 *
 *   bytes on disk   datafile.c           data files: opened, read, written, punched
 *                   datafile_kernel_io.c what kernel I/O needs of them
 *                   datafile_sync.c      brings them and their names to the disk
 *
 *   records         state.c              made, changed, freed
 *                   state_open.c         mapped and checked at start
 *                   state_index.c        found by fid, or by fid and chunk
 *                   state_path.c         the paths in them
 *                   state_slots.c        their slots: set aside, taken
 *                   slab.c               the mapped files of slots
 *
 *   room            space.c              the limit, what is used, how room is made
 *                   siblings.c           the other daemons that share the disk
 *                   ballast.c            room that is set aside
 *                   eviction.c           the lists of chunks that may leave
 *                   insertion.c          the policy for new chunks in them
 *                   evict.c              one chunk leaves
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/store/ballast.h"
#include "placement/store/datafile.h"
#include "placement/store/evict.h"
#include "placement/store/eviction.h"
#include "placement/store/file_int.h"
#include "placement/store/kernel_io.h"
#include "placement/store/remover.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_open.h"
#include "transport/view.h"

/* ---- opening ---- */

static int fail(int code, char *err, size_t errlen, const char *what)
{
    snprintf(err, errlen, "cache directory %s: %s: %s%s", store.dir.path, what, strerror(-code),
             cachedir_hint(code));
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
    if (e == -ENOSPC || e == -EDQUOT) /* what is kept here can be read and flushed all the same */
        e = datafile_probe_full(store.dir.lock_fd);
    if (e == -EOPNOTSUPP)
        return fail(e, err, errlen,
                    "its file system can not punch holes (ext4, xfs, btrfs and tmpfs can): name "
                    "another one with "
                    "--cache-dir");
    if (e)
        return fail(e, err, errlen, "can not be written: name another one with --cache-dir");
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
        e = space_reserve(0, 1, SPACE_CACHE);
    }
    if (!e)
        space_return(0, 1);
    return e ? fail(e, err, errlen,
                    "no room for its records: --cache-size is too small, or the disk is full: give more, or name "
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
    file_end_start();
    eviction_on_victim(evict_chunk, evict_file);
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

static void close_all(bool clean)
{
    remover_stop();
    int err = store_write_out_end(clean);
    if (err) {
        log_warn("cache directory %s: syncfs: %s: not marked as clean", store.dir.path,
                 strerror(-err));
        clean = false;
    }
    err = state_close(clean);
    if (err)
        log_warn("cache directory %s: writing its records: %s", store.dir.path, strerror(-err));
    space_stop();
    store.open = false;
}

void store_close(bool clean)
{
    if (!store.open)
        return;
    close_all(clean);
    cachedir_close(&store.dir);
}

void store_close_and_remove(void)
{
    if (!store.open)
        return;
    close_all(false);
    cachedir_remove(&store.dir);
}

static int is_one(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    (void)arg;
    (void)fid;
    (void)path;
    (void)bytes;
    (void)why;
    return -EBUSY;
}

struct store_rest store_rest(void)
{
    size_t busy;
    free(state_busy(&busy));
    return (struct store_rest){
        .owed = busy || store_each_suspect(is_one, NULL), .empty = !state_files(), .is_new = store.dir.is_new};
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

bool store_is_stacked(void)
{
    return store.dir.stacked;
}

uint64_t store_node_id(void)
{
    return store.dir.node_id;
}

uint64_t store_incarnation(void)
{
    return store.dir.incarnation;
}

uint64_t store_former_incarnation(void)
{
    return store.dir.former;
}

void store_on_dirty(void (*fn)(struct file *f))
{
    store.on_dirty = fn;
}

void store_on_deleted(void (*fn)(struct file *f))
{
    store.on_deleted = fn;
}

void store_on_unsynced(void (*fn)(void))
{
    store.on_unsynced = fn;
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
                                .anchored = kernel_io_anchored(),
                                .ballast = ballast_size() - ballast_owed()};
    space_usage(out);
    out->content = out->used - MIN(out->used, state_slab_bytes() + ballast_size());
    out->replicas = out->content / MAX(out->chunks, 1) * eviction_replicas();
}
