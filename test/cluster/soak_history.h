/* soak_history.h - what protosoak's nodes were told that they hold, and when; and whether any two
 * held the same against each other.  And what was done to the nodes, told when a check fails.  All
 * times are of one clock, boot_ns(). */
#ifndef EDDY_TEST_SOAK_HISTORY_H
#define EDDY_TEST_SOAK_HISTORY_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/base.h"

#define NEVER UINT64_MAX

enum { FREE, READ, WRITE };

struct held {
    unsigned node, owner, file, byte; /* a claim: owner and byte are 0 */
    int type;
    uint64_t from_ns, to_ns;
};

struct history {
    struct held *v;
    size_t n, size;
};
static struct history claims, locks;

struct event {
    uint64_t at_ns;
    unsigned node;
    char what[48];
};
static struct {
    struct event *v;
    size_t n, size;
} events;

/* What was done to a node, or what became of it. */
static void note(unsigned node, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(unsigned node, const char *format, ...)
{
    struct event *e;
    va_list args;

    if (events.n == events.size) {
        events.size = events.size ? 2 * events.size : 256;
        events.v = xrealloc(events.v, events.size * sizeof(*events.v));
    }
    e = &events.v[events.n++];
    e->at_ns = boot_ns();
    e->node = node;
    va_start(args, format);
    vsnprintf(e->what, sizeof(e->what), format, args);
    va_end(args);
}

static void print_events(void)
{
    printf("what was done to the nodes, and when:\n");
    for (size_t i = 0; i < events.n; i++)
        printf("%" PRIu64 " node %u %s\n", events.v[i].at_ns, events.v[i].node, events.v[i].what);
}

static size_t hold(struct history *h, struct held what)
{
    if (h->n == h->size) {
        h->size = h->size ? 2 * h->size : 1024;
        h->v = xrealloc(h->v, h->size * sizeof(*h->v));
    }
    what.to_ns = NEVER;
    h->v[h->n] = what;
    return h->n++;
}

static int by_place_and_time(const void *a, const void *b)
{
    const struct held *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->byte != y->byte)
        return x->byte < y->byte ? -1 : 1;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* How many pairs were held against each other. */
static unsigned check_history(struct history *h, const char *what)
{
    unsigned found = 0;

    qsort(h->v, h->n, sizeof(*h->v), by_place_and_time);
    for (size_t i = 0; i < h->n; i++) {
        const struct held *a = &h->v[i];

        for (size_t k = i + 1; k < h->n; k++) {
            const struct held *b = &h->v[k];

            if (b->file != a->file || b->byte != a->byte)
                break;
            if (b->from_ns >= a->to_ns || a->from_ns >= a->to_ns || b->from_ns >= b->to_ns ||
                (a->node == b->node && a->owner == b->owner) ||
                (a->type == READ && b->type == READ))
                continue;
            printf("%s of file %u, byte %u: node %u (owner %u, %s) has it from %" PRIu64
                   " to %" PRIu64 ", and node %u (owner %u, %s) "
                   "from %" PRIu64 " to %" PRIu64 "\n",
                   what, a->file, a->byte, a->node, a->owner, a->type == READ ? "read" : "write",
                   a->from_ns, a->to_ns, b->node, b->owner, b->type == READ ? "read" : "write",
                   b->from_ns, b->to_ns);
            found++;
        }
    }
    return found;
}

#endif
