/* retry.h - what failed: when it is tried again, and what is said about it (retry.c); flush.lock held. */
#ifndef EDDY_FLUSH_RETRY_H
#define EDDY_FLUSH_RETRY_H

#include "flush/queue.h"

uint64_t retry_next_ms(void); /* NEVER: nothing failed, or other files come first */
/* Failed files whose time has come are ready again (asked: all, whatever their time). */
void retry_due(bool asked, uint64_t now);
/* Counts the failure, sets when it is tried again; true: it must be logged (without the lock:
 * retry_log). */
bool retry_failed(struct flush_item *it, int err, uint64_t now);
/* Is its claim void (eddy forget), and is it open?  Its data is put beside it when it is closed
 * (flush_forgotten): nothing has failed. */
bool retry_is_wait(const struct flush_item *it, int err);
void retry_waited(struct flush_item *it, uint64_t now);
void retry_succeeded(struct flush_item *it);
void retry_log(struct file *f, int err);

#endif
