/* loan.h - what both sides of loans use to ask each other (lend.c, borrow.c). */
#ifndef EDDY_PLACEMENT_LOAN_H
#define EDDY_PLACEMENT_LOAN_H

#include "transport/message.h"

#define LEND_MAX 4096u /* units in one LEND, and parts in one LENT */

struct pool;
/* A borrower's jobs for LOAN: those of loan_quick wait for the cache's disk, those of loan_slow for the PFS, too.  None waits
 * for another node: those of loan_asks do, and no node waits for them. */
extern struct pool *loan_quick, *loan_slow, *loan_asks;
void loan_start(void);
void loan_stop(void); /* waits for what runs */

/* For `eddy status`: what one node has lent to another one of a file. */
struct loan_status {
    const char *path; /* the call's */
    uint64_t node;    /* the other side; 0: not known yet (lend.c) */
    uint64_t bytes;
};
typedef void loan_status_fn(void *arg, const struct loan_status *s);

/* A loan of the claim with this number. */
struct loan_id {
    uint64_t inc, number;
};
static inline bool loan_id_eq(struct loan_id a, struct loan_id b)
{
    return a.inc == b.inc && a.number == b.number;
}

#endif
