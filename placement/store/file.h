/* file.h - one file as this node knows it while it is in use: open here, dirty, claimed, or being
 * fetched.
 *
 * One object per fid, reference-counted, in one table (state that must outlive it is in the store's
 * mapped record).  The object itself is the store's.  What a room above knows of a file is in a part of its
 * own, which hangs on the object and goes with it; no other room looks into it:
 *
 *     struct file ---- FILE_PFS    placement/pfs/pfs_file.h     descriptor, opens
 *       (store)   '--- FILE_CLAIM  placement/claims/claim_int.h is the claim here, writers
 *                 '--- FILE_PROOF  placement/chunks/proof.c      bytes that were given out before their proof
 *                 '--- FILE_DATA   placement/data_int.h          which node has the bytes, dropped pages
 *                 '--- FILE_LOAN   placement/borrow_map.c       what this node has borrowed of it
 *                 '--- FILE_FLUSH  flush/queue.h                 its place among the dirty files
 *
 * Lock order: the claim's, then the table's (its shard's, file.c), then f->lock, then that of the open handles
 * (FILE_DATA), then the PFS part's.  Never held across a PFS call or a message.
 */
#ifndef EDDY_PLACEMENT_STORE_FILE_H
#define EDDY_PLACEMENT_STORE_FILE_H

#include "transport/base.h"
#include "transport/lock.h"

struct file;
struct file_record; /* mapped, placement/store/state.h */
struct range_op;    /* a write, fill or punch in progress, placement/store/range.h */
struct snapshot;    /* a copy-out in progress, placement/store/store_copyout.h */
struct covering;    /* an fsync in progress, placement/store/store_int.h */
struct page_set;    /* placement/store/page_set.h */
struct lending;     /* placement/store/store_lend.c */

/* ---- parts ---- */

enum file_part_name { FILE_PFS, FILE_CLAIM, FILE_PROOF, FILE_DATA, FILE_LOAN, FILE_FLUSH, FILE_PARTS };

/* The first member of each part. */
struct file_part {
    const struct file_part_ops *ops;
};
struct file_part_ops {
    size_t size;                                       /* of the whole part */
    void (*begin)(struct file *f, struct file_part *); /* it is new, and all zeros; may be NULL */
    /* The last reference is gone.  It may block, but not take a reference.  May be NULL. */
    void (*unused)(struct file *f, struct file_part *);
    void (*end)(struct file_part *); /* frees what it holds, not the part itself; may be NULL */
};

struct file {
    struct fid fid;
    unsigned refs; /* table's lock */
    struct file *hash_next;
    _Atomic(struct file_part *) parts[FILE_PARTS];
    char *path; /* f->lock: relative to the root, a hint; the record has it too */
    _Atomic bool unlinked; /* no name left on the PFS: never flushed */
    _Atomic bool nameless; /* a look at the PFS found no name of it (file_saw_links) */

    struct lock lock; /* RANK_FILE */
    pthread_cond_t changed;
    struct file_record *rec; /* never NULL: made by file_get */
    int data_fd; /* of the data file; -1: not open.  This and the next four belong to the lock in
                    placement/store/datafile.c */
    unsigned data_replaced;                    /* times that another data file took its place */
    struct file *open_next, **open_prev;       /* its list of open ones */
    _Atomic unsigned data_users;               /* calls that use data_fd now, and flags: datafile.c */
    struct data_sync { /* placement/store/datafile_sync.c; the same lock */
        _Atomic bool stored; /* this daemon stored something since the last sync began; no lock */
        uint64_t closed;     /* the number of the close that may have hidden an error since; 0: none */
        uint64_t names_lost; /* how many syncs of names had failed when it got its name */
    } data_sync;
    bool going;                                /* the last put is under way (table's lock) */
    struct file *removed_next, **removed_prev; /* remover.c's list of those that are going */
    bool only_here;       /* it is deleted, and has bytes that the PFS never got (f->lock) */
    uint64_t coming, coming_end; /* store_hint_coming's chunks (f->lock) */
    unsigned anchored;    /* store_anchor's: nothing of it is evicted (f->lock) */
    uint64_t hollow;      /* dirty pages that are zeros without blocks: no dirty bytes (pages.c) */
    struct range_op *ops; /* placement/store/range.h */
    struct snapshot *snapshots;
    bool synced;            /* fsynced, or perhaps, and nothing has changed since */
    struct file_cover {         /* placement/store/store_cover.c and store_sync.c */
        uint64_t said;          /* how often what is covered has changed */
        uint64_t on_disk;       /* the record is on the disk as it was after this many of these changes */
        bool data;              /* the data file is being synced */
        struct covering *now;   /* the fsync that is under way */
        uint64_t begun, change; /* fsyncs; `change` when the last began that succeeded */
        int last;               /* what the last one returned */
        int err;                /* of a sync of the data file, until the PFS has what it lost; 0 */
        struct page_set *lost;  /* ... these pages; NULL: all */
    } cover;
    uint64_t change;   /* goes up with every change of bytes or size; starts at a random value per
                        object */
    struct file_kernel_io { /* what the kernel serves from the data file: placement/store/kernel_io.c */
        unsigned opens, writers;
        unsigned life;            /* goes up when another data file takes the place of this one */
        uint64_t anchored, counted; /* bytes, of all files' sums */
        uint64_t flushed;         /* `change` that the PFS has, as far as samples tell */
        uint64_t sampled;         /* `change` when the sampler looked last */
        uint64_t marked;          /* `change` before the last mark looked at any byte */
        bool solid;               /* ... and its sample proves something */
        bool closed;              /* no process can store any more, and none has since `seen` */
        bool covered; /* the record on the disk says that the file is dirty, and covered as here */
        unsigned uncovered; /* how often `covered` became false */
        struct kernel_io_sample {
            uint64_t size;
            int64_t mtime_ns, ctime_ns;
            bool known;
        } seen;
        struct kernel_io_hash *hashes; /* of the chunks that the present run has marked */
        size_t nhashes;
        struct file *next, **prev; /* files with writers */
    } kernel_io;
    _Atomic bool shared;     /* placement/store/store_lend.h; so are the next two: f->lock */
    unsigned shares;
    struct lending *lending; /* NULL: nothing was lent yet */
    struct shadow *shadow; /* placement/store/shadow.c; f->lock; NULL: none */
};

/* Finds or makes the object (and its record, with this path hint; path may be NULL if it is known).
 * *out is referenced.  -ENOSPC: no record could be made; -EIO: the store is broken; -ENAMETOOLONG: the path has
 * more than PATH_BYTES_MAX bytes. */
int file_get(struct fid fid, const char *path, struct file **out);
/* Only if the store or the table knows it; NULL otherwise. */
struct file *file_find(struct fid fid);
/* The object, if one exists in memory; never makes one.  A file that is neither open nor dirty has none. */
struct file *file_find_used(struct fid fid);
struct file *file_ref(struct file *f);
/* The last put tells the parts (file_part_ops.unused); a file that holds nothing (no pages, no claim, not
 * dirty) loses its record too. */
void file_put(struct file *f);
/* The same after the file's last name was removed: the cache may drop its data later (remover.h). */
void file_put_removed(struct file *f);

/* The room's part of f, made at the first call.  Any thread, any lock. */
struct file_part *file_part_make(struct file *f, enum file_part_name which,
                                 const struct file_part_ops *ops);
static inline struct file_part *file_part(struct file *f, enum file_part_name which,
                                          const struct file_part_ops *ops)
{
    struct file_part *p = atomic_load_explicit(&f->parts[which], memory_order_acquire);
    return p ? p : file_part_make(f, which, ops);
}
/* NULL if it was never made. */
static inline struct file_part *file_part_if(const struct file *f, enum file_part_name which)
{
    return atomic_load_explicit(&f->parts[which], memory_order_acquire);
}

/* Has the PFS no name of it left, as far as this node knows? */
static inline bool file_is_unlinked(const struct file *f)
{
    return f->unlinked;
}
/* Also in the record (file_info.leaving): if the daemon dies, what was written to a file without a name is dropped by the
 * next one, and is no conflict with a file that has got its name.  Takes the file's lock. */
void file_set_unlinked(struct file *f, bool unlinked);
/* A look at the PFS found so many names of it.  If there is none, the record says so, too.  Takes the file's lock then. */
void file_saw_links(struct file *f, unsigned links);

/* New path hint (rename here, or NAMED from another node): object and record.  A path of more than
 * PATH_BYTES_MAX bytes is not taken, and logged. */
void file_set_path(struct file *f, const char *path);
/* Copy of the hint, malloc'd. */
char *file_path(struct file *f);

#endif
