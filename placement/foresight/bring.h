/* bring.h - the side of a stage that brings: what BRING asks of this node (bring.c, bring_look.c);
 * stage.h is the side that asks. Private to placement/foresight/, but bring_stop.
 *
 * The files of one BRING are a queue that no program reads.  The prefetcher brings them as it
 * brings what is hinted: within the same room, after the readers.  When each of them is here, or
 * cannot be, the BRING is answered, and its files are in the stage's share (shares.h).  Meanwhile
 * the sender gets WORKING.
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_BRING_H
#define EDDY_PLACEMENT_FORESIGHT_BRING_H

#include "placement/foresight/hints.h"
#include "transport/message.h"

#define BRING_FILES 256 /* in one message */

enum bring_what {
    BRING_LOOK, /* what is here of these files?  The PFS is not asked */
    BRING_NOW,  /* bring what is not here */
    BRING_END,  /* the stage has ended: nothing of it is pinned, and nothing more is brought for it; no files */
    BRING_DROP, /* no stage wants these files any more; no files: whatever any stage wanted */
    BRING_WHATS,
};

void bring_start(void); /* registers the handler: before peer_start */
/* Requests that are under way are answered with -ECANCELED, as are all that come later.  While
 * peers still run. */
void bring_stop(void);

/* What of the file is here.  *same: it is all of it, in the version that was asked for, and clean.
 * owned: `wanted` counts only chunks that this node owns, and all of it is all of these. */
struct item_brought bring_look(const struct item_wanted *w, bool owned, bool *same);

#endif
