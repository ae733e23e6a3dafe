/* eddy_figures.h - the daemon's figures and latencies, as eddy stats and eddy report read and show them. */
#ifndef EDDY_TOOLS_EDDY_FIGURES_H
#define EDDY_TOOLS_EDDY_FIGURES_H

#include <jansson.h>

#include "transport/latency.h"

/* Adds what {"count", "sum_ns", "buckets"} says; what is no bucket is left out. */
void figures_add_latency(struct latency_copy *to, const json_t *o);
#define AMOUNT_SIZE 24
/* "12 MB", "1.5 GB": in powers of 1000, as rates are told.  Returns buf. */
const char *figures_amount(double bytes, char buf[AMOUNT_SIZE]);

#endif
