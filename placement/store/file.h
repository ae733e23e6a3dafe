/* file.h - one file as this node knows it while it is in use: open here, dirty, claimed, or being
 * fetched.
 *
 * One object per fid, reference-counted, in one table (state that must outlive it is in the store's
 * mapped record). Its parts belong to different modules, each with its own lock:
 *
 *   store part   placement/store/store*.c  f->lock        pages, size, base version, copy-outs
 *   claim part   placement/claims/claim*.c  f->claim_lock  do we hold the claim, who has it, writers
 *   PFS part     placement/pfs/pfs_*.c   f->lock        path hint and descriptor of the PFS file
 *
 * Lock order: claim_lock, then the table's lock (its shard's, file.c), then f->lock.  Never held
 * across a PFS call or a message.
 */
#ifndef EDDY_PLACEMENT_FILE_H
#define EDDY_PLACEMENT_FILE_H

#include "transport/base.h"
#include "transport/lock.h"

struct file_record; /* mapped, placement/store/state.h */
struct range_op;    /* a write, fill or punch in progress, placement/store/range.h */
struct snapshot;    /* a copy-out in progress, placement/store/store.h */

enum claim_state {
    CLAIM_NONE,   /* not ours */
    CLAIM_ASKING, /* a WANT is under way */
    CLAIM_HELD,   /* ours: our word is the truth */
};

struct unproven {
    struct unproven *next;
    uint64_t no, ms; /* ms: boot_ms when its bytes were given */
};

struct file {
    struct fid fid;
    unsigned refs; /* table's lock */
    struct file *hash_next;

    /* ---- store part ---- */
    struct lock lock; /* RANK_FILE */
    pthread_cond_t changed;
    struct file_record *rec; /* never NULL: made by file_get */
    int data_fd; /* store's data file, -1 = not open; this and the next five: placement/store/datafile.c's
                    lock */
    unsigned data_users;                       /* calls that use data_fd now */
    unsigned data_replaced;                    /* times that another data file took its place */
    struct file *idle_next, **idle_prev;       /* its list of open ones that nobody uses now */
    bool going;                                /* the last put is under way (table's lock) */
    struct file *removed_next, **removed_prev; /* remover.c's list of those that are going */
    unsigned held;        /* store_hold's: nothing of it is evicted (f->lock) */
    struct range_op *ops; /* placement/store/range.h */
    struct snapshot *snapshots;
    bool synced;            /* fsynced, or perhaps: nothing has changed since */
    unsigned cover_changes; /* of what is covered, on their way to the disk (store_cover.c) */
    bool cover_failed;      /* the last one may be there, or not */
    uint64_t change;   /* goes up with every change of bytes or size; starts at a random value per
                        object */
    struct file_pass { /* what the kernel serves from the data file: placement/store/store_pass.c */
        unsigned opens, writers;
        unsigned life;            /* goes up when another data file takes the place of this one */
        uint64_t pinned, counted; /* bytes, of all files' sums */
        uint64_t flushed;         /* `change` that the PFS has, as far as samples tell */
        uint64_t sampled;         /* `change` when the sampler looked last */
        uint64_t marked;          /* `change` before the last mark looked at any byte */
        bool solid;               /* ... and its sample proves something */
        bool direct;              /* a writer with O_DIRECT is open, or was beside those that are */
        bool collides;            /* such a one was: beside mappings (store_pass_mark.c) */
        bool closed;              /* nobody can store any more, and nobody has since `seen` */
        bool covered; /* the record on the disk says that the file is dirty, and covered as here */
        unsigned uncovered; /* how often that has ended */
        struct pass_sample {
            uint64_t size;
            int64_t mtime_ns, ctime_ns;
            bool known;
        } seen;
        struct pass_hash *hashes; /* of the chunks that the flush that runs has marked */
        size_t nhashes;
        struct file *next, **prev; /* files with writers */
    } pass;

    /* ---- claim part ---- */
    struct lock claim_lock; /* RANK_CLAIM */
    pthread_cond_t claim_changed;
    enum claim_state claim;
    uint64_t number_inc, number; /* request number of the claim (also in the record) */
    unsigned writers;      /* opens for writing on this node, plus carried writes in progress */
    uint64_t last_carried; /* goes up with each write carried here from another node */
    /* f->lock: the claimant at another node that keeps it as long as it is open here, and the number
     * of the pin there (data_removed.c); 0: none */
    uint64_t keeper, keeper_pin;

    /* ---- PFS part (f->lock) ---- */
    char *path; /* relative to the root, a hint; the record has it too */
    int pfs_fd; /* -1 = none */
    bool pfs_fd_writable;
    unsigned pfs_pins;    /* calls that use pfs_fd now */
    uint64_t pfs_unit;    /* of writes, for the pass that runs: it alone looks */
    bool pfs_drop_wanted; /* the last pin closes pfs_fd */
    unsigned opens;       /* open handles of the mount: while > 0 pfs_fd is kept */
    struct file *kept_next,
        **kept_prev; /* pfs_keep.c's own list of closed, dirty files whose descriptor is kept */
    bool unlinked;   /* no name left on the PFS: never flushed */
    struct version pfs_seen; /* what the PFS's client on this node told last */
    /* Bytes that were given before it was proved of which version they are (proof.c).  Changed with
     * f->lock, and `changed` is signalled. */
    _Atomic unsigned nunproven; /* reads whose bytes are out, and the proof is not */
    struct unproven *unproven;  /* ... the first one first */
    uint64_t unproven_no;       /* the number of the last one */
    _Atomic bool doubt;         /* a proof has failed, and nobody has looked since: */
    struct version doubtful;    /* ... of this version, the newest such */
    uint64_t doubts;            /* goes up with each proof that fails */

    /* How often the kernel was told to drop its pages because another node had written: a handle that
     * has not asked since where the bytes are must not bring the older ones back (data_io.c). */
    _Atomic uint64_t drops;

    /* ---- flush part (owned by flush/queue.c and pass.c, RANK_POLICY) ---- */
    struct file *flush_next, **flush_prev;
    struct file_list *flush_list; /* which one it is on */
    uint64_t dirty_since_ms, retry_at_ms, pass_began_ms;
    uint8_t flush_policy; /* enum flush_policy + 1; 0: the mount's */
    unsigned flush_tries;
    int flush_error;          /* last error, 0 */
    uint64_t flush_failed_no; /* of the last failure, in the order of all files' */
    unsigned flush_error_seq; /* goes up with each failure ... */
    unsigned flush_error_no;  /* ... with each that is another one: told once to each handle */
    bool flush_queued;        /* on one of the policy's lists, which holds a reference */
    /* its claim is void (claim_forgotten.c): what is here is not flushed into the file */
    _Atomic bool forgotten;
    bool unchecked;        /* left by a dead daemon: is the PFS file still what it was based on? */
    bool flushing;         /* a pass (one copy-out) runs */
    bool flush_dirtied;    /* the store said so during the pass: it is not clean after it */
    bool flush_again;      /* who asked came during the pass: the next one is his */
    unsigned flush_urgent; /* who waits for it */
    uint64_t flush_seq, flush_begun, flush_ended; /* place in the order; passes */
};

/* Finds or makes the object (and its record, with this path hint; path may be NULL if it is known).
 * *out is referenced.  -ENOSPC: no record could be made; -EIO: the store is broken. */
int file_get(struct fid fid, const char *path, struct file **out);
/* Only if the store or the table knows it; NULL otherwise. */
struct file *file_find(struct fid fid);
/* Only if somebody has it: of a file that is neither open nor dirty no object is made. */
struct file *file_find_used(struct fid fid);
struct file *file_ref(struct file *f);
/* The last put closes descriptors (pfs_drop for the PFS's); a file that holds nothing (no pages, no
 * claim, not dirty) loses its record too. */
void file_put(struct file *f);
/* The same, by who has removed its last name: what the cache has of it may go later (remover.h). */
void file_put_removed(struct file *f);
/* Of one that is going: takes it down, and frees it.  (file.c and remover.c) */
void file_end(struct file *f);

/* New path hint (rename here, or NAMED from another node): object and record. */
void file_set_path(struct file *f, const char *path);
/* Copy of the hint, malloc'd. */
char *file_path(struct file *f);

#endif
