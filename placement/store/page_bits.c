/* page_bits.c - bits of one chunk's pages. */
#include "placement/store/page_bits.h"

#include "placement/store/state.h"

static uint64_t word_mask(uint32_t w, uint32_t lo, uint32_t hi)
{
    uint64_t m = ~UINT64_C(0);
    if (w == lo / 64)
        m &= ~UINT64_C(0) << lo % 64;
    if (w == hi / 64)
        m &= ~UINT64_C(0) >> (63 - hi % 64);
    return m;
}

uint32_t bits_put(uint64_t *b, uint32_t lo, uint32_t hi, bool set)
{
    uint32_t n = 0;
    for (uint32_t w = lo / 64; w <= hi / 64; w++) {
        uint64_t m = word_mask(w, lo, hi), change = (set ? ~b[w] : b[w]) & m;
        n += (uint32_t)__builtin_popcountll(change);
        if (change)
            __atomic_store_n(&b[w], b[w] ^ change, __ATOMIC_RELEASE);
    }
    return n;
}

uint32_t bits_count(const uint64_t *b, uint32_t lo, uint32_t hi)
{
    uint32_t n = 0;
    for (uint32_t w = lo / 64; w <= hi / 64; w++)
        n += (uint32_t)__builtin_popcountll(b[w] & word_mask(w, lo, hi));
    return n;
}

uint32_t bits_count_both(const uint64_t *a, const uint64_t *b, uint32_t lo, uint32_t hi)
{
    uint32_t n = 0;
    for (uint32_t w = lo / 64; w <= hi / 64; w++)
        n += (uint32_t)__builtin_popcountll(a[w] & b[w] & word_mask(w, lo, hi));
    return n;
}

uint32_t bits_find(const uint64_t *b, uint32_t lo, uint32_t hi, bool set)
{
    for (uint32_t w = lo / 64; w <= hi / 64; w++) {
        uint64_t m = (set ? b[w] : ~b[w]) & word_mask(w, lo, hi);
        if (m)
            return w * 64 + (uint32_t)__builtin_ctzll(m);
    }
    return hi + 1;
}

bool bits_any(const uint64_t *b)
{
    for (uint32_t w = 0; w < state_words(); w++)
        if (b[w])
            return true;
    return false;
}
