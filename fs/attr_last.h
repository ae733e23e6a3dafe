/* attr_last.h - what the kernel was told last of a file's attributes (attr_last.c). */
#ifndef EDDY_FS_ATTR_LAST_H
#define EDDY_FS_ATTR_LAST_H

#include "fs/inode.h"
#include "placement/claims/claim.h"

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
/* This node's flush has made the PFS have f as *stx (flush_on_copied).  If that is what this node alone has
 * made it, it is remembered, and known; the kernel asks.  Without a lock. */
void attr_flushed(struct file *f, const struct statx *stx, uint64_t looked_ms);
/* What was last known, with our own word on the size if we hold the claim: while the PFS hangs.
 * False: nothing is known. */
bool attr_last(struct inode *i, struct stat *st);
/* The same, if no other node is known to have changed the file since: for applications. */
bool attr_stands(struct inode *i, struct stat *st);
/* What was known, *k, is the answer now.  Something newer may have been remembered since: that stays, and the
 * kernel may get both answers in the wrong order.  own: no other node has changed the
 * file. */
void attr_remember_known(struct inode *i, const struct stat *st, const struct data_known *k, bool own);
/* All changes came through this mount: the kernel knows the size itself, and drops answers to questions
 * from before one of them. */
bool attr_changed_here_only(struct file *f);
void attr_born(struct inode *i);    /* this node has just created it */
void attr_touched(struct inode *i); /* this node has changed more than its data */

#endif
