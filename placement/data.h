/* data.h - a file's data wherever its latest bytes are: here, at the claimant, at the chunk's
 * owner, on the PFS.
 *
 * What fs/ calls.  Blocking ones run in pool_waiters; *_now ones never block on PFS or network
 * (FUSE workers may call them).  When the answer is "not mine" or the version has gone, the home is
 * asked again and the call goes on where the bytes are now; -EIO when that leads nowhere until the call's
 * deadline, T_open after it began, which goes with it to all that it asks.  A reader beside writers ends by
 * reading the PFS as it is.
 */
#ifndef EDDY_PLACEMENT_DATA_H
#define EDDY_PLACEMENT_DATA_H

#include "placement/carry.h"
#include "placement/claims/claim.h"
#include "placement/store/file.h"
#include "placement/store/store_hit.h"

#include <sys/stat.h>
#include <sys/types.h>

struct stream;

/* Identity of the bytes that a kernel page cache filled now would hold: equal tags = same bytes. */
struct data_tag {
    uint64_t node, counter;
    struct version version;
};

static inline bool data_tag_eq(const struct data_tag *a, const struct data_tag *b)
{
    return a->node == b->node && a->counter == b->counter && version_eq(&a->version, &b->version);
}

/* What is known of a file that is on the PFS, from a look at it and a home's word that came
 * together. */
struct data_known {
    struct version version;
    uint64_t view;      /* in which the home answered */
    uint64_t looked_ms; /* boot_ms; 0: nothing is known */
};

/* Open handle's view of a file: where its data is.  For data*.c, but for f. */
struct data_handle {
    struct file *f;
    bool writes; /* opened for writing: a writer is counted, here or at the claimant */
    struct stream *_Atomic stream; /* read-ahead; NULL: none was needed yet (data_stream) */
    uint64_t pin_number; /* of this open at a claimant (CARRY_PIN_WRITER); 0: none was needed yet */
    struct lock lock;    /* RANK_LEAF: below */
    pthread_cond_t moved;
    bool moving;           /* somebody asks the home for all users of this handle */
    bool counted;          /* a writer is counted here: the claim is this node's and stays */
    uint64_t pinned;       /* node at which it is counted, or 0 */
    struct location where; /* last known; HERE and PFS are re-derived from the file */
    bool held;             /* data_open_known: the store holds held_bytes of it, in version known */
    uint64_t held_bytes;
    struct data_known known;
    /* not 0: the store's pages were racy: what the kernel has of this version may be older */
    uint64_t unlike;
    uint64_t looked_ms;   /* boot_ms before the look at the PFS that it was opened by */
    bool opening;         /* data_open, of a file that had a name when it was opened on the PFS */
    struct data_tag good; /* what the kernel caches by this handle is these bytes, or newer ones */
    _Atomic uint64_t drops_seen; /* data_drops when `where` was asked last */
};

/* Opens: asks the home (and the claim when write), sets the version of the store's pages from stx
 * (fresh fstat by pfs_open_file or pfs_create, not before looked_ms), truncates when trunc.  f is
 * referenced by the handle. */
int data_open(struct file *f, bool write, bool trunc, const struct statx *stx, uint64_t looked_ms,
              struct data_handle **out);
/* What a look at the PFS (not before looked_ms, and before the home answered *at) lets us know. */
struct data_known data_known(const struct version *seen, const struct location *at,
                             uint64_t looked_ms);
/* A home's later word: does what was known still hold? */
bool data_still_known(const struct data_known *k, const struct location *at);
/* As data_open, for reading, without the PFS: all of the file is in the store in the version that
 * is known, and the home says that nobody has changed it since; or the claim is here.  fixed:
 * nobody ever changes it, the home is not asked, and what is missing may be fetched.  -EAGAIN: it
 * must be opened as usual. */
int data_open_known(struct file *f, const struct data_known *k, bool fixed,
                    struct data_handle **out);
void data_close(struct data_handle *h); /* blocking: may give the claim back */
/* Before this node removes a name of f, open here: a claimant elsewhere keeps its bytes until the last
 * close here, or data_keep_end: the name stayed, or was not the last one.  True: it does, from now on.
 * Blocking. */
bool data_keep(struct file *f);
void data_keep_end(struct file *f);
/* This node has removed the file's last name.  A claimant elsewhere is told, so that it flushes nothing
 * of it any more; while it is open here it stays as it is there.  Blocking, best effort. */
void data_removed(struct file *f);
/* pfs_release, after data_close if there was a handle: with the last one that ends. */
void data_release(struct file *f);
/* Asks the home again (lock granted, ESTALE).  *changed: the kernel's cached pages may be stale, they are
 * those of *now or newer ones if they are read from now on. */
int data_revalidate(struct data_handle *h, bool *changed, struct data_tag *now);
/* The kernel's pages are about to be dropped: no read that begins from now on, by any handle of this
 * node, gives it older bytes than the newest that a handle has been told of by now. */
void data_dropping(struct data_handle *h);
void data_tag(struct data_handle *h, struct data_tag *out);
/* Size, times, blocks as the truth has them, without a message where it is here, else as last
 * heard. */
void data_attr(struct data_handle *h, struct location *out);
/* Both at once. */
void data_look(struct data_handle *h, struct location *out, struct data_tag *tag);

/* This open may read and write the data file itself (passthrough): as store_pass_open; -ENODATA
 * also where the bytes are not here.  An open for reading counts the whole file as read.  One
 * data_pass_close before data_close. */
int data_pass_open(struct data_handle *h, int *fd, unsigned *life);
void data_pass_close(struct data_handle *h, unsigned life);

/* Can the bytes be read now from the local store, all of them or up to the end of the file?  1: the read
 * has begun, as store_read_begin, and counts; the caller ends it.  0: use data_read.  -EAGAIN: they are
 * there, and what another read was given must be proved first (proof.h); never with `wait`, which blocks
 * for that, 2 s at most. */
int data_read_begin(struct data_handle *h, uint64_t off, size_t len, bool wait,
                    struct store_hit *hit);
int data_read(struct data_handle *h, void *buf, size_t len, uint64_t off, size_t *got);
/* op: CARRY_WRITE; CARRY_APPEND, where off is ignored and *off_out tells; CARRY_STORE.  -EAGAIN: must
 * wait (page to fill, no room, not here): use data_write. */
int data_write_now(struct data_handle *h, enum carry_op op, const void *buf, size_t len,
                   uint64_t off, uint64_t *off_out);
int data_write(struct data_handle *h, enum carry_op op, const void *buf, size_t len, uint64_t off,
               uint64_t *off_out);
int data_truncate(struct data_handle *h, uint64_t size);
/* mode 0, KEEP_SIZE, PUNCH_HOLE|KEEP_SIZE; else -EOPNOTSUPP */
int data_fallocate(struct data_handle *h, int mode, uint64_t off, uint64_t len);
int data_seek(struct data_handle *h, uint64_t off, bool hole, uint64_t *out);
/* To the disk of the node that has the bytes; pfs: to the PFS. */
int data_sync(struct data_handle *h, bool pfs);

#endif
