/* attr.h - what the kernel is told of a file (attr.c). */
#ifndef EDDY_FS_ATTR_H
#define EDDY_FS_ATTR_H

#include "fs/belief.h"
#include "fs/inode.h"
#include "fs/request.h"
#include "placement/claims/claim.h"

/* stat of the application from the PFS's statx and where the latest bytes are: size, mtime, ctime,
 * blocks of a claimed file are the claimant's word. */
void attr_merge(struct stat *st, const struct statx *stx, const struct location *loc);
/* The same as it is told of inode i, and remembers that (told_times.c). */
void attr_tell(struct inode *i, struct stat *st, const struct statx *stx,
               const struct location *loc);
/* Asks the PFS's statx's fid's home where needed (regular files only) and merges. Blocking.  The
 * look at the PFS began at looked_ms (boot_ms) or later.
 * On error (-EIO: the latest bytes are lost until a node returns) *st is filled with what the PFS
 * has.  *b: whether the kernel may believe it. */
int attr_complete(struct inode *i, struct statx *stx, uint64_t looked_ms, struct stat *st,
                  struct belief *b);
/* Between the look at the PFS and the home's answer a claimant flushed and gave its claim back:
 * look again. */
bool attr_overtaken(const struct statx *stx, const struct location *loc);
/* Fresh statx of a known inode: by an open descriptor, else by any of its names.  -ESTALE: it is
 * not where it was. Blocking. */
int attr_stat(struct inode *i, struct statx *stx);
/* Both: what getattr answers; *looked_ms: boot_ms before the look.  Blocking. */
int attr_get(struct inode *i, struct stat *st, uint64_t *looked_ms, struct belief *b);
/* Remembers what the kernel is told (i->attr). */
void attr_remember(struct inode *i, const struct stat *st);
/* The same of what a look that began at looked_ms (boot_ms) saw, unless something newer is remembered: the
 * kernel may then be told both in the wrong order. */
void attr_remember_look(struct inode *i, const struct stat *st, uint64_t looked_ms);
/* Is it of the size and mtime of *at?  Inode locked. */
bool attr_is(const struct inode *i, const struct location *at);
/* An open found *at at `looked_ms` or later (boot_ms), and has let the kernel drop the attributes that
 * it had: of a file that goes unflushed while it is open, nothing later may be known. */
void attr_opened(struct inode *i, const struct location *at, uint64_t looked_ms);
/* A look at the PFS from looked_ms on (boot_ms) found *stx, and the home said *at: what is the PFS's word
 * alone is remembered, before known_note says how old that is. */
void attr_seen(struct inode *i, const struct statx *stx, const struct location *at,
               uint64_t looked_ms);
/* This node's pass has made the PFS have f as *stx (flush_on_copied).  If that is what this node alone has
 * made it, it is remembered, and known; the kernel asks.  Without a lock. */
void attr_flushed(struct file *f, const struct statx *stx, uint64_t looked_ms);
/* What was last known, with our own word on the size if we hold the claim: while the PFS hangs.
 * False: nothing is known. */
bool attr_last(struct inode *i, struct stat *st);
/* Answers an entry: inode_found was called by the caller; drops the lookup count again if it was
 * not taken.  Takes over the caller's reference of i and ends r.  The caller has remembered the attributes, unless b
 * says that the kernel must ask again before it uses them. */
void reply_entry(struct request *r, struct inode *i, const struct stat *st, struct belief *b);
/* Answers with attributes of r->inode, and ends r. */
void reply_attr(struct request *r, const struct stat *st, double timeout, struct belief *b);
/* The parts of reply_entry: what the kernel is told of i, from belief_begin until the caller's belief_end. */
void entry_fill(struct fuse_entry_param *e, struct inode *i, const struct stat *st, struct belief *b);
void entry_fill_known(struct fuse_entry_param *e, struct inode *i, const struct stat *st,
                      double left, struct belief *b); /* good for `left` seconds more */
/* What a look less than the attribute time-out ago saw, if no node has changed the file since, and for how
 * many seconds it may still be told; it is remembered as told.  here: false if the PFS or another node must
 * be asked.  The other asks the home (blocking): -EAGAIN: the PFS must be looked at; -errno. */
bool attr_known_here(struct inode *i, struct stat *st, double *left, struct belief *b);
int attr_known(struct inode *i, struct stat *st, double *left, struct belief *b);

void attr_born(struct inode *i);       /* this node has just created it */
void attr_touched(struct inode *i);    /* this node has changed more than its data */

#endif
