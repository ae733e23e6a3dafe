/* page_set.h - pages of a file as they were at one moment, by chunk.
 *
 * f->lock must be held when you call any function below.
 */
#ifndef EDDY_PLACEMENT_STORE_PAGE_SET_H
#define EDDY_PLACEMENT_STORE_PAGE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;

struct page_set_chunk {
    uint64_t index;
    uint64_t *bits; /* state_words() words */
};
struct page_set {
    size_t n;
    struct page_set_chunk *chunk; /* by rising index */
};

/* Takes the pages that have that bit (BITS_VALID ...): in chunks that have a dirty page; with `all`, in all
 * chunks.  For page_set_free. */
void page_set_take(struct page_set *s, struct file *f, unsigned kind, bool all);
/* Takes pages [lo, hi] of a chunk out of the set. */
void page_set_drop(struct page_set *s, uint64_t index, uint32_t lo, uint32_t hi);
/* Takes the pages out that are not dirty.  False: none is left. */
bool page_set_keep_dirty(struct page_set *s, struct file *f);
/* The first pages in [*page, last] that are in the set and follow each other: [*page, *until].  False: there are none. */
bool page_set_next(const struct page_set *s, uint64_t *page, uint64_t last, uint64_t *until);
void page_set_free(struct page_set *s);

#endif
