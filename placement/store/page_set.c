/* page_set.c - see page_set.h. */
#include "placement/store/page_set.h"

#include <stdlib.h>
#include <string.h>

#include "placement/store/pages.h"
#include "placement/store/state_table.h"

static void add(struct page_set *s, size_t *room, struct chunk_record *c, unsigned kind)
{
    size_t bytes = state_words() * sizeof(uint64_t);
    if (s->n == *room)
        s->chunk = xrealloc(s->chunk, (*room = *room * 2 + 4) * sizeof(*s->chunk));
    struct page_set_chunk *to = &s->chunk[s->n++];
    to->index = c->index;
    to->bits = xmalloc(bytes);
    memcpy(to->bits, chunk_bits(c, kind, state_words()), bytes);
}

static int by_index(const void *a, const void *b)
{
    const struct page_set_chunk *x = a, *y = b;
    return x->index < y->index ? -1 : x->index > y->index;
}

void page_set_take(struct page_set *s, struct file *f, unsigned kind, bool all)
{
    struct chunk_record *c;
    size_t room = 0;
    uint64_t left = f->rec->dirty; /* chunks with dirty pages come first */
    *s = (struct page_set){0};
    for (uint32_t no = f->rec->first_chunk; (left || all) && (c = state_chunk_at(no));
         no = c->file_next) {
        left -= bits_count(chunk_bits(c, BITS_DIRTY, state_words()), 0, state_pages() - 1);
        add(s, &room, c, kind);
    }
    if (s->n)
        qsort(s->chunk, s->n, sizeof(*s->chunk), by_index);
}

void page_set_drop(struct page_set *s, uint64_t index, uint32_t lo, uint32_t hi)
{
    struct page_set_chunk key = {.index = index}, *at = NULL;
    if (s->n)
        at = bsearch(&key, s->chunk, s->n, sizeof(*s->chunk), by_index);
    if (at)
        bits_put(at->bits, lo, hi, false);
}

bool page_set_keep_dirty(struct page_set *s, struct file *f)
{
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        struct chunk_record *c = state_chunk_find(f->fid, s->chunk[i].index);
        const uint64_t *dirty = c ? chunk_bits(c, BITS_DIRTY, state_words()) : NULL;
        for (uint32_t w = 0; w < state_words(); w++)
            s->chunk[i].bits[w] &= dirty ? dirty[w] : 0;
        any |= bits_any(s->chunk[i].bits);
    }
    return any;
}

/* How far it goes on from the bit in its chunk. */
static uint64_t run_end(const struct page_set_chunk *c, uint32_t bit, uint64_t last)
{
    uint64_t first = c->index * state_pages();
    return MIN(first + bits_find(c->bits, bit, state_pages() - 1, false) - 1, last);
}

bool page_set_next(const struct page_set *s, uint64_t *page, uint64_t last, uint64_t *until)
{
    uint32_t pages = state_pages(), bit = pages;
    size_t i = 0;
    for (; i < s->n && bit == pages; i++) {
        const struct page_set_chunk *c = &s->chunk[i];
        if (c->index >= *page / pages)
            bit = bits_find(c->bits, c->index == *page / pages ? (uint32_t)(*page % pages) : 0, pages - 1, true);
    }
    if (bit == pages || s->chunk[i - 1].index * pages + bit > last)
        return false;
    *page = s->chunk[i - 1].index * pages + bit;
    *until = run_end(&s->chunk[i - 1], bit, last);
    for (; i < s->n && s->chunk[i].index * pages == *until + 1 && bit_get(s->chunk[i].bits, 0) && *until < last; i++)
        *until = run_end(&s->chunk[i], 0, last);
    return true;
}

void page_set_free(struct page_set *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->chunk[i].bits);
    free(s->chunk);
    *s = (struct page_set){0};
}
