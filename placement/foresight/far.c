/* far.c - a bit for each entry: its target may be kept for it.  Bits are set when something is kept, and cleared when they are met
 * and nothing is: so the farthest one of a long queue is found without a look at its targets. */
#include "placement/foresight/far.h"

#include <stdlib.h>
#include <string.h>

#include "transport/base.h"

#define WORD 64u /* bits */

static uint64_t kept; /* bytes, of all queues */

uint64_t far_kept(void)
{
    return kept;
}

static size_t words(uint32_t entries)
{
    return ((size_t)entries + WORD - 1) / WORD;
}

uint64_t far_memory(uint32_t entries)
{
    return words(entries) * sizeof(uint64_t);
}

void far_grow(struct queue *q, uint32_t entries)
{
    size_t had = words(q->cap), n = words(entries);
    q->kept_at = xrealloc(q->kept_at, n * sizeof(*q->kept_at));
    memset(q->kept_at + had, 0, (n - had) * sizeof(*q->kept_at));
}

/* What is not on the PFS could not leave anyway; what a stage has brought is counted by the stage. */
static uint64_t kept_of(const struct target *t)
{
    bool may_leave = t->life != LIFE_WRITTEN && t->life != LIFE_WRITING;
    return t->hinted && !t->admitted && may_leave && !t->queue->staged ? hints_bytes(t) : 0;
}

void far_note(struct target *t)
{
    struct queue *q = t->queue;
    uint64_t bytes = kept_of(t);
    q->kept += bytes - t->kept;
    kept += bytes - t->kept;
    t->kept = bytes;
    if (!t->hinted || t->first == NO_ENTRY)
        return;
    q->kept_at[t->first / WORD] |= UINT64_C(1) << t->first % WORD;
    q->far = MAX(q->far, t->first + 1);
}

static bool is_kept(const struct queue *q, uint32_t i)
{
    const struct target *t = q->target[q->entry[i]];
    return t->first == i && t->hinted;
}

/* The last entry before `end` that has a bit, at least in the word of the one before `end`; else the begin of that word is
 * returned, by *end. */
static bool bit_before(const struct queue *q, uint32_t *end)
{
    uint32_t last = *end - 1, word = last / WORD;
    uint64_t bits = q->kept_at[word] << (WORD - 1 - last % WORD);
    *end = bits ? *end - (uint32_t)__builtin_clzll(bits) : word * WORD;
    return bits;
}

static uint32_t find_before(const struct queue *q, uint32_t end)
{
    while (end > q->head) {
        if (!bit_before(q, &end))
            continue;
        if (end > q->head && is_kept(q, end - 1))
            return end - 1;
        end--;
        q->kept_at[end / WORD] &= ~(UINT64_C(1) << end % WORD);
    }
    return NO_ENTRY;
}

uint32_t far_before(struct queue *q, uint32_t end)
{
    uint32_t i = find_before(q, MIN(end, q->far));
    if (end >= q->far)
        q->far = i == NO_ENTRY ? q->head : i + 1;
    return i;
}
