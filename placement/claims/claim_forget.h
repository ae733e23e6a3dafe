/* claim_forget.h - claims that an operator has forgotten while their node was away (docs/protocol.md, 17): what the
 * node does with its own, and the asking for it. */
#ifndef EDDY_PLACEMENT_CLAIMS_CLAIM_FORGET_H
#define EDDY_PLACEMENT_CLAIMS_CLAIM_FORGET_H

#include "placement/store/file.h"

/* ... and after flush_check_recovered has put the forgotten files aside: removes their marks, except for
 * the marks of files that could not be put aside. */
void claim_marks_done(void);
/* A forgotten file has been put aside: removes its mark.  Call it before its claim is given back, so
 * that the mark covers no later claim.  Blocks on the PFS. */
void claim_forgotten_settled(struct file *f);
/* fn is called when a file's claim is found to be void while the daemon runs: the file is to be put aside
 * soon. */
void claim_on_forgotten(void (*fn)(struct file *f));
/* A descriptor of it was closed here: if its claim is void, fn is called once more. */
void claim_closed(struct file *f);
/* Is its claim void, and the file not put aside yet?  Any thread. */
bool claim_is_forgotten(const struct file *f);
/* The same for an open, which must fail with -EIO then: the reason is logged.  To be asked when the open is
 * counted: the flusher puts the file aside only after it has looked at that count. */
bool claim_is_void(struct file *f);
/* To be called before each piece of a file is flushed.  0; -EIO: its claim is void (an operator has
 * forgotten it while this node was cut off); or the PFS's error.  May block on the PFS. */
int claim_may_flush(struct file *f);
/* Asks the home to forget what absent nodes have of a file.  0: done; -EAGAIN: call it again until
 * *wait_ms is over; -ENODATA: no absent node has it; -EBUSY: node *node has it, and is in the
 * session; else the error.  Blocks, <= T_open. */
int claim_forget(struct fid fid, uint64_t *node, uint32_t *wait_ms);

#endif
