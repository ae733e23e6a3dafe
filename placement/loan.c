/* loan.c - the threads that both sides of loans use, and what these do with a request (loan.h). */
#include "placement/loan.h"

#include <stdlib.h>

#include "placement/chunks/working.h"
#include "transport/loop.h"
#include "transport/peer.h"

struct pool *loan_quick, *loan_back, *loan_lend, *loan_slow, *loan_doubt, *loan_asks;

/* In the order in which they end. */
static const struct pool_kind pools[] = {
    {&loan_asks, "loan-asks", 16}, {&loan_doubt, "loan-doubt", 8}, {&loan_slow, "loan-pfs", 32},
    {&loan_lend, "loan-lend", 32}, {&loan_back, "loan-back", 32},  {&loan_quick, "loan", 32},
};

void loan_start(void)
{
    pools_new(pools, ARRAY_LEN(pools));
}

void loan_stop(void)
{
    pools_free(pools, ARRAY_LEN(pools));
}

struct job {
    struct msg *m;
    struct working working;
    loan_serve_fn *fn;
};

static void serve(void *arg)
{
    struct job *j = arg;
    struct msg *reply = NULL;
    int err = j->fn(j->m, &reply);
    working_end(&j->working);
    if (err)
        peer_reply_error(j->m, err);
    else
        peer_reply(j->m, reply);
    msg_free(j->m);
    free(j);
}

void loan_serve(struct pool *p, loan_serve_fn *fn, struct msg *m)
{
    struct job *j = xcalloc(1, sizeof(*j));
    j->m = m;
    j->fn = fn;
    working_begin(&j->working, m);
    pool_submit(p, serve, j);
}
