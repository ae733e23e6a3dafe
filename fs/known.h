/* known.h - what needs no look at the PFS (known.c). */
#ifndef EDDY_FS_KNOWN_H
#define EDDY_FS_KNOWN_H

#include "fs/inode.h"
#include "placement/claims/claim.h"

/* Below a path of --immutable?  Of what was found in parent (NULL: the root itself). */
void known_set_immutable(struct inode *i, const struct inode *parent);
/* How long the kernel may believe attributes and names in a directory, and that a name in it is not
 * there. */
double known_timeout(const struct inode *i);
double known_negative_timeout(const struct inode *dir);
/* True: closes of opens that only read the file must be told, as they may end locks. */
bool known_closes_matter(const struct inode *i);
/* A look at the PFS, begun at looked_ms, and then the home's answer; at may be NULL: nothing is
 * known now. */
void known_note(struct inode *i, const struct statx *stx, const struct location *at,
                uint64_t looked_ms);
/* Opens f (of i) for reading without the PFS, and counts the open.  -EAGAIN: it must be opened as
 * usual. */
int known_open(struct inode *i, struct file *f, struct data_handle **out);
/* Before the name in dir goes, or when the PFS will be needed: what is open without a descriptor
 * gets one, if it can be had. */
void known_want_descriptor(struct inode *i);
/* ... by name; its file, referenced, if it is open here. */
struct file *known_before_removal(struct inode *dir, const char *name);

#endif
