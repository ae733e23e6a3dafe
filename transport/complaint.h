/* complaint.h - "logged once a minute and source": for wrong data from others, however much they send.
 *
 * Any thread.
 */
#ifndef EDDY_TRANSPORT_COMPLAINT_H
#define EDDY_TRANSPORT_COMPLAINT_H

#include "transport/base.h"

#define COMPLAINT_MORE 56

/* True if a line about `who` (an address, a node's name) is due.  Then `more` is set to the text for the
 * line's end: "" or " (and 17 more since the last line)". */
bool complaint_due(const char *who, char more[COMPLAINT_MORE]);
/* "node NAME: WHAT: refused", if it is due. */
void complain_of_node(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
