/* page_bits.h - bits of one chunk's pages, one of its bitmaps (state.h).  The file's lock is held, but for
 * readers that look at a bit. */
#ifndef EDDY_PLACEMENT_STORE_PAGE_BITS_H
#define EDDY_PLACEMENT_STORE_PAGE_BITS_H

#include <stdbool.h>
#include <stdint.h>

uint32_t bits_count(const uint64_t *b, uint32_t lo, uint32_t hi); /* [lo, hi] */
/* Those that are set in both. */
uint32_t bits_count_both(const uint64_t *a, const uint64_t *b, uint32_t lo, uint32_t hi);
bool bits_any(const uint64_t *b);
static inline bool bit_get(const uint64_t *b, uint32_t i)
{
    return b[i / 64] >> i % 64 & 1;
}
/* Sets or clears [lo, hi]; returns how many changed. */
uint32_t bits_put(uint64_t *b, uint32_t lo, uint32_t hi, bool set);
/* First bit in [lo, hi] that is `set`; hi + 1 if none. */
uint32_t bits_find(const uint64_t *b, uint32_t lo, uint32_t hi, bool set);

#endif
