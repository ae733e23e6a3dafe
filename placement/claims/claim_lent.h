/* claim_lent.h - claims of files of which parts are lent to other nodes (placement/lend.h). */
#ifndef EDDY_PLACEMENT_CLAIMS_CLAIM_LENT_H
#define EDDY_PLACEMENT_CLAIMS_CLAIM_LENT_H

#include "placement/store/file.h"

/* The claim that this node has: its number.  False: it has none. */
bool claim_id(struct file *f, uint64_t *inc, uint64_t *number);
/* Calls fn for each file that this node has claimed. */
void claim_each(void (*fn)(void *arg, struct file *f), void *arg);
/* Parts of a file may be lent (store_lend.h): before this node says its size and times, and may wait, fn brings them in
 * until end_ms; *size is what is told.  -errno: *away does not answer, and the file counts as lost until it does.  NULL: no more; no call is under way. */
void claim_on_lent(int (*fn)(struct file *f, uint64_t end_ms, uint64_t *away, uint64_t *size));
/* The file's exact size, of this claimant; the home is not asked.  Blocking, until end_ms.  -ENOENT: it is not the claimant;
 * -EIO: it, or a node that it has lent parts to, does not answer. */
int claim_size(struct fid fid, uint64_t node, uint64_t end_ms, uint64_t *size);

#endif
