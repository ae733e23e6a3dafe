/* limit.h - a bound on bytes per second: who comes takes the next turn on a clock that runs as fast
 * as the bytes may.  No bytes are saved up while nobody comes.  The callers' lock guards it. */
#ifndef EDDY_FLUSH_LIMIT_H
#define EDDY_FLUSH_LIMIT_H

#include <stdint.h>

struct limit {
    uint64_t next_ns; /* when the next one's turn is */
};
/* Takes a turn for len bytes: when it is.  rate in bytes/s, > 0; at most `ahead_ns` are given away in
 * advance. */
uint64_t limit_turn(struct limit *l, double rate, uint64_t len, uint64_t now_ns, uint64_t ahead_ns);

#endif
