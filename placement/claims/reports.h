/* reports.h - the contents of this node's ADOPTED for each member (docs/protocol.md, rule 3).
 *
 *     all claims, records, locks --> sorted by the home of each --> a range per member --> pieces
 *
 * All members are told of one report, made when the view is adopted: to go through everything for
 * each of them would take (members x files), 2.7 s for 1,000 and 100,000 (docs/scale.md), in which
 * the network thread answers no node.  It stays as it is until the last member has it, however many
 * pieces that takes, so a piece is the same each time that it is sent.  It is the only copy: beside
 * it there is one piece per member that is on its way.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_REPORTS_H
#define EDDY_PLACEMENT_CLAIMS_REPORTS_H

#include "transport/members.h"
#include "transport/view.h"

/* Network thread, all three; see struct members_ops. */
/* As it is now.  farewell: v is the view without this node; its locks have been given back. */
void *reports_make(const struct view *v, bool farewell);
/* The lists of piece m->adopted.piece for v's member `to`, which point into the report, and
 * m->adopted.more.  A piece beyond the last one is empty. */
void reports_fill(const void *report, uint64_t to, struct msg *m);
void reports_free(void *report);

#endif
