/* store.h - this node's local store: one sparse data file per cached file, page states in slabs.
 *
 * The cache directory's layout is in docs/store.md.  Functions take f->lock themselves and are
 * called by any thread that may do local disk I/O (FUSE workers, libuv's pool, pools; never the
 * network thread).  Offsets and lengths in bytes.  Errors: negative errno.
 *
 * What a page (4 KiB) of a file can be, with base_end = how far the PFS file's bytes count:
 *
 *   valid              its bytes are in the data file
 *
 *   not valid, begins below base_end        its bytes (up to base_end) are on the PFS, in version
 *                                           `base`; beyond: zeros
 *
 *   not valid, begins at or above base_end  zeros: a hole
 *
 *   dirty and valid    not yet on the PFS
 *
 *   dirty, not valid   a write of it has begun and was never acknowledged: dropped at start
 *
 * cut: a truncation not yet done on the PFS (UINT64_MAX = none): the flush begins with
 * ftruncate(cut).
 */
#ifndef EDDY_PLACEMENT_STORE_H
#define EDDY_PLACEMENT_STORE_H

#include "placement/store/file.h"
#include <sys/types.h>

#define PAGE      4096u
#define NO_CUT    UINT64_MAX
#define CHUNK_MIN (64u << 10)
#define CHUNK_MAX (16u << 20)

/* ---- the cache directory ---- */
struct store_config {
    const char *dir;
    bool dir_is_default; /* the default refuses tmpfs; a directory that was asked for only warns */
    uint64_t size;       /* bytes; 0 = use percent */
    unsigned percent; /* of the file system; 0 = the default rule (80 % of what is free, divided by
                         the daemons there) */
    uint32_t chunk_size;
};
/* Opens (makes) it: no links followed, owner and mode checked, lock taken, format checked, slabs
 * mapped, indexes rebuilt, torn records reported.  err says what is wrong and what to do: full
 * disk, not writable, in use (by which pid), older format, other chunk size with dirty data
 * (without: emptied), not ours. */
int store_open(const struct store_config *c, char *err, size_t errlen);
/* Has what only the page cache has written to the cache's disk, and does not wait for it: so that
 * store_close has less to wait for.  Any thread, any number of times. */
void store_settle_begin(void);
/* clean: marks everything as covered (fsync of data and records). */
void store_close(bool clean);
int store_dirfd(void);
const char *store_dir(void);
bool store_lost_power(void);      /* since the daemon before this one */
uint64_t store_node_id(void);     /* random, made once: the identity is the cache directory */
uint64_t store_incarnation(void); /* +1 at each start, fsynced */
uint32_t store_chunk_size(void);
uint32_t store_weight(void); /* the node's: MiB that the cache is meant for (space_meant) */
/* Read-only look at a cache directory whose daemon is dead, for the tool: every file that is not on
 * the PFS.  -EWOULDBLOCK: a daemon has the lock.  -EUCLEAN: some of its records are damaged, so that
 * there may be more than those cb was called for. */
int store_each_unflushed(const char *dir,
                         int (*cb)(void *arg, struct fid fid, const char *path, uint64_t bytes,
                                   bool suspect),
                         void *arg);

/* What power losses left in doubt in the open store (CACHE_DIR/suspect): kept, never flushed, not
 * part of the files any more. */
int store_each_suspect(int (*cb)(void *arg, struct fid fid, const char *path, uint64_t bytes,
                                 bool suspect),
                       void *arg);

/* ---- a file's state, a copy taken under its lock ---- */
struct file_info {
    uint64_t size;
    int64_t mtime_ns, ctime_ns;
    uint64_t blocks;     /* st_blocks: of the data file, and of what is still on the PFS */
    struct version base; /* version of the PFS file that clean pages are of */
    bool base_known;
    uint64_t base_end, cut;
    uint64_t dirty_bytes;
    uint64_t change;
    bool dirty;   /* pages, size, cut or times are not on the PFS */
    bool claimed; /* the record holds a claim: */
    uint64_t claim_inc, claim_number;
    bool pass;      /* writers that the kernel serves may change it at any time */
    bool mtime_set; /* utimens after the last write: flush publishes exactly this */
    bool racy;      /* clean pages were filled while the version was racy */
    bool flushing;  /* a flush has begun to change the PFS file and did not end: its version differs
                       by our own doing */
    uint8_t policy; /* store_set_policy, by this daemon or the one before; 0: nothing was said */
    bool deleted;   /* store_set_deleted: what was not flushed is never on the PFS */
    bool leaving;   /* store_set_leaving, by this daemon or the one before */
    bool loss_told; /* a power loss before this start took something of it, and the log says so */
};
void store_info(struct file *f, struct file_info *out);

/* ---- versions ---- */
/* The PFS has version v now (same_as: and v's data is that of *same_as, may be NULL).  Clean pages
 * of another version are dropped (counters.stale_bytes), size and times follow v.  racy clean pages
 * too.  Only while the file is neither claimed nor dirty: else -EBUSY and nothing happens.  -EIO,
 * -ENOSPC: the cache's disk failed: the version is what it was. */
int store_set_version(struct file *f, const struct version *v, const struct version *same_as);
/* The same for who has read the PFS meanwhile: before is the version that the file had here when
 * that began (NULL: none).  -ESTALE, and nothing happens: it has another one by now that is not v;
 * which of the two is the newer is not known here. */
int store_follow_version(struct file *f, const struct version *v, const struct version *before,
                         const struct version *same_as);
/* Our own name operation moved ctime: base becomes `after` if it was `before`; also if claimed.  False: it
 * was not, or a flush is changing the PFS's data. */
bool store_same_data(struct file *f, const struct version *before, const struct version *after);

/* ---- reading ---- */
/* How many bytes from off on (<= len, <= up to size) can be read from the data file now (valid
 * pages, or holes at or above base_end): 0 if the first is missing.  Pins them until store_unpin
 * (always call it when > 0): they are not evicted, cut off or punched meanwhile, as whoever wants
 * that waits.  So: unpin soon, and call nothing below "changing" while this thread has a pin. */
size_t store_pin(struct file *f, uint64_t off, size_t len);
void store_unpin(struct file *f, uint64_t off, size_t pinned_len);
/* pread from the data file of pinned bytes; reads beyond the data file's end give zeros.  Full or
 * -errno. */
int store_pread(struct file *f, void *buf, size_t len, uint64_t off);
/* A view of bytes that are here, which spares a copy: of whole pages that need not be pinned, for a
 * system call to read, which then takes what is stored meanwhile.  NULL: there is none; store_pread.
 * Nothing else may read it: where the data file was cut off, or its disk fails, a system call says
 * EFAULT, and everybody else is killed. */
void *store_view(struct file *f, size_t len, uint64_t off);
void store_unview(void *view, size_t len);
/* Is the whole file here, clean, in version *v?  Then nothing of it is evicted until store_unhold
 * with the same *bytes.  False also if too much of the cache is held already.  A newer version
 * still takes its place: look at the base when it matters. */
bool store_hold(struct file *f, const struct version *v, uint64_t *bytes);
void store_unhold(struct file *f, uint64_t bytes);
bool store_is_held(struct file *f);
/* First missing byte range at or after off within [off, off+len): false if none. */
bool store_missing(struct file *f, uint64_t off, uint64_t len, uint64_t *miss_off,
                   uint64_t *miss_len);
/* A whole clean chunk for another node: copies it to buf (chunk_size); *len, *hash (stored, or
 * computed when there is none). -ENOENT: not (wholly) here in that version, or dirty. */
int store_get_chunk(struct file *f, uint64_t index, const struct version *v, void *buf, size_t *len,
                    uint64_t *hash);
/* The same for the network thread: -EAGAIN when it would have to wait for a lock, another call or
 * the disk, and when the chunk is not here (or racy): the other one knows. */
int store_get_chunk_now(struct file *f, uint64_t index, const struct version *v, void *buf,
                        size_t *len, uint64_t *hash);

/* ---- filling with clean bytes ---- */
/* Chunk `index` of version v has these bytes (len up to chunk size, shorter only at the end of the
 * file).  Writes pages that are not valid and below base_end; others are left as they are.  owned:
 * this node is the ring's owner (else a replica). -ESTALE: the file's base is not v.  -ENOSPC: no
 * room could be made: use the buffer without keeping it. */
int store_fill(struct file *f, uint64_t index, const struct version *v, const void *buf, size_t len,
               uint64_t hash, bool owned, bool racy);

/* ---- changing (only with the claim held) ---- */
/* Writes; len <= 16 MiB.  Dirty bits are set before the bytes.  -ENODATA: the page at *fill_off
 * must be filled first (partly covered, not valid, below base_end): fetch and try again.  -ENOSPC:
 * no room (nothing written): flush, then again. mtime becomes now, mtime_set false. */
int store_write(struct file *f, const void *buf, size_t len, uint64_t off, uint64_t *fill_off);
/* The same, but for what would lie beyond the end: that is left out, and no error. */
int store_write_within(struct file *f, const void *buf, size_t len, uint64_t off,
                       uint64_t *fill_off);
/* off = end of file, taken under the lock. *off_out = where it went.  *done: how much of it is in the
 * file, also on an error; beside writers that the kernel serves that may be a part, and the rest is
 * what is left to append. */
int store_append(struct file *f, const void *buf, size_t len, size_t *done, uint64_t *off_out,
                 uint64_t *fill_off);
/* Shrinks or extends.  (fill_off is never used: the page at the new end ends at base_end.) */
int store_truncate(struct file *f, uint64_t size, uint64_t *fill_off);
/* Zeros [off, off+len) (punch), never extends. -ENODATA as above. */
int store_punch(struct file *f, uint64_t off, uint64_t len, uint64_t *fill_off);
/* fallocate: extends size (unless keep_size).  No local blocks are set aside: the store makes room
 * when the bytes come, and who finds none flushes. */
int store_allocate(struct file *f, uint64_t off, uint64_t len, bool keep_size);
void store_set_times(struct file *f, int64_t mtime_ns); /* utimens on a claimed file */
void store_touch_ctime(struct file *f);
/* SEEK_DATA/SEEK_HOLE over valid pages, holes and what is on the PFS (counted as data). -ENXIO. */
int store_seek(struct file *f, uint64_t off, bool hole, uint64_t *out);
/* fsync of what is dirty: data, then records; afterwards covered.  O(dirty). */
int store_sync(struct file *f);

/* ---- claims on disk (claim.c and claim_views.c call these) ---- */
/* -EIO, -ENOSPC, and no claim: what is here of another version than `base` can not be dropped (never
 * without a base). */
int store_set_claim(struct file *f, uint64_t number_inc, uint64_t number,
                    const struct version *base);
/* Data stays as clean data of that version (NULL: of the base).  False, and nothing is done: it is
 * dirty (again), or the cache's disk failed, and a power loss might bring back what was fsynced. */
bool store_clear_claim(struct file *f, const struct version *clean_version);
/* What was fsynced does not come back after a power loss.  0, or the cache's disk failed. */
int store_not_again(struct file *f);
/* Unlinked: drop everything dirty; pages stay readable until the last put. */
void store_set_deleted(struct file *f);
/* Of the flusher's own, what it is to find again after a crash. */
void store_set_policy(struct file *f, uint8_t policy);
/* Its last name is about to be removed on the PFS by this node; false: it was not.  In the record
 * before the PFS is asked: a daemon that dies in between would find unflushed data of a file that is
 * gone, and not know that this was wanted. */
void store_set_leaving(struct fid fid, bool leaving);
/* A PFS that gives no birth times used the inode number of an unlinked file again: this fid is a
 * new file's now.  -EIO, -ENOSPC: the cache's disk failed: it counts as removed still. */
int store_set_reborn(struct file *f);

/* ---- what the kernel serves: passthrough (store_pass.c) ---- */
/* The grain of the time stamps of a local file system, at the most: a sample this young proves nothing. */
#define STORE_GRAIN_NS INT64_C(10000000)
/* For an open that reads, or (with the claim held) writes, the data file itself: *fd is a read-only
 * descriptor of it, the caller's to close; "may be dirty" is in the record.  *life: for the close,
 * and to tell whether two opens have the same data file.  -ENODATA: not all of it is here, or the next
 * open fetches it again.
 * -ENOSPC: too much of the cache would be pinned, or too little is free for a writer. */
int store_pass_open(struct file *f, bool write, int *fd, unsigned *life);
void store_pass_close(struct file *f, unsigned life, bool write);
void store_pass_direct(struct file *f); /* ... with O_DIRECT; right after store_pass_open */
/* Before an open for writing, without a lock: makes the room that it asks for. */
void store_pass_make_room(void);
/* Before a copy-out: what the kernel's writers changed is marked dirty.  gate (may be NULL) is
 * called before each chunk is read; it may wait, and ends it with an error. */
int store_pass_mark(struct file *f, int (*gate)(void *arg), void *arg);
/* Between that and store_flushed, where writers go on: the len bytes of buf went to the PFS, at off
 * of a file of `size`.  So that they go there once, even if what was marked is not what was copied. */
void store_pass_copied(struct file *f, const void *buf, size_t len, uint64_t off, uint64_t size);
/* Looks at each file that the kernel's writers may change, and keeps free what they may need.
 * Calls back, without a lock, for those that changed, and for those that nobody can change any more
 * and that are on the PFS.  Returns how many are left.  store_pass_forget: at the end, looks no
 * more. */
unsigned store_pass_sample(void (*changed)(struct file *f), void (*settled)(struct file *f));
void store_pass_forget(void);
/* How long ago the kernel's writers stored into it last, as far as was seen; 0 if that is not known. */
uint64_t store_pass_age_ms(struct file *f);
/* Called when one more is open, and when one changed before its close; no lock held. */
void store_on_pass(void (*wake)(void), void (*changed)(struct file *f));
uint64_t store_pass_pinned(void); /* bytes */
unsigned store_pass_open_files(void);

/* ---- copy-out (flush/copyout.c) ---- */
struct run {
    uint64_t off, len; /* clipped to the size */
    bool hole;         /* no bytes in the data file: zeros */
};
struct snapshot {
    struct file *f;
    struct snapshot *next;
    uint64_t size, cut;
    int64_t mtime_ns;
    bool mtime_set;
    bool last; /* nothing else is dirty */
    struct run *runs;
    size_t nruns;
    uint64_t bytes;
    /* store_copyout.c's own: which pages, minus those written since */
    struct snapshot_pages *pages;
};
/* Takes dirty pages from offset `from` on, at most about `max` bytes; left out are pages that are
 * being written now, and those between the first and the last page of another snapshot.  0 or
 * -ENODATA (nothing is dirty; with *s still describing size/cut/times when those are dirty: then 0
 * and nruns 0) or -EBUSY: with a cut there is one snapshot at a time. */
int store_snapshot(struct file *f, uint64_t from, uint64_t max, struct snapshot **out);
/* They are on the PFS (ok, fsynced) or not: clears the dirty bits of pages that did not change
 * since.  cut becomes what was cut off since.  Frees s. */
void store_snapshot_done(struct snapshot *s, bool ok);
/* The flush is complete: PFS has version v with this size and mtime.  If nothing changed since
 * (change == change_then): base = v, base_end = size, not dirty.  Else base = v, base_end follows.
 * Returns whether it is clean.  *err (may be NULL): 0, or the cache's disk failed; then it is not
 * clean, since a power loss might bring an older state back. */
bool store_flushed(struct file *f, const struct version *v, uint64_t change_then, int *err);
/* A flush is about to change the PFS file (persisted: after a crash the PFS version differs by our
 * own doing).  On error, of the cache's disk, it must not. */
int store_flush_begins(struct file *f);

/* The PFS file has u+w for the flush's sake and must get `mode` (07777) back: kept in the record,
 * so that it outlives the daemon. STORE_NO_MODE: nothing to give back any more.
 * (placement/pfs/pfs_mode.c; recovery) */
#define STORE_NO_MODE UINT32_MAX
void store_set_raised_mode(struct file *f, uint32_t mode);
bool store_raised_mode(struct file *f, uint32_t *mode); /* false: none */

/* ---- whole store ---- */
/* Every file whose record is dirty or claimed (or has a mode to give back).  f is valid during the
 * call: file_ref to keep it. Ends when cb returns other than 0, and returns that. */
int store_each_claimed(int (*cb)(void *arg, struct file *f), void *arg);
/* flush registers: called when a file becomes dirty (no lock held by the caller's module other than
 * none). */
void store_on_dirty(void (*fn)(struct file *f));
/* ... and when nothing of it is to be flushed any more (store_set_deleted), no lock held. */
void store_on_deleted(void (*fn)(struct file *f));
/* ... and when one that was fsynced, or may have been, changes for the first time since.  With
 * f->lock: fn takes leaf locks only. */
void store_on_unsynced(void (*fn)(void));
struct store_usage {
    uint64_t limit, used, dirty, pinned, files, chunks;
    uint64_t ballast; /* of used: set aside on the disk (ballast.h) */
};
void store_usage(struct store_usage *out);
/* Bytes that are not on the PFS, and how many of any kind there is room for (the limit less the
 * records).  No lock. */
void store_dirty(uint64_t *dirty, uint64_t *room);
/* Above this many % of dirty bytes no new file is opened for the kernel to write. */
void store_dirty_high(unsigned percent);

#endif
