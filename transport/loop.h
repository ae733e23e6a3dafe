/* loop.h - the network thread (one libuv loop; transport/peer.c adds the UCX worker to it),
 * timers, and bounded thread pools for what blocks.
 *
 * The network thread never blocks: it makes no PFS call, does not wait for the disk, and takes locks of
 * rank < RANK_FLIGHT only by lock_try (store_get_chunk_now reads a chunk that is in the page cache).
 * libuv's own pool does local disk work for peers (loop_work).
 * Only transport/ includes uv.h.
 */
#ifndef EDDY_TRANSPORT_LOOP_H
#define EDDY_TRANSPORT_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the loop and starts its thread.  Call after daemonising.  -errno. */
int loop_start(void);
/* Runs the queued calls (and the calls that these queue), waits for loop_work's calls, stops the loop and
 * joins the thread.  Free timers and handles before; stop the pools before the loop. */
void loop_stop(void);
/* Runs fn(arg) in the network thread, soon, in the order of the posts.  Any thread.  The call is dropped if
 * the network thread does not run. */
void loop_post(void (*fn)(void *arg), void *arg);
/* The same, and returns when fn has run.  Any thread that holds no lock.  In the network thread fn
 * runs at once.  Before loop_start and after loop_stop it runs at once in the caller. */
void loop_call(void (*fn)(void *arg), void *arg);
bool loop_is_here(void); /* is the caller the network thread? */

/* ---- timers: network thread only ---- */
struct loop_timer;
struct loop_timer *loop_timer_new(void (*fn)(void *arg), void *arg);
/* repeat 0: once */
void loop_timer_set(struct loop_timer *t, uint64_t first_ms, uint64_t repeat_ms);
void loop_timer_stop(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);

/* ---- libuv's pool: local disk work for peers ---- */
/* work(arg) in a pool thread, then done(arg) (may be NULL) in the network thread.  Any thread may
 * call. */
void loop_work(void (*work)(void *arg), void (*done)(void *arg), void *arg);

/* ---- pools of threads for what blocks ---- */
struct pool;
/* Threads are made when needed, up to max_threads, and end after 10 s without work. */
struct pool *pool_new(const char *name, int max_threads);
void pool_submit(struct pool *p, void (*fn)(void *arg), void *arg); /* any thread; FIFO */
unsigned pool_waiting(struct pool *p);                              /* jobs not begun */
/* Waits for all jobs, ends the threads, frees p. */
void pool_free(struct pool *p);

/* Pools that begin and end together. */
struct pool_kind {
    struct pool **pool; /* where it is kept; NULL when it has ended */
    const char *name;
    int max_threads;
};
void pools_new(const struct pool_kind *kinds, size_t n);
/* One after the other, in the order of the list. */
void pools_free(const struct pool_kind *kinds, size_t n);

/* The pools of the daemon (design: "Threads"); made by pools_start. */
extern struct pool *pool_names; /* 32: PFS names and attributes, for the mount */
extern struct pool *pool_data;  /* 16: PFS reads; its jobs never wait for another node */
/* 64: application requests that wait for nodes or for pool_data */
extern struct pool *pool_waiters;
/* 8: reads of cached bytes that wait for a proof (placement/chunks/proof.h).  They never wait for a PFS that
 * hangs; jobs of pool_waiters do, so these reads must not be behind them */
extern struct pool *pool_proofs;
/* 64: writes that wait for room, closes and fsyncs that wait for the PFS: so they do not delay reads */
extern struct pool *pool_writers;
/* 16: locks that were granted.  Before the owner goes on, the kernel's pages are dropped.  This waits for
 * reads of these pages, also for reads in pool_waiters */
extern struct pool *pool_locks;
extern struct pool *pool_session; /* 1: the session directory */
int pools_start(void);
/* Waits for all jobs, also those that jobs submit to another of these pools.  No other thread may submit
 * any more. */
void pools_stop(void);

#endif
