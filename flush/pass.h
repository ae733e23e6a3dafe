/* pass.h - one pass of one file: begun, let go on or held before each piece, ended (pass.c). */
#ifndef EDDY_FLUSH_PASS_H
#define EDDY_FLUSH_PASS_H

#include <sys/stat.h>

#include "flush/queue.h"

/* Why a run was begun, and what it does when that reason no longer holds. */
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
/* flush.lock held; it is on a list and has no run now. */
void pass_start(struct flush_item *it, enum pass_mode mode);
/* Before each piece of len bytes: waits until it may go.  0, or -ECANCELED at the end of the
 * daemon. */
int pass_gate(struct pass_gate *g, uint64_t len);
/* Between batches: 0; -ECANCELED: the rest can wait. */
int pass_goes_on(struct pass_gate *g);
/* All is written, and the PFS's fsync follows: another file may be written meanwhile. */
void pass_ends(struct pass_gate *g);
/* Some dirty bytes have become clean (room for writers). */
void pass_progress(uint64_t bytes, bool idle);
void pass_copied(struct file *f, const struct statx *stx,
                 uint64_t looked_ms); /* flush_on_copied's */
/* flush.lock held: is it to be written now, and how long is the answer good? */
enum flush_why pass_decide(const struct flush_item *it, uint64_t now, uint64_t *wait_ms);

#endif
