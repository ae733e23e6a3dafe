/* loop.h - the network thread (one libuv loop; transport/peer.c adds the UCX worker to it),
 * timers, and bounded thread pools for what blocks.
 *
 * The network thread never blocks: no PFS call, no disk, no lock of rank < RANK_FLIGHT but by
 * lock_try (a chunk that is in the page cache is read there: store_get_chunk_now).
 * libuv's own pool does local disk work for peers (loop_work).
 * Only transport/ includes uv.h.
 */
#ifndef EDDY_TRANSPORT_LOOP_H
#define EDDY_TRANSPORT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the loop and starts its thread.  Call after daemonising.  -errno. */
int loop_start(void);
/* Runs what is queued (also what that queues) and waits for loop_work's calls, stops the loop and
 * joins the thread.  Timers and handles are to be freed before; stop the pools before the loop. */
void loop_stop(void);
/* Runs fn(arg) in the network thread, soon, in order.  Any thread.  Dropped when the thread does
 * not run. */
void loop_post(void (*fn)(void *arg), void *arg);
/* The same, and returns when fn has run.  Any thread that holds no lock; in the network thread it
 * runs at once, and so it does, in the caller, before loop_start and after loop_stop. */
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

/* The pools of the daemon (design: "Threads"); made by pools_start. */
extern struct pool *pool_names; /* 32: PFS names and attributes, for the mount */
extern struct pool *pool_data;  /* 16: PFS reads; its jobs never wait for another node */
/* 64: application requests that wait for nodes or for pool_data */
extern struct pool *pool_waiters;
/* 8: reads of what is cached that wait for a proof (placement/chunks/proof.h), never for a PFS that hangs:
 * so not behind those of pool_waiters, which do */
extern struct pool *pool_proofs;
/* 64: writes that wait for room, closes and fsyncs that wait for the PFS: they do not hold up reads */
extern struct pool *pool_writers;
/* 16: locks that were granted: before the owner goes on the kernel's pages are dropped, which waits for
 * reads of them, those of pool_waiters among them */
extern struct pool *pool_locks;
extern struct pool *pool_session; /* 1: the session directory */
int pools_start(void);
/* Waits for all jobs, also those that jobs submit to another of these pools; nobody else submits
 * any more. */
void pools_stop(void);

#endif
