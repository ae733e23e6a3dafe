/* range.h - who works on which pages of a file now.
 *
 * Disk I/O happens without f->lock; what keeps two calls from each other's pages meanwhile is a
 * list of page ranges per file, in order of arrival.  One waits (on f->changed) for every earlier
 * one that overlaps and may not run beside it:
 *
 *             PIN   READ  WRITE  DROP
 *     PIN      +     +     +      -       a reader: the pages must stay
 *     READ     +     +     -      -       their bytes must not change either
 *     WRITE    +     -     -      -       bytes are put into pages (writes, fills)
 *     DROP     -     -     -      -       bytes go away (truncate, punch, a new version, eviction)
 *
 * A thread has one at a time per file, and takes nothing else of that file before it ends: no
 * cycles.  Pins end in any order.
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

/* True: it has waited, with f->lock dropped meanwhile: look at the file again.  op lives until
 * range_end. */
bool range_begin(struct file *f, struct range_op *op, enum range_kind kind, uint64_t first,
                 uint64_t last);
/* The same, without waiting: false, and there is none, where it would have to. */
bool range_try(struct file *f, struct range_op *op, enum range_kind kind, uint64_t first,
               uint64_t last);
void range_end(struct file *f, struct range_op *op);
/* Does anybody work on (or wait for) a page of these? */
bool range_busy(const struct file *f, uint64_t first, uint64_t last);
/* Is a WRITE or DROP of this page under way (or waited for)?  *until: the answer holds up to this
 * page. */
bool range_changing(const struct file *f, uint64_t page, uint64_t *until);

#endif
