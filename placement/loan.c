/* loan.c - the threads that both sides of loans use (loan.h). */
#include "placement/loan.h"

#include "transport/loop.h"

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
