/* claim_own.h - this node's own claims as ADOPTED lists them.  Private to placement/claims/claim*.c and
 * reports.c.
 *
 * Accepting a GRANT and adopting a view exclude each other: a claim is either in the list of
 * ADOPTED(k), or it was granted in view k or later (rule 10).  One lock (RANK_LEAF) guards both.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_CLAIM_OWN_H
#define EDDY_PLACEMENT_CLAIMS_CLAIM_OWN_H

#include "placement/store/file.h"
#include "transport/message.h"

/* Adds the claim if `view` is still the adopted one and the lease is valid (view 0: at the start,
 * always).  From now on it is in ADOPTED.  But no node is told that this node has the truth
 * before own_ready: the store must first get the PFS's version. */
bool own_add(struct fid fid, uint64_t inc, uint64_t number, uint64_t view);
void own_ready(struct fid fid);
void own_remove(struct fid fid);
bool own_has(struct fid fid, uint64_t *inc, uint64_t *number);
bool own_all_ready(void);
unsigned own_count(void);
/* From now on only grants of this view are accepted (0: none). */
void own_adopted(uint64_t view);
/* All claims: malloc'd. */
void own_list(uint32_t *n, struct item_claim **out);
/* Calls fn for each file that is claimed, on a copy of the table: fn may take locks. */
void own_each(void (*fn)(struct file *f));
void own_each_arg(void (*fn)(void *arg, struct file *f), void *arg); /* the same */
void own_start(void);
void own_stop(void);

#endif
