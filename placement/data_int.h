/* data_int.h - what data.c (open, close, what is known), data_removed.c (files without a name), data_io.c
 * (reading and changing) and data_where.c (where the bytes are) share.  Each uses those behind it.
 */
#ifndef EDDY_PLACEMENT_DATA_INT_H
#define EDDY_PLACEMENT_DATA_INT_H

#include "placement/claims/claim.h"
#include "placement/data.h"

/* What data*.c know of a file (FILE_DATA). */
struct file_data {
    struct file_part part;
    struct lock lock; /* RANK_DATA: the next two */
    /* The claimant at another node that keeps it as long as it is open here, and the number of the pin
     * there (data_removed.c); 0: none. */
    uint64_t keeper, keeper_pin;
    /* How often the kernel was told to drop its pages because another node had written: a handle that
     * has not asked since where the bytes are must not bring the older ones back (data_io.c). */
    _Atomic uint64_t drops;
};
extern const struct file_part_ops file_data_ops; /* data.c */
static inline struct file_data *data_of(struct file *f)
{
    return (struct file_data *)file_part(f, FILE_DATA, &file_data_ops);
}
static inline uint64_t data_drops(const struct file *f)
{
    const struct file_data *d = (const struct file_data *)file_part_if(f, FILE_DATA);
    return d ? d->drops : 0;
}

/* ---- data_where.c ---- */

/* Now: HERE, PFS, NODE (*node) or LOST. */
enum where data_where(struct data_handle *h, uint64_t *node);
/* How long one call may take.  It is made where the call enters, and goes with it to all that asks: none has
 * a time of its own. */
struct patience {
    uint64_t end_ms;  /* boot_ms: then nobody is asked again, -EIO */
    unsigned wait_ms; /* before the next time */
};
/* Of a call that begins now: an open, a read or a change may wait so long for a decision (T_open). */
struct patience data_patience(void);
/* Before somebody is asked again: waits a little longer each time, or until the place was asked for by
 * another call.  -EIO: the time is over. */
int data_ask_again(struct data_handle *h, struct patience *p);
/* At open, for reading.  seen: what the PFS had before the home is asked, or NULL. */
int data_locate_reader(struct data_handle *h, const struct version *seen, struct patience *p);
/* The same without the PFS, as data_open_known: -EAGAIN: not known well enough. */
int data_locate_known(struct data_handle *h, const struct data_known *k, bool fixed,
                      const struct patience *p);
/* For writing: a writer is counted where the claim is. */
int data_locate_writer(struct data_handle *h, const struct version *seen, struct patience *p);
/* A writer of this handle is counted at `at`; what counted it before ends. */
void data_move_writer(struct data_handle *h, const struct location *at);
/* Asks the home again, once for all that come meanwhile; a writer is counted where the claim is
 * now. */
int data_relocate(struct data_handle *h, struct patience *p);
/* The claimant's word, with bytes that it sent, or after a change that this handle made there. */
void data_heard(struct data_handle *h, uint64_t node, const struct carry_result *r,
                bool own_change);
/* An open of this node is counted at the claimant, under a number; and is not any more. */
int data_pin(struct file *f, uint64_t node, uint64_t number);
void data_unpin(struct file *f, uint64_t node, uint64_t number);
/* The handle's read-ahead, made when it is first needed. */
struct stream *data_stream(struct data_handle *h);

/* ---- data_io.c ---- */

/* data_truncate within an open's patience. */
int data_cut(struct data_handle *h, uint64_t size, const struct patience *p);

#endif
