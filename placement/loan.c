/* loan.c - the threads that both sides of loans use (loan.h). */
#include "placement/loan.h"

#include "transport/loop.h"

struct pool *loan_quick, *loan_slow, *loan_asks;

void loan_start(void)
{
    loan_quick = pool_new("loan", 32);
    loan_slow = pool_new("loan-pfs", 32);
    loan_asks = pool_new("loan-asks", 16);
}

void loan_stop(void)
{
    pool_free(loan_asks);
    pool_free(loan_slow);
    pool_free(loan_quick);
    loan_asks = loan_slow = loan_quick = NULL;
}
