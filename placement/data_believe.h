/* data_believe.h - what the kernel may believe of an open file's bytes, and what an end of that means for handles and
 * passthrough descriptors (docs/protocol.md, "Looking").
 */
#ifndef EDDY_PLACEMENT_DATA_BELIEVE_H
#define EDDY_PLACEMENT_DATA_BELIEVE_H

#include "placement/data.h"

/* May the kernel keep the bytes that the last read by this handle gave it?  True if this node is told before they change:
 * by the file's home, by its claimant, or as its claimant. */
bool data_is_told(struct data_handle *h);
/* May an open be served from the kernel's pages, or from the data file by the kernel?  True if the bytes are here or on the
 * PFS, and nothing has ended that since the handle asked.  A break that comes after this answer comes after the
 * open is counted, if both are done under one lock (fs/handle_mode.c). */
bool data_may_cache(struct data_handle *h);
/* One byte of the file, from where it is.  -ESTALE: the file has no such byte any more.  Blocking. */
int data_byte(struct file *f, enum where where, uint64_t node, uint64_t off, char *out);
/* To be called when an open or a lock has found where the bytes are.  Passthrough descriptors of the file that are open
 * here must not read bytes of an older version: its shadow (shadow.h) gets all of it, if that is not there yet.  If that
 * fails they go on with what they have, and a log line says so.  Blocking. */
void data_follow(struct data_handle *h);
/* The claimant has answered a change of the file, which was made by no handle; nothing is noted of a file that is not open here. */
struct carry_result;
void data_said(struct file *f, const struct carry_result *r);
/* All that this node believes of the file's bytes may be old: no handle of this node gives the kernel bytes from now on
 * before it has asked where they are. */
void data_break(struct file *f);

#endif
