/* marks.h - dirty bytes against the marks: how urgent the flush is, how fast writers may write.
 *
 *     0        low          high                     full     100 % of the room for bytes
 *     |---------|------------|------------------------|-------|
 *       lulls      drain:       flush at full speed;    writers wait until bytes are clean
 *       only       flush at     writers at
 *                  input rate   flush rate * (full - high) / (dirty - high)
 *                  + excess
 *                  / 30 s,
 *                  from high down to low
 *
 * The writers' rate is unlimited at the high mark, and the flush's rate F at the full mark.  So whatever the
 * input rate I > F is, the dirty bytes settle in between, where writers are slowed to F.
 * Pure, except for the clock's value: the callers' lock guards struct marks.
 */
#ifndef EDDY_FLUSH_MARKS_H
#define EDDY_FLUSH_MARKS_H

#include "flush/decide.h"
#include "flush/limit.h"

#define MARK_FULL 95 /* % */

struct marks {
    unsigned high, low; /* % of the room */
    bool draining;
    double in, out; /* bytes/s: becoming dirty; written to the PFS while there was something to
                       write */
    struct marks_sample {
        uint64_t at_ms, dirty, flushed, written;
    } last;
    struct limit writers;
};

uint64_t marks_bytes(uint64_t room, unsigned percent);
/* Remembers that the high mark was reached, until the low mark is reached. */
enum mark_level marks_level(struct marks *m, uint64_t dirty, uint64_t room);
/* Measures the rates; cheap, may be called often.  flushed: all bytes so far that became clean; written: all
 * that were written to the PFS.  busy: a run is going on. */
void marks_measure(struct marks *m, const struct marks_sample *now, bool busy);
double marks_drain_rate(const struct marks *m, uint64_t dirty, uint64_t room); /* bytes/s */
/* A writer of len bytes may go on at this time; all writers take turns. */
uint64_t marks_slow(struct marks *m, uint64_t len, uint64_t dirty, uint64_t room, uint64_t now_ns);
bool marks_full(uint64_t dirty, uint64_t len, uint64_t room);

#endif
