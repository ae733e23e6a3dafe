/* run.h - the flush of one file: begun in a thread of a pool of writers, and ended (run.c). */
#ifndef EDDY_FLUSH_RUN_H
#define EDDY_FLUSH_RUN_H

#include "flush/gate.h"

/* flush.lock held; it is on a list and has no run now. */
void run_start(struct flush_item *it, enum run_mode mode);

#endif
