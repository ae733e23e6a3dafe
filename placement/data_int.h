/* data_int.h - what data.c (open, close, what is known), data_removed.c (files without a name), data_io.c
 * (reading and changing), data_where.c (where the bytes are) and data_dropped.c (are there any?) share.  Each uses those behind
 * it.
 */
#ifndef EDDY_PLACEMENT_DATA_INT_H
#define EDDY_PLACEMENT_DATA_INT_H

#include "placement/claims/claim.h"
#include "placement/data.h"

/* What data*.c keep of a file (FILE_DATA). */
struct file_data {
    struct file_part part;
    struct lock lock; /* RANK_DATA: keeper, keeper_pin, said */
    /* What a claimant said last, to any handle of this node; mtime_ns 0: nothing. */
    struct {
        uint64_t size;
        int64_t mtime_ns;
    } said;
    /* The claimant that keeps the file as long as it is open here, and the number of the pin there
     * (data_removed.c); 0: none. */
    uint64_t keeper, keeper_pin;
    /* A claimant said so before it dropped, of a file without a name, what the PFS never gets. */
    _Atomic bool drop_said;
    _Atomic bool unheard; /* it was removed here, and its claimant has not heard so */
    /* How often the kernel was told to drop its pages because another node has written, or is about to.  A handle that
     * has not asked since then where the bytes are must not give the kernel the older ones again (data_io.c). */
    _Atomic uint64_t drops;
};
extern const struct file_part_ops file_data_ops; /* data.c */
static inline struct file_data *data_of(struct file *f)
{
    return (struct file_data *)file_part(f, FILE_DATA, &file_data_ops);
}
/* The same of a file that has a handle. */
static inline struct file_data *data_of_open(struct file *f)
{
    return (struct file_data *)file_part_if(f, FILE_DATA);
}
/* Does a claimant keep it now? */
static inline bool data_is_kept(struct file *f)
{
    struct file_data *d = (struct file_data *)file_part_if(f, FILE_DATA);
    if (!d)
        return false;
    lock_take(&d->lock);
    bool kept = d->keeper;
    lock_drop(&d->lock);
    return kept;
}
static inline bool data_drop_said(const struct file *f)
{
    const struct file_data *d = (const struct file_data *)file_part_if(f, FILE_DATA);
    return d && d->drop_said;
}
static inline uint64_t data_drops(const struct file *f)
{
    const struct file_data *d = (const struct file_data *)file_part_if(f, FILE_DATA);
    return d ? d->drops : 0;
}

/* ---- data_where.c ---- */

/* Where the latest bytes are now: HERE, PFS, NODE (*node) or LOST. */
enum where data_where(struct data_handle *h, uint64_t *node);
/* What data_where says does not change unnoticed: this node is told (the handle's drops_seen), or asks the claimant each
 * time. */
bool data_stays(struct data_handle *h);
/* How long one call may take.  It is set when the call begins and is passed on to every function that asks
 * other nodes: these have no time-out of their own. */
struct patience {
    uint64_t end_ms;  /* boot_ms: from then on no node is asked again, -EIO */
    unsigned wait_ms; /* how long data_ask_again waits the next time */
};
/* The patience of an open, a read or a change that begins now: T_open. */
struct patience data_patience(void);
/* To be called before a node is asked again.  Waits, longer each time, or until another call has asked the
 * home for this handle.  -EIO: the time is over. */
int data_ask_again(struct data_handle *h, struct patience *p);
/* Finds the bytes for a handle that only reads.  seen: the PFS's version before the home is asked, or
 * NULL. */
int data_locate_reader(struct data_handle *h, const struct version *seen, struct patience *p);
/* The same without the PFS, for data_open_known.  -EAGAIN: not enough is known. */
int data_locate_known(struct data_handle *h, const struct data_known *k, bool fixed,
                      const struct patience *p);
/* The same for a handle that writes: a writer is counted at the claimant, which may be this node. */
int data_locate_writer(struct data_handle *h, const struct version *seen, struct patience *p);
/* A writer of this handle has been counted at `at`; it is not counted any more where it was before. */
void data_move_writer(struct data_handle *h, const struct location *at);
/* Asks the home again, once for all calls that need it at the same time; a writer is counted at the present
 * claimant. */
int data_relocate(struct data_handle *h, struct patience *p);
/* Notes what the claimant said, with bytes that it sent, or after a change that this handle made there. */
void data_heard(struct data_handle *h, uint64_t node, const struct carry_result *r,
                bool own_change);
/* The handle's read-ahead, made when it is first needed. */
struct stream *data_stream(struct data_handle *h);

/* ---- data_io.c ---- */

/* True: the handle must ask where the bytes are before it gives some: a break has come since it asked, or may have to
 * come without this node being told.  (A writer that is counted here hears of every change.) */
bool data_is_behind(struct data_handle *h);

/* data_truncate with the patience of an open. */
int data_cut(struct data_handle *h, uint64_t size, const struct patience *p);

/* ---- data_dropped.c ---- */

/* Of this node now, by the view; 0: it is no member. */
uint64_t data_incarnation(uint64_t node);
/* Does the home's answer name the version that the PFS has? */
static inline bool data_names_version(const struct location *at)
{
    return at->known == 1 || at->known == 2;
}
/* Of a file without a name, of which the PFS has v.  at: the home's answer, or NULL: it was not asked.  0: v is what its latest
 * claimant left.  -ESTALE: its latest bytes were dropped before they were flushed.  Else: the home was asked, and did not
 * answer (-EIO).  Blocking, until end_ms. */
int data_check_dropped(struct data_handle *h, const struct location *at, uint64_t end_ms, const struct version *v);

#endif
