/* tell.h - what a claimant tells the watchers of a file: nodes with descriptors of it that cache (docs/protocol.md,
 * "Looking").
 *
 *     change made in the store --> this node's own kernel --> CHANGED to each watcher but the asker --> acknowledged
 *
 * A watcher answers when its kernel has nothing older any more (told.c), and says which such descriptors it still has:
 * without one it is no watcher any more.  Watchers with passthrough descriptors get the bytes, for the data file that these
 * read (shadow.h); this node's own such descriptors get them in the same way.  Watchers that append, and this node's own
 * kernel, get the size with the last byte, by which the kernel takes it (fs/belief.c).  The bytes of one file are
 * read from the store again and sent in one order, so that the last ones that arrive are the file's.  A watcher that
 * does not answer is asked again until it answers, or has been out of the view for so long that it believes nothing
 * any more.
 */
#ifndef EDDY_PLACEMENT_TELL_H
#define EDDY_PLACEMENT_TELL_H

#include "placement/carry.h"
#include "placement/store/file.h"

/* What has changed in a file; as it is in the message. */
enum told_what {
    TOLD_ATTR = 1, /* its size and times alone */
    TOLD_BYTES,    /* [off, off + len); the bytes come along for a watcher that has passthrough descriptors */
    TOLD_ZEROS,    /* [off, off + len) are zeros */
    TOLD_CUT,      /* it was truncated to `size`, which may be more than before */
    TOLD_DROP,     /* it has no name any more, and bytes that only the claimant has: a node that has it open is to be
                      counted there before it answers */
};
struct told_change {
    enum told_what what;
    uint64_t off, len;
    uint64_t size;     /* of the file, after it */
    const void *bytes; /* TOLD_BYTES: len bytes; NULL: they did not come */
    bool ends;         /* size > 0, and this is the last byte: */
    char last;
};

/* What a change touches; false: nothing that a node could believe. */
bool told_of(const struct change *c, struct told_change *out);

void tell_start(void);
void tell_stop(void); /* what is under way ends as if answered; while the loop runs */

/* Must anybody be told, `but` left out?  Cheap; any thread. */
bool tell_must(struct file *f, uint64_t but);
/* Tells the watchers but `but`; then done(arg) is called, in the network thread, or at once if there is none.  The
 * caller keeps its reference to f until then.  Any thread that holds no lock. */
void tell_all(struct file *f, const struct told_change *c, uint64_t but, void (*done)(void *arg), void *arg);
/* After a change that was made here, by this node or for node `but`: tells the watchers, and waits, unless the change comes
 * from a mapping (CARRY_STORE).  A watcher's kernel may have to write such a page back before it can drop it, and two nodes
 * with stores to one page would wait for each other; README says what holds for mappings.  A pool thread that holds no
 * lock. */
void tell_changed(struct file *f, const struct change *c, uint64_t but);
/* A file without a name, of which this node has bytes that the PFS never gets, is about to be given back: all nodes
 * that have it open, of whatever kind, are told, so that they are counted here.  Then claim_drop_told is called.
 * Does not wait; any thread that holds no lock. */
void tell_drop(struct file *f);
/* This node's own mount and its passthrough descriptors, of a change that another node carried here. */
void tell_mount(struct file *f, const struct told_change *c);

/* ---- the watcher's side (told.c) ---- */
void told_start(void); /* registers the handler: before peer_start */
void told_stop(void);
/* Registered by fs: ends what this node believes of these bytes of the file; returns LOOKER_... of the
 * descriptors that are left.  A pool thread that holds no lock.  NULL: none any more; no call is under way when this
 * returns. */
void told_on_change(unsigned (*fn)(struct fid fid, const struct told_change *c));
/* Calls fn, after look_break. */
unsigned told_here(struct fid fid, const struct told_change *c);
/* Makes the change in the file's shadow, if it has one. */
void told_shadow(struct file *f, const struct told_change *c);

#endif
