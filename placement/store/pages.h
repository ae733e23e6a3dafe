/* pages.h - the page bits of a file, kept true at every instant, and counted.
 *
 * Private to the store (placement/store/store*.c, space.c).  A page's life:
 *
 *   not valid --begin_write--> dirty --end_write--> valid+dirty --flushed--> valid --evicted-->
 *
 *   not valid --end_fill--> valid;   dirty --fail_write, or a crash--> not valid
 *
 * Pages are numbered from the file's start.  Ranges [first, last] are inclusive and lie in one
 * struct range_op of the caller, so that nobody else changes these pages while the bytes are on
 * their way.  The records that may have to be made are set aside before (space_reserve with
 * pages_need).
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

/* Evicts a chunk if it may go: takes the file's lock.  No lock held.  True if room was made.  wanted: says of the
 * file, whose lock is held, that nothing of it may go.  now: waits for no sync of the cache's disk. */
bool pages_evict(struct file *f, uint64_t index, bool (*wanted)(struct file *f), bool now);

/* f->lock must be held when you call any function below this line. */

bool page_valid(struct file *f, uint64_t page);
/* The first page in [first, last] whose bit of that kind is `set`; last + 1 if there is none. */
uint64_t pages_find(struct file *f, uint64_t first, uint64_t last, unsigned kind, bool set);
/* For a reader: the first page in [first, last] that is not valid, and lies before `holes`; last + 1 if
 * none.  The chunks up to there count as used now. */
uint64_t pages_use(struct file *f, uint64_t first, uint64_t last, uint64_t holes);
/* What a write of these pages may need: pages without blocks, chunks without a record. */
void pages_need(struct file *f, uint64_t first, uint64_t last, uint64_t *pages, uint32_t *chunks);

/* Returns how many chunk records were made (of those set aside). */
uint32_t pages_begin_write(struct file *f, uint64_t first, uint64_t last);
void pages_end_write(struct file *f, uint64_t first, uint64_t last);
/* The bytes did not get there: what was not valid stays so. */
void pages_fail_write(struct file *f, uint64_t first, uint64_t last);
/* As pages_end_write, for what a punch left: zeros without blocks. */
void pages_end_punch(struct file *f, uint64_t first, uint64_t last);

/* Fills: the record of one chunk (made if there is none), then the bits of what was put in. */
struct chunk_record *pages_begin_fill(struct file *f, uint64_t index, uint32_t *made);
void pages_end_fill(struct file *f, uint64_t first, uint64_t last);

/* All pages from `first` on are dropped: bits, records, snapshots.  The data file is the caller's
 * business.  Returns the bytes that were valid. */
uint64_t pages_drop_from(struct file *f, uint64_t first);
/* Marks pages as rewritten in every snapshot. */
void pages_changed(struct file *f, uint64_t first, uint64_t last);
/* Clears dirty bits (mask: words of one chunk). */
void pages_clean(struct file *f, struct chunk_record *c, const uint64_t *mask);
/* All dirty pages are clean now, without being on the PFS: the file is deleted. */
void pages_clean_all(struct file *f);
/* At recovery: one page loses all its bits; the record stays (pages_settle). */
void pages_forget(struct file *f, struct chunk_record *c, uint32_t bit);
void pages_dirty_again(struct file *f, struct chunk_record *c, uint32_t bit); /* a clean one */
struct covering; /* placement/store/store_int.h */
/* Sets the covered bits of those of its pages that the PFS does not have, and syncs their records; f->lock
 * is dropped meanwhile. */
int pages_cover(struct file *f, const struct covering *cv);
/* Has it clean pages, perhaps, that the PFS has under no version that is known? */
bool pages_are_beyond(struct file *f);
/* On the list of what may be evicted, or not.  Frees a record without pages. */
void pages_settle(struct file *f, struct chunk_record *c);
void pages_settle_all(struct file *f,
                      bool flushed); /* flushed: what is not dirty is not CHUNK_WRITTEN any more */
/* All of it is used from now on, by who may read it without our seeing that. */
void pages_used(struct file *f);
/* The chunk with the lowest index >= index, NULL. */
struct chunk_record *pages_next_chunk(struct file *f, uint64_t index);

#endif
