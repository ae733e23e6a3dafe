/* store_change.h - what all changes of a file's bytes are made of: store_write.c, store_resize.c,
 * store_punch.c, store_fill.c.
 *
 * Each change has a range of pages to itself (range.h), and three steps.  First the records say what will
 * change.  Then the bytes are moved, without f->lock.  Then the records say that the bytes are there.
 *
 * f->lock must be held when you call any function below this line, but for change_put.
 */
#ifndef EDDY_PLACEMENT_STORE_STORE_CHANGE_H
#define EDDY_PLACEMENT_STORE_STORE_CHANGE_H

#include "placement/store/file.h"
#include "placement/store/store_open.h"

/* What space_reserve gave, less what the change has used: for space_return. */
struct room {
    uint64_t bytes;
    uint32_t chunks;
};
/* Sets room aside for pages [first, last]; *r is what was set aside before, or zero.  f->lock is dropped
 * meanwhile.  The caller has a range on the pages, so that no other call changes how much room they need. */
int change_make_room(struct file *f, uint64_t first, uint64_t last, enum space_limit limit,
                     struct room *r);
/* The same for pages that become zeros without blocks. */
int change_make_records(struct file *f, uint64_t first, uint64_t last, enum space_limit limit,
                        struct room *r);

/* -ENODATA if the first or last page of the range must be filled before it is changed: *fill_off. */
int change_check_edges(struct file *f, uint64_t off, uint64_t len, uint64_t *fill_off);

/* How many zeros belong before and after the bytes, so that pages that were not valid are whole. */
struct padding {
    size_t before, after;
};
struct padding change_padding(struct file *f, uint64_t off, uint64_t len);
int change_put(struct file *f, const void *buf, size_t len, uint64_t off, struct padding p);

/* Called before the file becomes longer.  Removes what a failed truncation has left behind the end, which
 * would come back otherwise.  Keeps f->lock throughout, so that no write behind the end runs beside it. */
int change_clear_end(struct file *f);

/* Called before bytes of the file change.  A run that is under way may have the older ones: if this daemon dies before change_wrote,
 * the record must tell that those may be gone here (flush/made.c). */
void change_begins(struct file *f);
/* Change the record: after a write up to `end`; after the file got another size. */
void change_wrote(struct file *f, uint64_t end);
void change_resized(struct file *f, uint64_t size);
/* What the PFS has from `from` on does not count any more; the size stays. */
void change_cut(struct file *f, uint64_t from);

/* Begins a WRITE range from the page of the file's end on: until it ends, no other call moves the end.
 * False: it would have to wait, and `wait` is false; no range has begun. */
bool change_begin_at_end(struct file *f, struct range_op *op, bool wait);

#endif
