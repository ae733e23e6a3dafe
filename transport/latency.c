/* latency.c - see latency.h. */
#include "transport/latency.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define UNIT_BITS 10 /* 2^10 ns: what the text calls a microsecond */

unsigned latency_bucket(uint64_t ns)
{
    uint64_t v = ns >> UNIT_BITS;
    if (v < LATENCY_STEPS)
        return (unsigned)v;
    unsigned top = 63u - (unsigned)__builtin_clzll(v); /* 2 or more */
    unsigned b = (top - 1) * LATENCY_STEPS + (unsigned)(v >> (top - 2)) % LATENCY_STEPS;
    return b < LATENCY_BUCKETS ? b : LATENCY_BUCKETS - 1;
}

uint64_t latency_end_ns(unsigned bucket)
{
    unsigned next = bucket + 1, octave = next / LATENCY_STEPS;
    if (next >= LATENCY_BUCKETS)
        return UINT64_MAX;
    if (!octave)
        return (uint64_t)next << UNIT_BITS;
    return (uint64_t)(LATENCY_STEPS + next % LATENCY_STEPS) << (octave - 1) << UNIT_BITS;
}

void latency_add(struct latency *l, uint64_t ns)
{
    atomic_fetch_add_explicit(&l->buckets[latency_bucket(ns)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->sum_ns, ns, memory_order_relaxed);
}

void latency_copy(const struct latency *l, struct latency_copy *out)
{
    out->count = 0;
    out->sum_ns = atomic_load_explicit(&l->sum_ns, memory_order_relaxed);
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        out->buckets[i] = atomic_load_explicit(&l->buckets[i], memory_order_relaxed);
        out->count += out->buckets[i];
    }
}

void latency_since(const struct latency_copy *now, const struct latency_copy *before, struct latency_copy *out)
{
    out->count = now->count - before->count;
    out->sum_ns = now->sum_ns - before->sum_ns;
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
        out->buckets[i] = now->buckets[i] - before->buckets[i];
}

uint64_t latency_quantile_ns(const struct latency_copy *c, double part)
{
    uint64_t seen = 0, wanted = (uint64_t)ceil(part * (double)c->count);
    for (unsigned i = 0; i < LATENCY_BUCKETS && c->count; i++) {
        seen += c->buckets[i];
        if (seen >= wanted && seen)
            return i + 1 < LATENCY_BUCKETS ? latency_end_ns(i) : latency_end_ns(i - 1);
    }
    return 0;
}
