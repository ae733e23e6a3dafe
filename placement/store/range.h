/* range.h - which calls work on which pages of a file now.
 *
 * Disk I/O happens without f->lock.  So each file has a list of page ranges, in the order in which
 * calls came, which keeps two calls from changing the same pages.  A range waits (on f->changed) for
 * every earlier one that overlaps with it and may not run beside it:
 *
 *             PIN   READ  WRITE  DROP
 *     PIN      +     +     +      -       a reader: the pages must stay
 *     READ     +     +     -      -       their bytes must not change either
 *     WRITE    +     -     -      -       bytes are put into pages (writes, fills)
 *     DROP     -     -     -      -       bytes go away (truncate, punch, a new version, eviction)
 *
 * A thread has at most one range in a file, and waits for nothing else of that file before it ends the
 * range.  So threads can not wait for each other in a circle.  Pins end in any order.
 */
#ifndef EDDY_PLACEMENT_STORE_RANGE_H
#define EDDY_PLACEMENT_STORE_RANGE_H

#include "placement/store/file.h"

enum range_kind { RANGE_PIN, RANGE_READ, RANGE_WRITE, RANGE_DROP };

struct range_op {
    struct range_op *next;
    uint64_t first, last; /* pages; UINT64_MAX = to infinity */
    enum range_kind kind;
};

/* f->lock must be held when you call any function below this line. */

/* Begins a range; op must live until range_end.  True: it has waited, and f->lock was dropped meanwhile: the
 * caller must look at the file again. */
bool range_begin(struct file *f, struct range_op *op, enum range_kind kind, uint64_t first,
                 uint64_t last);
/* The same without waiting.  False: it would have to wait, and no range has begun. */
bool range_try(struct file *f, struct range_op *op, enum range_kind kind, uint64_t first,
               uint64_t last);
void range_end(struct file *f, struct range_op *op);
/* Does any call work on one of these pages, or wait for one? */
bool range_busy(const struct file *f, uint64_t first, uint64_t last);
/* Does a WRITE or DROP of this page run, or wait?  *until: the answer is the same up to this page. */
bool range_changing(const struct file *f, uint64_t page, uint64_t *until);

#endif
