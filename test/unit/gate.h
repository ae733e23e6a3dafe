/* gate.h - a count that threads add to and a check waits for. */
#ifndef EDDY_TEST_GATE_H
#define EDDY_TEST_GATE_H

#include <check.h>
#include <pthread.h>

#include "transport/lock.h"

#define LONG_MS 60000

/* Conditions that tests wait for. */
static struct {
    struct lock lock;
    pthread_cond_t cond;
    int n;
} gate;

static inline void gate_init(void)
{
    lock_init(&gate.lock, RANK_LEAF);
    lock_cond_init(&gate.cond);
    gate.n = 0;
}

static inline void gate_add(int n)
{
    lock_take(&gate.lock);
    gate.n += n;
    pthread_cond_broadcast(&gate.cond);
    lock_drop(&gate.lock);
}

static inline void gate_wait(int n)
{
    lock_take(&gate.lock);
    while (gate.n < n)
        ck_assert_int_eq(lock_wait(&gate.lock, &gate.cond, LONG_MS), 0);
    lock_drop(&gate.lock);
}

static inline void open_gate(void *arg)
{
    (void)arg;
    gate_add(1);
}

#endif
