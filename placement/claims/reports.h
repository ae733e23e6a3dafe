/* reports.h - what this node tells each member in ADOPTED (docs/protocol.md, rule 3).
 *
 *     all claims, records, locks --> with the home of each --> sorted by it --> a slice per member
 *
 * All members are told at once, when a view is adopted: to go through everything for each of them
 * would take (members x files), 2.7 s for 1,000 and 100,000 (docs/scale.md), in which the network
 * thread answers nobody.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_REPORTS_H
#define EDDY_PLACEMENT_CLAIMS_REPORTS_H

#include "transport/members.h"

/* Network thread, all three. */
/* From now on until reports_end all is told as it is now. */
void reports_begin(const struct view *v);
void reports_end(void);
/* What v's member `to` is told; 0: all.  The lists are malloc'd. */
void reports_fill(const struct view *v, uint64_t to, struct msg *m);

#endif
