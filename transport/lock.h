/* lock.h - mutexes with a rank, so that debug builds find a wrong lock order at once.
 *
 * The order below is from outer to inner.  A thread may only take a lock of a
 * higher rank than all that it holds; two of the same rank only with lock_pair.
 * It holds no lock during a PFS call, while it waits for a message, or during a
 * FUSE reply or a notification.
 */
#ifndef EDDY_TRANSPORT_LOCK_H
#define EDDY_TRANSPORT_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum lock_rank {
    RANK_MOUNT = 1, /* mount life cycle */
    RANK_INODES,    /* a shard of the inode table */
    RANK_INODE,     /* one inode */
    RANK_POLICY,    /* flush: the list of files to flush */
    RANK_CLAIM,     /* claim of one file */
    RANK_TELL,      /* the order in which changes of a file are told */
    RANK_FILES,     /* the table of struct file */
    RANK_FILE,      /* record and pages of one file (struct file) */
    RANK_DATA,      /* where one file's open handles find its bytes */
    RANK_FLIGHT,    /* single flight */
    RANK_SPACE,     /* space and LRU */
    RANK_STATE,     /* slabs: slot allocation, hash tables */
    RANK_PFS_FILE,  /* descriptor of one file */
    RANK_PFS,       /* PFS path tree and descriptor cache */
    RANK_HOME,      /* the home's records */
    RANK_SESSION,   /* session directory bookkeeping */
    RANK_POOL,      /* a pool's job queue */
    RANK_NET,       /* queue to the network thread */
    RANK_LEAF,      /* anything that takes nothing else */
};

struct lock {
    pthread_mutex_t mutex;
    enum lock_rank rank;
};

void lock_init(struct lock *l, enum lock_rank rank);
void lock_destroy(struct lock *l);
void lock_take(struct lock *l);
/* Takes the lock only if no other thread holds it; else false.  For threads that may not wait.  The order is
 * the same as for lock_take. */
bool lock_try(struct lock *l);
void lock_drop(struct lock *l);
/* Two locks of one rank, in the order of `a_key` and `b_key` (inodes: ascending node id). */
void lock_pair(struct lock *a, uint64_t a_key, struct lock *b, uint64_t b_key);
/* Waits on cond with l held; the deadline is CLOCK_MONOTONIC ms from now, 0 = none.  0 or
 * -ETIMEDOUT. conds must be made with lock_cond_init. */
void lock_cond_init(pthread_cond_t *c);
int lock_wait(struct lock *l, pthread_cond_t *c, uint64_t timeout_ms);
/* Debug builds abort unless this thread holds l / holds no lock at all. */
void lock_assert_held(const struct lock *l);
void lock_assert_none(void);

#endif
