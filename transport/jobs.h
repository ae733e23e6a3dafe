/* jobs.h - what loop.c and pool.c share: a FIFO of calls (its owner's lock guards it), and making
 * threads. */
#ifndef EDDY_TRANSPORT_JOBS_H
#define EDDY_TRANSPORT_JOBS_H

#include <pthread.h>
#include <stdlib.h>

#include "transport/base.h"

struct job {
    void (*fn)(void *arg);
    void *arg;
};

struct jobs { /* a ring: entries head .. head + n - 1, modulo cap */
    struct job *v;
    size_t head, n, cap;
};

static inline void jobs_grow(struct jobs *q)
{
    size_t cap = q->cap ? q->cap * 2 : 64;
    struct job *v = xcalloc(cap, sizeof(*v));
    for (size_t i = 0; i < q->n; i++)
        v[i] = q->v[(q->head + i) % q->cap];
    free(q->v);
    *q = (struct jobs){.v = v, .n = q->n, .cap = cap};
}

static inline void jobs_push(struct jobs *q, void (*fn)(void *arg), void *arg)
{
    if (q->n == q->cap)
        jobs_grow(q);
    q->v[(q->head + q->n++) % q->cap] = (struct job){fn, arg};
}

static inline struct job jobs_pop(struct jobs *q)
{
    struct job job = q->v[q->head];
    q->head = (q->head + 1) % q->cap;
    q->n--;
    return job;
}

/* Makes a thread that leaves signals to the main thread, except for faults of its own.  -errno. */
int thread_start(pthread_t *t, void *(*fn)(void *arg), void *arg, const char *name);

#endif
