/* reports.h - the contents of this node's ADOPTED for each member (docs/protocol.md, rule 3).
 *
 *     all claims, records, locks --> with the home of each --> sorted by it --> a slice per member
 *
 * All members get ADOPTED at once, when a view is adopted.  Searching everything for each of them
 * would take (members x files) steps: 2.7 s for 1,000 and 100,000 (docs/scale.md), in which the network
 * thread answers no message.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_REPORTS_H
#define EDDY_PLACEMENT_CLAIMS_REPORTS_H

#include "transport/members.h"

/* Network thread, all three. */
/* From now on until reports_end, the contents are those of now. */
void reports_begin(const struct view *v);
void reports_end(void);
/* The contents for v's member `to`; 0: for all.  The lists are malloc'd. */
void reports_fill(const struct view *v, uint64_t to, struct msg *m);

#endif
