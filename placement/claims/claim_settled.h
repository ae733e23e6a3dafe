/* claim_settled.h - does a look at the PFS count, if the file's home knows of no version?  Any thread. */
#ifndef EDDY_PLACEMENT_CLAIMS_CLAIM_SETTLED_H
#define EDDY_PLACEMENT_CLAIMS_CLAIM_SETTLED_H

#include "placement/claims/claim.h"

/* Did all homes act in this view already at looked_ms (boot_ms)?  Then they know of all claims that were
 * given back later, and the data of claims that were given back earlier was on the PFS by then. */
bool claim_settled(uint64_t view, uint64_t looked_ms);
/* A home that has just answered knows of no version.  Does the look at the PFS that began at looked_ms count?  Not if it was before
 * the home's view: a claim may have been given back to a home that is gone, after the look. */
bool claim_look_counts(const struct location *at, uint64_t looked_ms);
/* A home has answered in this view: it is complete, so all members have adopted the view. */
void claim_note_settled(uint64_t view);

#endif
