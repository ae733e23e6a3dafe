/* limit.c - a bound on bytes per second. */
#include "flush/limit.h"

#include "transport/base.h"

uint64_t limit_turn(struct limit *l, double rate, uint64_t len, uint64_t now_ns, uint64_t ahead_ns)
{
    uint64_t turn = MAX(l->next_ns, now_ns);
    double takes = MIN((double)len * 1e9 / rate, (double)ahead_ns);
    l->next_ns = MIN(turn + (uint64_t)takes, now_ns + ahead_ns);
    return turn;
}
