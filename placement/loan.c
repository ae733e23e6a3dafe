/* loan.c - the threads that both sides of loans use (loan.h). */
#include "placement/loan.h"

#include "transport/loop.h"

struct pool *loan_quick, *loan_back, *loan_lend, *loan_slow, *loan_doubt, *loan_asks;

void loan_start(void)
{
    loan_quick = pool_new("loan", 32);
    loan_back = pool_new("loan-back", 32);
    loan_lend = pool_new("loan-lend", 32);
    loan_slow = pool_new("loan-pfs", 32);
    loan_doubt = pool_new("loan-doubt", 8);
    loan_asks = pool_new("loan-asks", 16);
}

void loan_stop(void)
{
    struct pool **all[] = {&loan_asks, &loan_doubt, &loan_slow, &loan_lend, &loan_back, &loan_quick};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        pool_free(*all[i]);
        *all[i] = NULL;
    }
}
