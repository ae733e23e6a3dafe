/* queue.h - the dirty files in their order, and all that is one per daemon (queue.c). */
#ifndef EDDY_FLUSH_QUEUE_H
#define EDDY_FLUSH_QUEUE_H

#include "flush/flush.h"
#include "flush/flush_events.h"
#include "flush/limit.h"
#include "flush/marks.h"
#include "transport/lock.h"

/* What the flusher knows of a file that is dirty, or was (FILE_FLUSH); flush.lock. */
struct flush_item {
    struct file_part part;
    struct file *f;
    struct item_list *list; /* which one it is on */
    struct flush_item *next, **prev;
    uint64_t seq; /* place in the order */
    uint64_t dirty_since_ms, retry_at_ms, began_ms; /* boot_ms */
    uint64_t begun, ended; /* runs */
    uint64_t failed_no;    /* of the last failure, in the order of all files' */
    int error;             /* last error, 0 */
    unsigned error_seq;    /* goes up with each failure ... */
    unsigned error_no;     /* ... with each that is another one: told once to each handle */
    unsigned tries;
    unsigned urgent; /* callers that wait for it */
    uint8_t policy;  /* enum flush_policy + 1; 0: the mount's */
    bool queued;     /* on one of the lists, which holds a reference */
    bool running;   /* a run (one copy-out) of it is under way */
    bool dirtied;    /* the store said so during the run: it is not clean after it */
    bool again;      /* a caller came during the run: the next one is for it */
    /* Left by a dead daemon, or void: is the PFS file still what it was based on? */
    _Atomic bool unchecked;
};
extern const struct file_part_ops flush_item_ops; /* queue.c */
static inline struct flush_item *item_of(struct file *f)
{
    return (struct flush_item *)file_part(f, FILE_FLUSH, &flush_item_ops);
}
/* NULL: it was never dirty. */
static inline struct flush_item *item_if(const struct file *f)
{
    return (struct flush_item *)file_part_if(f, FILE_FLUSH);
}

struct item_list {
    struct flush_item *first, **last;
    unsigned n;
};
/* One per daemon.  flush.lock (RANK_POLICY) guards all of it, and every item.  It is not held during a call of
 * the store, the PFS or the claims, except for file_ref.
 * flush.ended: a run has ended, bytes have become clean, or a call of on_copied has returned.  The
 * flusher and waiting writers sleep on the bell (lull.c). */
extern struct flush_state {
    struct lock lock;
    pthread_cond_t ended;
    struct flush_config config;
    struct item_list ready[FLUSH_POLICIES], running, failed;
    uint64_t seq;           /* place in the order, given to files as they become dirty */
    uint64_t failures;      /* how many so far, of all files */
    uint64_t next_retry_ms; /* not later than the first retry_at_ms of failed; NEVER: none */
    uint64_t progress;      /* goes up when bytes have become clean */
    uint64_t room_tried_ms;
    unsigned waiting_jobs, urgent_jobs; /* in the two pools */
    unsigned busy;                      /* runs that nobody asked for and that write now */
    unsigned ending, syncing;           /* runs that have written all; that do not wait */
    unsigned urgent_all;                /* callers of flush_all and flush_make_room */
    flush_copied_fn on_copied;
    unsigned telling; /* calls of it under way */
    struct marks marks;
    struct limit limit, drain;
    bool stop;
    bool started;
    pthread_t flusher;
    struct pool *waiting_pool, *urgent_pool;
} flush;

/* order.c: the file of the list that is written first, of those that may be written for that reason; NULL: it is empty.  flush.lock
 * held. */
struct flush_item *order_first(const struct item_list *l, enum flush_why why);

void queue_init(struct item_list *l);
/* flush.lock held. */
void queue_append(struct item_list *l, struct flush_item *it);
void queue_prepend(struct item_list *l, struct flush_item *it);
void queue_insert(struct item_list *l, struct flush_item *it); /* by its place in the order */
void queue_remove(struct flush_item *it);
/* The ready list of its policy. */
struct item_list *queue_ready(const struct flush_item *it);
unsigned queue_nready(void);
/* Dirty now; any thread that holds no lock of RANK_POLICY or more. */
void queue_add(struct file *f);
/* A referenced list of all files that are dirty, and *n; the caller puts them and frees it. */
struct file **queue_files(size_t *n);

#endif
