/* data.h - a file's data wherever its latest bytes are: here, at the claimant, at the chunk's
 * owner, on the PFS.
 *
 * These are the functions that fs/ calls.  Those that block run in pool_waiters.  Those with _now in their
 * names never wait for the PFS or the network; FUSE workers may call them.
 *
 * If a node answers "not mine", or the version is gone, the call asks the home again and goes on where the
 * bytes are now.  It does so until its deadline, T_open after it began, and then returns -EIO.  All that the
 * call asks has the same deadline.  If other nodes write again and again while a call reads, the call reads
 * the PFS file as it is in the end.
 */
#ifndef EDDY_PLACEMENT_DATA_H
#define EDDY_PLACEMENT_DATA_H

#include "placement/borrow.h"
#include "placement/carry.h"
#include "placement/claims/claim.h"
#include "placement/owed.h"
#include "placement/store/file.h"
#include "placement/store/store_hit.h"

#include <sys/stat.h>
#include <sys/types.h>

struct stream;

/* Identifies the bytes that the kernel's page cache would get if it were filled now: equal tags, same
 * bytes. */
struct data_tag {
    uint64_t node, counter;
    struct version version;
};

static inline bool data_tag_eq(const struct data_tag *a, const struct data_tag *b)
{
    return a->node == b->node && a->counter == b->counter && version_eq(&a->version, &b->version);
}

/* What is known of a file that is on the PFS, from a look at it and a home's answer at about the same
 * time. */
struct data_known {
    struct version version;
    uint64_t view;      /* in which the home answered */
    uint64_t looked_ms; /* boot_ms; 0: nothing is known */
};

/* An open handle: where the file's data is.  All members but f are private to data*.c. */
struct data_handle {
    struct file *f;
    bool writes; /* opened for writing: a writer is counted, here or at the claimant */
    bool appends;
    struct stream *_Atomic stream; /* read-ahead; NULL: none was needed yet (data_stream) */
    uint64_t pin_number; /* of this open at a claimant (claims/pins.h); 0: none was needed yet */
    struct lock lock;    /* RANK_LEAF: the members below */
    pthread_cond_t moved;
    bool moving;           /* one thread asks the home, for all that use this handle */
    bool counted;          /* a writer is counted here: this node has the claim and keeps it */
    uint64_t pin_asked;    /* node that was asked to count it, and is not `pinned`: it may count it, or not; or 0 */
    uint64_t pinned;       /* node at which this open is counted, or 0 ... */
    uint64_t pinned_in;    /* ... and, of one that only reads, the view in which it was */
    struct location where; /* last known; HERE and PFS are found anew from the file at each use */
    uint64_t claimant_inc; /* NODE: its incarnation when it said so */
    /* NODE: the claimant tells this node of each change (it said so with the last bytes that it sent). */
    bool watched;
    bool anchored;         /* data_open_known: the store keeps anchored_bytes of the file, in version known */
    uint64_t anchored_bytes;
    struct data_known known;
    /* not 0: the store's pages were racy, so that the kernel's pages of this version may be older */
    uint64_t unlike;
    uint64_t looked_ms;   /* boot_ms before the look at the PFS with which it was opened */
    bool opening;         /* in data_open, of a file that must not lose its last name meanwhile */
    struct data_tag good; /* the kernel caches these bytes by this handle, or newer ones */
    struct owed owed;              /* what other nodes have acknowledged, and no sync has covered; it has its own lock */
    _Atomic unsigned voided_seen;  /* borrow_voided that its syncs and closes have told */
    bool borrows;                  /* borrow_opened was called */
    struct borrow_pattern pattern; /* of its writes, while another node is the claimant */
    _Atomic uint64_t drops_seen; /* data_drops when the home was last asked where the bytes are */
};

enum data_use {
    DATA_READS,
    DATA_WRITES,
    DATA_APPENDS, /* writes, and the kernel counts the places: this node is told of the size (claims/claim_watch.h) */
};
/* Opens a file: asks the home; to write, takes the claim or counts a writer at the claimant; gives the
 * store's pages the version in stx, which pfs_open_file or pfs_create got at looked_ms or later; truncates
 * if trunc.  named: it has a name; if it loses the last one meanwhile, that is -ESTALE.  The handle takes its
 * own reference to f.  0 or -errno. */
int data_open(struct file *f, enum data_use use, bool trunc, const struct statx *stx, uint64_t looked_ms,
              bool named, struct data_handle **out);
/* What is known from a look at the PFS, which was made after looked_ms, and before the home answered *at. */
struct data_known data_known(const struct version *seen, const struct location *at,
                             uint64_t looked_ms);
/* True: after the home's later answer *at, what was known is still right. */
bool data_still_known(const struct data_known *k, const struct location *at);
/* As data_open, for reading, and without the PFS.  This is possible if the claim is here, or if the store has
 * all of the file in the known version and the home says that no node has changed it since.  fixed: the file
 * never changes; then the home is not asked, and missing bytes may be fetched.  -EAGAIN: it must be opened
 * with data_open. */
int data_open_known(struct file *f, const struct data_known *k, bool fixed,
                    struct data_handle **out);
void data_close(struct data_handle *h); /* blocking: may give the claim back */
/* To be called before this node removes a name of f, which is open here.  A claimant elsewhere keeps the
 * file's bytes from now on, until the last close here or data_keep_end (which is called if the name stayed,
 * or was not the last one).  Also if it has said that it drops them, as the file has no name any more
 * (dropping): unless it keeps them, no older ones are read here after it has left.  True: it keeps them.
 * Blocking. */
bool data_keep(struct file *f, bool dropping);
void data_keep_end(struct file *f);
/* This node has removed the file's last name.  Tells a claimant elsewhere, so that it flushes nothing of the
 * file any more; as long as the file is open here, the claimant keeps it.  Blocking; errors are ignored. */
void data_removed(struct file *f);
/* What is dirty of f goes to the PFS now, whichever node has it.  To be called before a name of f is removed,
 * if the file has others and none of them is known.  0: the PFS has it; -EIO: the node that has it is away;
 * -errno of the failed flush.  Blocking. */
int data_flush(struct file *f);
/* Gives an open of the PFS's file back, after data_close if there was a handle.  With the file's last release data_keep ends,
 * too, and what claim_drop_unlinked does is done.  Blocking. */
void data_release(struct file *f);
/* Asks the home again (after a lock was granted, or ESTALE).  *changed: the kernel's cached pages may be
 * stale; pages that it reads from now on have the bytes of *now or newer ones. */
int data_revalidate(struct data_handle *h, bool *changed, struct data_tag *now);
/* The kernel's pages are about to be dropped.  No read that begins from now on, by any handle of this node,
 * gives the kernel older bytes than the newest that a handle has heard of by now. */
void data_dropping(struct data_handle *h);
void data_tag(struct data_handle *h, struct data_tag *out);
/* Size, times and blocks of the latest bytes if these are here, else as last heard.  Sends no message. */
void data_attr(struct data_handle *h, struct location *out);
/* data_attr and data_tag at once. */
void data_look(struct data_handle *h, struct location *out, struct data_tag *tag);

/* Lets the kernel read and write the data file by itself for this open (passthrough): as kernel_io_open;
 * -ENODATA also if the bytes are not here.  An open for reading counts the whole file as read.  The caller
 * calls data_kernel_io_close once, before data_close. */
int data_kernel_io_open(struct data_handle *h, int *fd, unsigned *life);
void data_kernel_io_close(struct data_handle *h, unsigned life);

/* Begins a read from the local store, if all the bytes, or those up to the end of the file, can be read from
 * it now.  1: the read has begun, as with store_read_begin, and is counted; the caller ends it.  0: the
 * caller uses data_read.  -EAGAIN: the bytes are there, but bytes that another read was given must be proved
 * first (proof.h); wait: waits for that instead, 2 s at most. */
int data_read_begin(struct data_handle *h, uint64_t off, size_t len, bool wait,
                    struct store_hit *hit);
int data_read(struct data_handle *h, void *buf, size_t len, uint64_t off, size_t *got);
/* op: CARRY_WRITE; CARRY_STORE; CARRY_APPEND, which ignores off and sets *off_out to the place.  -EAGAIN: the
 * write must wait (a page is to be filled, there is no room, the claim is not here): use data_write. */
int data_write_now(struct data_handle *h, enum carry_op op, const void *buf, size_t len,
                   uint64_t off, uint64_t *off_out);
int data_write(struct data_handle *h, enum carry_op op, const void *buf, size_t len, uint64_t off,
               uint64_t *off_out);
int data_truncate(struct data_handle *h, uint64_t size);
/* mode 0, KEEP_SIZE, PUNCH_HOLE|KEEP_SIZE; else -EOPNOTSUPP */
int data_fallocate(struct data_handle *h, int mode, uint64_t off, uint64_t len);
int data_seek(struct data_handle *h, uint64_t off, bool hole, uint64_t *out);
/* Syncs the file to the disk of the node that has the latest bytes; pfs: to the PFS.  -EIO, once, if what this handle had
 * changed at another node was given up with that node's claim (eddy forget). */
int data_sync(struct data_handle *h, bool pfs);

#endif
