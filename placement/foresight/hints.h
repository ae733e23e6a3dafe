/* hints.h - what programs have told: queues of entries, the ranges of files that these name, the files by path and by fid.
 * Private to placement/foresight/; no I/O, and nothing of the store.
 *
 *     queue    entry   0   1   2   3   4   5   6   7   8   9 ...        u32 each: a target
 *                      ^ head              ^ next
 *                      not consumed        not admitted
 *     target   a range (off, len) of a file, for one queue; its entries are a list (`same`)
 *     hinted   a file, by its path below the root; its targets, of all queues
 *
 * A path is kept once, however many queues name it.  What all of it takes is bounded (hints_limit).
 *
 * The lock (RANK_LEAF) must be held when you call any function below but hints_lock.
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_HINTS_H
#define EDDY_PLACEMENT_FORESIGHT_HINTS_H

#include "placement/foresight/life.h"
#include "transport/fid.h"
#include "transport/lock.h"

#define NO_ENTRY     UINT32_MAX
#define LATER_OPENED 64 /* so many later entries were opened: one that was not is left out by its reader */

struct hinted {
    struct hinted *path_next, *fid_next;
    struct target *targets;
    uint64_t hash;    /* of the path */
    struct fid fid;   /* of what has the name, when it was last heard of; zero: not known */
    unsigned refs;    /* one per queue that names it */
    unsigned flushed; /* how often all of it was brought to the PFS */
    unsigned changes; /* how often it may have got another version, elsewhere */
    unsigned readers; /* opens for reading that began after a hint, and are not released */
    unsigned admitted; /* targets */
    bool looked_at;   /* the home tells this node of changes: one look_opened is owed its look_closed */
    char path[];
};

struct target {
    struct hinted *file;
    struct queue *queue;
    struct target *file_next; /* of the file's targets */
    struct target *again;     /* the queue's list of those to be looked at again */
    uint64_t off, len;        /* as it was told: len 0 is to the end */
    uint64_t bytes;           /* of the file that it names; 0: not known */
    uint64_t counted;         /* bytes, while it is admitted ... */
    uint64_t kept;            /* ... and while it is not, but the store keeps what is here of it, and it could leave */
    uint64_t look_ms;         /* boot_ms: not here, and not looked at again before */
    uint32_t first, last;     /* its entries that are not consumed; NO_ENTRY: none */
    enum life life;
    bool admitted; /* the prefetcher has taken up `first`: it protects what is here */
    bool hinted;   /* the store was told that its chunks are hinted */
    bool busy;     /* the prefetcher works on it ... */
    bool redo;     /* ... and looks again when it has ended */
    bool cut;      /* only its begin is brought */
    bool listed;   /* on the list `again` */
    uint8_t looks; /* in vain, one after the other */
    uint8_t tries; /* of a staged queue: how often it was looked at again */
    bool reached;  /* of a staged queue: it was brought, or cannot be ... */
    int err;       /* ... for this reason; 0 or -errno */
};

struct queue {
    struct queue *next_queue, **prev_queue;
    struct hinted **path;
    struct target **target;
    uint32_t *entry, *same; /* same: the target's next entry */
    uint8_t *done;          /* ENTRY_* */
    uint32_t npaths, ntargets, n;
    uint32_t paths_cap, targets_cap, cap;
    uint64_t charged; /* bytes, of hints_limit */
    uint32_t head;    /* the first entry that is not done */
    uint32_t next;    /* the first one that the prefetcher has not passed */
    uint32_t asked;   /* behind the last one that somebody waits or waited for */
    uint32_t far;     /* behind the last one whose chunks the store keeps for it; far.h */
    uint64_t *kept_at;
    uint32_t unopened, opened_later; /* the first entry that is neither opened nor done; opened ones behind it */
    struct target *again;
    bool started, ended;
    /* Of a stage (bring.c): what is reached is nobody's to consume, and counts as admitted no longer. */
    bool staged;
    struct bringing *bringing; /* a request, not answered yet ... */
    void (*answer)(struct bringing *b); /* ... called once, without the lock, when all targets are reached */
    bool owned;        /* only chunks that this node owns are brought */
    uint32_t nreached; /* targets */
    unsigned busy;      /* targets that the prefetcher works on: the queue stays in memory */
    uint64_t ahead;     /* bytes of admitted targets ... */
    uint64_t absent;    /* ... of these, no file has the name */
    uint64_t kept;      /* bytes of others that the store keeps */
    uint64_t unflushed; /* of these: not on the PFS when that was last looked at, so they cannot leave anyway */
    uint32_t nadmitted, nabsent, nahead; /* targets */
    uint64_t sized, sized_bytes;         /* targets whose size is known, and their sum: the mean stands for others */
    uint64_t cancelled, consumed, fetched_bytes;
    uint64_t begun_ms, read_bytes; /* of consumed entries, since begun_ms: the rate */
    /* Entries that were opened in this turn and in the one before, which began at turn_ms; behind the last one that was opened; behind
     * the last one that was given out to be looked at (next.c). */
    unsigned opened, pace;
    uint64_t turn_ms;
    uint32_t reader, given;
};
enum { ENTRY_OPENED = 1, ENTRY_DONE = 2 }; /* opened: by a reader, after the hint */

extern struct lock hints_lock;
extern struct queue *hints_queues; /* all */
extern _Atomic uint64_t hints_now;  /* entries of all queues; may be read without the lock */

void hints_init(uint64_t limit_bytes); /* without the lock: before any other call */
void hints_end(void);                  /* without the lock: no queue is left */
struct hints_sums {
    uint64_t queues, hints, admitted, ahead, absent, ahead_bytes, kept, unflushed, memory, memory_max;
    uint64_t staged, pinned; /* bytes that are here for stages (shares.h) */
    uint64_t done; /* how often something was consumed or cancelled, or a queue ended */
};
void hints_sum(struct hints_sums *out);
/* Sets aside memory for something else than queues, or (< 0) gives it back.  False: there is no more. */
bool hints_charge(int64_t bytes);
/* So many bytes more or less (as an unsigned number) are here for stages; of these pinned. */
void hints_staged(uint64_t bytes, uint64_t pinned);

/* ---- queues ---- */
#define QUEUES_MAX 1024
struct queue *hints_queue_new(void); /* NULL: there are too many */
/* Its targets are nobody's any more; freed when the prefetcher has left it. */
void hints_queue_end(struct queue *q);
void hints_queue_left(struct queue *q); /* the prefetcher has left a target of it */
/* All checked before: wire.h's parse.  -ENOBUFS: nothing was added. */
struct parsed_add;
int hints_add(struct queue *q, const struct parsed_add *a, int64_t *first);
/* The entry is consumed, or cancelled. */
void hints_done(struct queue *q, uint32_t i, bool cancelled);
/* A reader opened the target's first entry. */
void hints_opened(struct target *t);
/* Counts the target as admitted, with its bytes; not any more. */
void hints_admit(struct target *t, uint64_t bytes);
void hints_unadmit(struct target *t);
/* The life of a target moves on; counted.  False: it does not happen. */
bool hints_step(struct target *t, enum life_event e);
void hints_set_life(struct target *t, enum life life); /* as it was found */
/* The staged target is here, or cannot be (-errno): it counts as admitted no longer, and its chunks stay hinted. */
void hints_reached(struct target *t, int err);
void hints_again(struct target *t); /* the prefetcher looks at it again */
/* The prefetcher has taken it up, but it is not here, and nobody works on it. */
bool hints_lacks(const struct target *t);
#define MEAN_UNKNOWN (UINT64_C(1) << 20) /* bytes of a target, before any size is known */
/* Bytes of the target; of one whose size is not known, the queue's mean. */
static inline uint64_t hints_bytes(const struct target *t)
{
    const struct queue *q = t->queue;
    if (t->bytes)
        return t->bytes;
    return q->sized ? q->sized_bytes / q->sized : MEAN_UNKNOWN;
}
/* Bytes before entry i; over the rate of the queue, that is the entry's distance, ms. */
uint64_t hints_before(const struct queue *q, uint32_t i);
uint64_t hints_distance(const struct queue *q, uint32_t i);
/* How many of the next entries are here: those before the first one that can be read and is not here. */
uint64_t hints_ready(const struct queue *q);

#endif
