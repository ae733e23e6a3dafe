/* working.h - sends WORKING every second to each node that waits for this one.
 *
 * Deadlines measure silence, not work.  Without WORKING the asker would ask elsewhere, and one slow read of
 * the PFS would become many.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_WORKING_H
#define EDDY_PLACEMENT_CHUNKS_WORKING_H

#include "transport/message.h"

struct working {
    const struct msg *m;
    struct working *next, **prev;
};

/* From now on until working_end the sender of m gets WORKING.  Network thread (a handler). */
void working_begin(struct working *w, const struct msg *m);
/* Any thread; before m is answered and freed. */
void working_end(struct working *w);
/* After the last working_end, while the loop runs. */
void working_stop(void);

#endif
