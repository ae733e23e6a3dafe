/* store_change.h - what all changes of a file's bytes are made of: store_write.c, store_resize.c,
 * store_punch.c, store_fill.c.
 *
 * Each change has a range of pages to itself (range.h) and runs in three steps, of which the middle
 * one is without f->lock: mark in the records what is about to change, move the bytes, mark that
 * they are there.
 *
 * f->lock must be held when you call any function below this line, but for change_put.
 */
#ifndef EDDY_PLACEMENT_STORE_STORE_CHANGE_H
#define EDDY_PLACEMENT_STORE_STORE_CHANGE_H

#include "placement/store/file.h"
#include "placement/store/store_open.h"

/* What space_reserve gave, less what was used of it: for space_return. */
struct room {
    uint64_t bytes;
    uint32_t chunks;
};
/* Room for pages [first, last]; *r is what was set aside before, or zero.  f->lock is dropped
 * meanwhile; with a range op on the pages, so that no other call changes what they need. */
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

/* Before the file becomes longer: what a truncation that failed has left behind its end would come
 * back.  With f->lock throughout: no two do this beside each other's writes behind the end. */
int change_clear_end(struct file *f);

/* The record after a write up to `end`; after the file has another size. */
void change_wrote(struct file *f, uint64_t end);
void change_resized(struct file *f, uint64_t size);

/* A WRITE op from the page of the end of the file on: while it lasts, nobody moves the end.  False, and
 * there is none: it may not wait, and would have to. */
bool change_begin_at_end(struct file *f, struct range_op *op, bool wait);

#endif
