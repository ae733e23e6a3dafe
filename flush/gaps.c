/* gaps.c - the wait interval that fits the application, learned from its pauses. */
#include "flush/gaps.h"

#include "transport/base.h"

#include <math.h>

#define PRICE_MS 1000.0
#define MARGIN   1.5
#define ENOUGH   8      /* gaps before there is an answer */
#define MEMORY   1000.0 /* gaps: with so many all of them count half */

/* Bin b holds the gaps from floor_of(b) to floor_of(b + 1). */
static double floor_of(unsigned bin)
{
    return GAP_MIN_MS * exp2((double)bin / 4);
}

void gaps_add(struct gaps *g, uint64_t ms)
{
    if (ms < GAP_MIN_MS)
        return;
    unsigned bin = (unsigned)(4 * log2((double)ms / GAP_MIN_MS) + 1e-9);
    g->number[MIN(bin, (unsigned)GAP_BINS - 1)] += 1;
    g->total += 1;
    if (g->total < MEMORY)
        return;
    g->total = 0;
    for (unsigned b = 0; b < GAP_BINS; b++)
        g->total += g->number[b] /= 2;
}

/* The bin whose floor is the best interval; GAP_BINS: no gap is worth it. */
static unsigned best_bin(const struct gaps *g)
{
    unsigned best = GAP_BINS;
    double most = 0, n = 0, sum = 0; /* of the gaps from bin b on */
    for (unsigned b = GAP_BINS; b-- > 0;) {
        n += g->number[b];
        sum += g->number[b] * floor_of(b);
        double gain = sum - n * (floor_of(b) + PRICE_MS);
        if (gain > most) {
            most = gain;
            best = b;
        }
    }
    return best;
}

uint64_t gaps_interval(const struct gaps *g, uint64_t fallback_ms)
{
    if (g->total < ENOUGH)
        return fallback_ms;
    unsigned best = best_bin(g), above = 0; /* ... the longest gap that is not to be used */
    for (unsigned b = 0; b < best; b++)
        if (g->number[b] > 0)
            above = b + 1;
    uint64_t wait = (uint64_t)(floor_of(above) * MARGIN);
    return MIN(MAX(wait, (uint64_t)WAIT_MIN_MS), (uint64_t)WAIT_MAX_MS);
}
