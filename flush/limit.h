/* limit.h - a bound on bytes per second.  Each caller takes the next turn on a clock that goes as fast
 * as the bytes may.  Unused time does not count for later bytes.  The callers' lock guards it. */
#ifndef EDDY_FLUSH_LIMIT_H
#define EDDY_FLUSH_LIMIT_H

#include <stdint.h>

struct limit {
    uint64_t next_ns; /* when the next one's turn is */
};
/* Takes a turn for len bytes; returns its time.  rate in bytes/s, > 0; turns are given at most `ahead_ns` in
 * advance. */
uint64_t limit_turn(struct limit *l, double rate, uint64_t len, uint64_t now_ns, uint64_t ahead_ns);

#endif
