/* gaps.h - the wait interval that fits the application, learned from its pauses.
 *
 * An I/O phase has short gaps, and between phases are long gaps.  A flush that begins in a short gap
 * disturbs the I/O that follows at once.  A flush that waits too long in a long gap does not use
 * the gap.  With a wait interval w each gap g > w is used, for g - w.  It costs the application PRICE: the
 * piece that is being written when the I/O begins again, and the work that this displaces.  The interval is
 * the w with the largest
 *
 *     sum of (g - w - PRICE) over the last gaps g > w
 *
 * This w is just above the cluster of short gaps, if there are any.  A single long gap in a phase does not
 * move it, because all the other gaps would be lost.  A margin is added.  Pure; the caller's lock guards it.
 */
#ifndef EDDY_FLUSH_GAPS_H
#define EDDY_FLUSH_GAPS_H

#include <stdint.h>

#define GAP_MIN_MS  4  /* shorter ones are between two requests of one burst */
#define GAP_BINS    80 /* four per octave from GAP_MIN_MS on: to more than an hour */
#define WAIT_MIN_MS 50
#define WAIT_MAX_MS 10000

struct gaps {
    double number[GAP_BINS]; /* old ones fade */
    double total;            /* of all of them */
};
void gaps_add(struct gaps *g, uint64_t ms);
/* ms; fallback while too little is known. */
uint64_t gaps_interval(const struct gaps *g, uint64_t fallback_ms);

#endif
