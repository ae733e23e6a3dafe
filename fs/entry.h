/* entry.h - answers to the kernel that hold attributes, and what it may believe of them (belief.h). */
#ifndef EDDY_FS_ENTRY_H
#define EDDY_FS_ENTRY_H

#include "fs/belief.h"
#include "fs/inode.h"
#include "fs/request.h"

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

#endif
