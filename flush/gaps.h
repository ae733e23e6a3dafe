/* gaps.h - the wait interval that fits the application, learned from its pauses.
 *
 * An I/O phase has short gaps, and between phases are long ones.  A flush that begins in a short gap
 * is in the way of the I/O that follows at once; one that waits too long in a long gap does not use
 * it.  With a wait interval w each gap g > w is used, for g - w, and costs the application PRICE: the
 * piece that is under way when its I/O begins again, and what that displaces.  Chosen is the w with
 * the largest
 *
 *     sum of (g - w - PRICE) over the last gaps g > w
 *
 * which is just above the cluster of short gaps as long as there are some, and does not follow a
 * single long gap in a phase, for which all the others would have to be given up.  A margin goes on
 * top.  Pure; the caller's lock guards it.
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
