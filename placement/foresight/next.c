/* next.c - which files the readers of queues open next, so that they are looked at before (fs/near.c).
 *
 * What is seen of a file may be told for an attribute time-out, so a file is to be looked at less than that before it is opened, and
 * once.  A queue's pace is how many of its entries were opened in one turn, half of that time.  So many entries behind the one that
 * was opened last are given out, in portions of half of that:
 *
 *     opened  |  given out  |  due when less than half a pace is left  |  ...
 *
 * A reader that opens less than two files in a turn waits longer for other things than for a look: nothing is given out for it.
 */
#include "placement/foresight/next.h"

#include <string.h>

#include "placement/foresight/hints.h"
#include "transport/base.h"

#define PACE_MIN 2u
#define PACE_MAX 64u

static struct {
    void (*_Atomic on_due)(void);
    uint64_t turn_ms; /* hints_lock */
} next;

void next_on_due(void (*fn)(void), uint64_t turn_ms)
{
    lock_take(&hints_lock);
    next.on_due = fn;
    next.turn_ms = turn_ms;
    lock_drop(&hints_lock);
}

static void count_opened(struct queue *q)
{
    uint64_t now = boot_ms();
    if (now - q->turn_ms >= next.turn_ms) {
        q->pace = now - q->turn_ms < 2 * next.turn_ms ? q->opened : 0;
        q->opened = 0;
        q->turn_ms = now;
    }
    q->opened++;
}

static uint32_t pace(const struct queue *q)
{
    uint32_t n = MAX(q->pace, q->opened);
    return n < PACE_MIN ? 0 : MIN(n, PACE_MAX);
}

static bool is_due(const struct queue *q)
{
    return !q->staged && !q->ended && q->given < q->n && q->given < q->reader + pace(q) / 2;
}

void next_opened(struct queue *q, uint32_t i)
{
    if (!next.on_due || !next.turn_ms)
        return;
    count_opened(q);
    q->reader = MAX(q->reader, i + 1);
    q->given = MAX(q->given, q->reader);
}

bool next_is_due(void)
{
    bool due = false;
    for (const struct queue *q = hints_queues; q && next.on_due && !due; q = q->next_queue)
        due = is_due(q);
    return due;
}

/* What is not here is opened as usual. */
static unsigned take(struct queue *q, char **paths, unsigned max)
{
    unsigned n = 0;
    for (uint32_t end = MIN(q->reader + pace(q), q->n); n < max && q->given < end; q->given++) {
        const struct target *t = q->target[q->entry[q->given]];
        if (t->first == q->given && t->admitted && t->life == LIFE_AHEAD)
            paths[n++] = xstrdup(t->file->path);
    }
    return n;
}

unsigned next_give(char **paths, unsigned max)
{
    unsigned n = 0;
    lock_take(&hints_lock);
    for (struct queue *q = hints_queues; q; q = q->next_queue)
        if (is_due(q))
            n += take(q, paths + n, max - n);
    lock_drop(&hints_lock);
    return n;
}

void next_say(void)
{
    void (*fn)(void) = next.on_due;
    if (fn)
        fn();
}
