/* gate.h - what a run passes before each piece that it writes (gate.c). */
#ifndef EDDY_FLUSH_GATE_H
#define EDDY_FLUSH_GATE_H

#include "flush/queue.h"

/* Why a run was begun, and what it does when that reason no longer holds. */
enum run_mode {
    RUN_WAITS,  /* a lull: waits for the next one, within a piece */
    RUN_YIELDS, /* a mark, age, policy: ends after a batch, the rest is ready again */
    RUN_ASKED,  /* somebody waits for it: goes on */
};
struct gate {
    struct file *f;
    enum run_mode mode;
    bool slot;   /* counted in flush.busy, or in flush.syncing if it is ending */
    bool idle;   /* the next piece at idle priority */
    bool ending; /* counted in flush.ending, and no more where it was */
};
/* Before each piece of len bytes: waits until it may go.  0, or -ECANCELED at the end of the
 * daemon; or why nothing of the file is flushed any more (claim_may_flush, borrow_may_flush). */
int gate_wait(struct gate *g, uint64_t len);
/* Between batches: 0; -ECANCELED: the rest can wait. */
int gate_goes_on(struct gate *g);
/* All is written, and the PFS's fsync follows: another file may be written meanwhile. */
void gate_ends(struct gate *g);
/* flush.lock held: the run is over. */
void gate_leave(struct gate *g);
/* flush.lock held: is it to be written now, and how long is the answer good? */
enum flush_why gate_decide(const struct flush_item *it, uint64_t now, uint64_t *wait_ms);

#endif
