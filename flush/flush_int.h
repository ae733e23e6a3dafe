/* flush_int.h - what the files of flush/ share and nobody else uses.
 *
 * decide.c   whether a file is written now: pure, of all that is known
 * lull.c     activity, and the bell that wakes who sleeps here
 * gaps.c     the wait interval from the application's pauses: pure
 * marks.c    dirty bytes against the marks: pure
 * limit.c    bytes per second: pure
 * room.c     dirty bytes as they are now; writers are slowed, and wait for room
 * queue.c    the lists of dirty files
 * flusher.c  the thread that begins passes; start and stop
 * pass.c     one pass of one file: begun, held, ended
 * copyout.c  what a pass does
 * piece.c    how large its writes are: pure
 * ask.c      who asks for a flush and waits for it
 * retry.c    what failed: when again, what is said about it
 * status.c   for `eddy status`
 * names.c    the dirty list in the session directory
 * priority.c idle CPU and I/O priority
 * recover.c  what a dead daemon left
 * conflict.c ... and the PFS has differently now
 * rescue.c   ... copied elsewhere
 * sample.c   files that applications read and write through the kernel
 * disk.c     the cache disk's counters
 */
#ifndef EDDY_FLUSH_FLUSH_INT_H
#define EDDY_FLUSH_FLUSH_INT_H

#include "flush/decide.h"
#include "flush/flush.h"
#include "flush/limit.h"
#include "flush/marks.h"
#include "flush/piece.h"

#include "transport/lock.h"

/* ---- lull.c ---- */
void lull_set_wait(uint64_t wait_ms);
void lull_learn(uint64_t first_ms); /* from the gaps; first_ms until enough is known */
uint64_t lull_wait_ms(void);        /* as it is now */
void lull_past(uint64_t ago_ms);    /* I/O that went past this daemon ended so long ago */
/* ms until there is a lull if nothing else happens: 0 = now; UINT64_MAX = I/O is in progress, and
 * the bell will ring when it ends. */
uint64_t lull_due_ms(void);
/* The bell: whoever waits for something here notes bell_seen() before he looks, and then waits for
 * a later ring. RANK_LEAF: any thread that holds no leaf lock may ring. */
uint64_t bell_seen(void);
void bell_ring(void);
void bell_wait(uint64_t seen, uint64_t timeout_ms); /* 0: no time-out */

/* ---- queue.c ---- */
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
    bool runs;       /* a run (one copy-out) of it is under way */
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
/* One per daemon.  Locks: flush.lock (RANK_POLICY) for all of it and for every item;
 * not held while anything of the store's, the PFS's or the claims' is called, but for file_ref.
 * flush.ended: a pass has ended, bytes have become clean, or a call of on_copied has returned.  The
 * flusher and waiting writers sleep on the bell (lull.c). */
extern struct flush_state {
    struct lock lock;
    pthread_cond_t ended;
    struct flush_config config;
    struct item_list ready[FLUSH_POLICIES], running, failed;
    uint64_t seq;           /* place in the order, given to files as they become dirty */
    uint64_t failures;      /* so many so far, of all files */
    uint64_t next_retry_ms; /* not later than the first retry_at_ms of failed; NEVER: none */
    uint64_t progress;      /* goes up when bytes have become clean */
    uint64_t room_tried_ms;
    unsigned waiting_jobs, urgent_jobs; /* in the two pools */
    unsigned busy;                      /* passes that nobody asked for and that write now */
    unsigned ending, syncing;           /* passes that have written all; that do not wait */
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

/* ---- pass.c ---- */
/* Why a pass was begun, and what it does when that reason has gone. */
enum pass_mode {
    PASS_WAITS,  /* a lull: waits for the next one, within a piece */
    PASS_YIELDS, /* a mark, age, policy: ends after a batch, the rest is ready again */
    PASS_ASKED,  /* somebody waits for it: goes on */
};
struct pass_gate {
    struct file *f;
    enum pass_mode mode;
    bool slot;   /* counted in flush.busy, or in flush.syncing if it is ending */
    bool idle;   /* the next piece at idle priority */
    bool ending; /* counted in flush.ending, and no more where it was */
};
/* flush.lock held; it is on a list and no pass of it runs. */
void pass_start(struct flush_item *it, enum pass_mode mode);
/* Before each piece of len bytes: waits until it may go.  0, or -ECANCELED at the end of the
 * daemon. */
int pass_gate(struct pass_gate *g, uint64_t len);
/* Between batches: 0; -ECANCELED: the rest can wait. */
int pass_goes_on(struct pass_gate *g);
/* All is written, what follows is the PFS's fsync: another file may be written beside it. */
void pass_ends(struct pass_gate *g);
/* Some dirty bytes have become clean (room for writers). */
void pass_progress(uint64_t bytes, bool idle);
void pass_copied(struct file *f, const struct statx *stx,
                 uint64_t looked_ms); /* flush_on_copied's */
/* flush.lock held: is it written now, and how long is that so? */
enum flush_why pass_decide(const struct flush_item *it, uint64_t now, uint64_t *wait_ms);

/* ---- room.c ---- */
/* Dirty bytes against the marks now; takes the rates too. flush.lock held. */
enum mark_level room_level(void);
/* Writers, and the sampler: tells the flusher when the high mark is reached. */
void room_look(void);
uint64_t room_batch(void); /* between two fsyncs of one file, bytes */

/* ---- copyout.c ---- */
/* One pass over the file: everything that was dirty when it began reaches the PFS.  *clean: and
 * nothing came after. 0, -ECANCELED, or why the PFS did not take it (nothing is lost). */
int copyout_file(struct pass_gate *g, bool *clean);

/* ---- conflict.c ---- */
/* Of a file that a dead daemon left: *settled: the PFS keeps its own, nothing is left to flush.
 * Else 0: it is as it was; -errno: not known. */
int conflict_check(struct file *f, bool *settled);
struct pfs_new;
struct copying {
    struct file *f;
    struct pfs_new *to;
    /* bytes that are not here, *n of them, into buf; -ENODATA: nobody has them */
    int (*fill)(struct copying *c, uint64_t off, size_t *n);
    char *buf; /* PIECE */
    uint64_t missing;
};
int copy_whole(struct copying *c);

/* ---- retry.c; flush.lock held ---- */
uint64_t retry_next_ms(void); /* NEVER: nothing failed, or others come first */
/* Failed files whose time has come are ready again (asked: all, whatever their time). */
void retry_due(bool asked, uint64_t now);
/* Counts the failure, sets when it is tried again; true: it must be logged (without the lock:
 * retry_log). */
bool retry_failed(struct flush_item *it, int err, uint64_t now);
/* Is it void (eddy forget), and open?  It goes beside its file when that is closed
 * (flush_forgotten): nothing has failed. */
bool retry_is_wait(const struct flush_item *it, int err);
void retry_waited(struct flush_item *it, uint64_t now);
void retry_succeeded(struct flush_item *it);
void retry_log(struct file *f, int err);

/* ---- names.c ---- */
uint64_t
names_due_ms(uint64_t now);  /* ms until the list must be written, 0 = now, UINT64_MAX = not */
void names_write_soon(void); /* in pool_session */
void names_write_now(void);  /* at the end; waits */
void names_start(void);      /* nothing is written until names_go */
void names_go(void);

/* ---- sample.c ---- */
int sample_start(void);
void sample_stop(void);

/* ---- disk.c ---- */
#define DISK_BUSY (512u << 10) /* bytes between two looks */
struct disk_counts {
    bool known;         /* no counters: a file system on no disk of its own */
    uint64_t read, own; /* bytes, by all; by this process */
};
void disk_look(struct disk_counts *now);
/* Did somebody else read since the last look?  *last becomes *now. */
bool disk_busy(struct disk_counts *last, const struct disk_counts *now);

/* ---- priority.c ---- */
void priority_idle(void); /* this thread, from now on */
void priority_normal(void);

#endif
