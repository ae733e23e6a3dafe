/* loan.h - what both sides of loans use to ask each other (lend.h, borrow.h). */
#ifndef EDDY_PLACEMENT_LOAN_H
#define EDDY_PLACEMENT_LOAN_H

#include "placement/store/unit_map.h"
#include "transport/message.h"

#define LEND_MAX 4096u /* units in one LEND, and parts in one LENT */

struct pool;
/* Each waits for jobs of those before it only, on any node, so that there is no circle.  loan_quick: for the cache's disk;
 * loan_back, RETURN: for the PFS; loan_lend, LEND: it may ask what is held; loan_slow: for a loan's flush and its RETURN;
 * loan_doubt: LEND that recalls.  loan_asks: a borrower's own RETURNs; no node waits for them. */
extern struct pool *loan_quick, *loan_back, *loan_lend, *loan_slow, *loan_doubt, *loan_asks;
void loan_start(void);
void loan_stop(void); /* waits for what runs */

/* Serves m, a request, in a thread of the pool: fn, then the answer.  Its sender hears WORKING until then.  Network thread;
 * takes over m.  fn: 0 and *reply, or -errno and no reply; m stays the caller's. */
typedef int loan_serve_fn(const struct msg *m, struct msg **reply);
void loan_serve(struct pool *p, loan_serve_fn *fn, struct msg *m);

/* For `eddy status`: what one node has lent to another one of a file. */
struct loan_status {
    const char *path; /* the call's */
    uint64_t node;    /* the other side; 0: not known yet (lend_held.c) */
    uint64_t bytes;
    uint64_t begin, end; /* in bytes of the file: all of it is between them */
};
typedef void loan_status_fn(void *arg, const struct loan_status *s);
static inline void loan_tell(loan_status_fn *fn, void *arg, const char *path, uint64_t node, struct unit_sum has)
{
    fn(arg, &(struct loan_status){path ? path : "?", node, has.units * LOAN_UNIT, has.first * LOAN_UNIT,
                                  has.end * LOAN_UNIT});
}

/* A loan of the claim with this number. */
struct loan_id {
    uint64_t inc, number;
};
static inline bool loan_id_eq(struct loan_id a, struct loan_id b)
{
    return a.inc == b.inc && a.number == b.number;
}

#endif
