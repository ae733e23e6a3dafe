/* pages.h - the page bits of a file, kept true at every instant, and counted.
 *
 * Private to the store (placement/store/store*.c, space.c).  A page's life:
 *
 *   not valid --begin_write--> dirty --end_write--> valid+dirty --flushed--> valid --evicted-->
 *
 *   not valid --end_fill--> valid;   dirty --fail_write, or a crash--> not valid
 *
 * Pages are numbered from the file's start.  Ranges [first, last] are inclusive.  They lie in one
 * struct range_op of the caller, so that no other thread changes these pages while their bytes are
 * copied.  Room for new records is set aside before (space_reserve with pages_need).
 */
#ifndef EDDY_PLACEMENT_STORE_PAGES_H
#define EDDY_PLACEMENT_STORE_PAGES_H

#include "placement/store/page_bits.h"
#include "placement/store/range.h"
#include "placement/store/state.h"
#include "placement/store/store_open.h"

static inline uint64_t page_of(uint64_t off)
{
    return off / PAGE;
}
/* Last page of [off, off + len), len > 0. */
static inline uint64_t last_page(uint64_t off, uint64_t len)
{
    return (off + len - 1) / PAGE;
}

/* Evicts a chunk if it may go.  Takes the file's lock; the caller holds no lock.  True: there is more room
 * now.  wanted: called with the file's lock; true: no chunk of the file may go.  now: waits for no sync of
 * the cache's disk. */
bool pages_evict(struct file *f, uint64_t index, bool (*wanted)(struct file *f), bool now);

/* How many pages of a file are dirty, and zeros without blocks, as the records say: file.hollow begins so.  No
 * other thread has the file. */
uint64_t pages_hollow(const struct file_record *r);

/* f->lock must be held when you call any function below this line. */

bool page_valid(struct file *f, uint64_t page);
/* The first page in [first, last] whose bit of that kind is equal to `set`; last + 1 if there is none. */
uint64_t pages_find(struct file *f, uint64_t first, uint64_t last, unsigned kind, bool set);
/* For a reader: the first page in [first, last] that is not valid, and lies before `holes`; last + 1 if
 * there is none.  The chunks before it count as used now. */
uint64_t pages_use(struct file *f, uint64_t first, uint64_t last, uint64_t holes);
/* Counts what a write of these pages may need: pages without blocks, chunks without a record. */
void pages_need(struct file *f, uint64_t first, uint64_t last, uint64_t *pages, uint32_t *chunks);

/* Returns how many chunk records were made (of those set aside). */
uint32_t pages_begin_write(struct file *f, uint64_t first, uint64_t last);
void pages_end_write(struct file *f, uint64_t first, uint64_t last);
/* The bytes were not written: pages that were not valid stay so. */
void pages_fail_write(struct file *f, uint64_t first, uint64_t last);
/* As pages_end_write, after a punch: the pages are zeros without blocks. */
void pages_end_punch(struct file *f, uint64_t first, uint64_t last);

/* A fill: begin gives the record of one chunk (made if there is none); end sets the bits of the new pages. */
struct chunk_record *pages_begin_fill(struct file *f, uint64_t index, uint32_t *made);
void pages_end_fill(struct file *f, uint64_t first, uint64_t last);

/* Drops all pages from `first` on: from bits, records and snapshots.  The caller changes the data file.
 * Returns how many bytes were valid. */
uint64_t pages_drop_from(struct file *f, uint64_t first);
/* Marks pages as rewritten in every snapshot. */
void pages_changed(struct file *f, uint64_t first, uint64_t last);
/* Clears dirty bits (mask: words of one chunk). */
void pages_clean(struct file *f, struct chunk_record *c, const uint64_t *mask);
/* Marks all dirty pages as clean, though the PFS has none of them: the file is deleted. */
void pages_clean_all(struct file *f);
/* At recovery: clears all bits of one page.  The record stays (until pages_release). */
void pages_forget(struct file *f, struct chunk_record *c, uint32_t bit);
void pages_dirty_again(struct file *f, struct chunk_record *c, uint32_t bit); /* a clean page */
struct covering; /* placement/store/store_int.h */
/* Of the pages in cv, marks those as covered that the PFS does not have, and syncs their records.  f->lock is
 * dropped meanwhile. */
int pages_cover(struct file *f, const struct covering *cv);
/* May the file have clean pages that the PFS has under no known version? */
bool pages_are_beyond(struct file *f);
/* Puts the chunk on the list of what may be evicted, or takes it off.  Frees a record without pages. */
void pages_release(struct file *f, struct chunk_record *c);
void pages_release_all(struct file *f,
                      bool flushed); /* flushed: chunks that are not dirty lose CHUNK_WRITTEN */
/* All chunks of the file count as used now: an application may read them from now on unseen by the daemon. */
void pages_used(struct file *f);
/* The chunk with the lowest index >= index; NULL: there is none. */
struct chunk_record *pages_next_chunk(struct file *f, uint64_t index);

#endif
