/* store_open.h - the store as a whole: opened, closed, counted; the records that a dead daemon left.
 *
 * The cache directory's layout is in docs/store.md.  What a page (4 KiB) of a file can be, with base_end =
 * how far the PFS file's bytes count:
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
 *
 * In all store_*.h: functions take f->lock themselves and are called by any thread that may do local disk I/O
 * (FUSE workers, libuv's pool, pools; never the network thread).  Offsets and lengths in bytes.  Errors:
 * negative errno.
 */
#ifndef EDDY_PLACEMENT_STORE_STORE_OPEN_H
#define EDDY_PLACEMENT_STORE_STORE_OPEN_H

#include "placement/store/file.h"

#define PAGE      4096u
#define NO_CUT    UINT64_MAX
#define CHUNK_MIN (64u << 10)
#define CHUNK_MAX (16u << 20)

/* What a change may take when it needs room, and whether it may wait. */
enum space_limit {
    SPACE_CACHE, /* as always: the cache's limit, and the floor of free space on the disk, hold */
    /* All that the disk has, where others have filled it and nothing dirty is left that could leave: for
     * one write, which is flushed before the next one; and for the records of what the kernel's writers
     * have stored, for its flush. */
    SPACE_DISK,
    /* As SPACE_CACHE, but the change waits for no other call, nor for a sync of the cache's disk: -EAGAIN,
     * and nothing is done, where it would have to. */
    SPACE_NOW,
    /* As SPACE_CACHE, but nothing leaves that is here for an admitted hint: for what is fetched. */
    SPACE_FILL,
};

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
 * (without dirty data it is emptied), not an eddyfs cache. */
int store_open(const struct store_config *c, char *err, size_t errlen);
/* Begins to write to the cache's disk what only the page cache has, and does not wait for it.  So store_close
 * has less to wait for.  Any thread, any number of times. */
void store_write_out_begin(void);
/* clean: marks everything as covered (fsync of data and records). */
void store_close(bool clean);
/* The same, and removes the cache directory (cachedir_remove): nothing in it is owed, or this start has made it. */
void store_close_and_remove(void);
struct store_rest {
    bool owed;   /* a file is not on the PFS, is claimed, or in doubt: the cache directory stays */
    bool empty;  /* it has records of no file */
    bool is_new; /* this start has made what is in the cache directory */
};
struct store_rest store_rest(void);
int store_dirfd(void);
const char *store_dir(void);
bool store_lost_power(void);      /* since the daemon before this one */
bool store_is_stacked(void);      /* its file system is stacked on another one, as overlayfs is */
uint64_t store_node_id(void);     /* random, made once: the identity is the cache directory */
uint64_t store_incarnation(void); /* larger at each start, and another one in each copy; fsynced */
/* The incarnation before: the lock of this directory proves that it has ended.  0: it may have run in a
 * directory of which this one is a copy, or there was none. */
uint64_t store_former_incarnation(void);
uint32_t store_chunk_size(void);
uint32_t store_weight(void); /* the node's: MiB that the cache is meant for (space_meant) */
enum unflushed_why {
    UNFLUSHED_DIRTY,
    UNFLUSHED_SUSPECT, /* see store_each_suspect */
    UNFLUSHED_LENT,    /* another node has borrowed parts of it; bytes: 0 */
};
typedef int store_unflushed_fn(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why);
/* For the tool: reads a cache directory whose daemon is dead, and calls cb for every file that is not on the
 * PFS.  -EWOULDBLOCK: a daemon has the lock.  -EUCLEAN: some records are damaged, so there may be more such
 * files. */
int store_each_unflushed(const char *dir, store_unflushed_fn *cb, void *arg);

/* Calls cb for what power losses left in doubt in the open store (CACHE_DIR/suspect).  It is kept, never
 * flushed, and not part of the files any more. */
int store_each_suspect(store_unflushed_fn *cb, void *arg);
/* A descriptor, the caller's, of the bytes of one of them; *size: of the file, which may have more or fewer.  Or -errno; -ENOENT: there
 * are none. */
int store_suspect_open(struct fid fid, uint64_t *size, int64_t *mtime_ns);

/* ---- whole store ---- */
/* Calls cb for every file whose record is dirty or claimed, or has a mode to give back.  f is valid during
 * the call; file_ref keeps it.  Ends when cb does not return 0, and returns what cb returned. */
int store_each_claimed(int (*cb)(void *arg, struct file *f), void *arg);
/* flush registers fn here: called when a file becomes dirty, with no lock held. */
void store_on_dirty(void (*fn)(struct file *f));
/* The same, for when no byte of a file needs to be flushed any more (store_set_deleted); no lock held. */
void store_on_deleted(void (*fn)(struct file *f));
/* The same, for when a file that was fsynced, or may have been, changes for the first time since.  Called
 * with f->lock: fn takes leaf locks only. */
void store_on_unsynced(void (*fn)(void));
struct store_usage {
    uint64_t limit, used, dirty, anchored, files, chunks;
    uint64_t content; /* of used: bytes of files; the rest is for records, and set aside */
    uint64_t ballast; /* of used: set aside on the disk (ballast.h) */
    uint64_t replicas; /* of used: about so much may leave and is another node's to keep */
};
void store_usage(struct store_usage *out);
/* Bytes that are not on the PFS, and how many of any kind there is room for (the limit less the
 * records).  No lock. */
void store_dirty(uint64_t *dirty, uint64_t *room);
/* For a call that found no inode on the cache's disk (-ENOSPC, -EDQUOT): removes a clean file from the cache.
 * True: the call may succeed now.  False: no file may leave.  Only locks of RANK_CLAIM or outer ones may be
 * held. */
bool store_free_inode(void);
/* Above this many % of dirty bytes, no new file is opened for writing by kernel I/O. */
void store_dirty_high(unsigned percent);

#endif
