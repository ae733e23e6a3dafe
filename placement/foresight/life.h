/* life.h - the life of what one hint names, as one table (life.c).  After Figure 1 of Maurya et al., "GPU-Enabled Asynchronous
 * Multi-level Checkpoint Caching and Prefetching" (HPDC '23):
 *
 *   INIT --written--> WRITING --closed--> WRITTEN --flushed--> FLUSHED --evicted--> GONE
 *   GONE --admitted--> READING --all here--> AHEAD --consumed--> CONSUMED --evicted--> GONE
 *
 * What is admitted and here already is AHEAD without a fetch; what is WRITTEN then becomes AHEAD when it is flushed, since it
 * cannot leave before.  Another version, or a claim elsewhere, makes what is here worthless.
 *
 * In memory only: a daemon that starts again knows no hints.  Pure functions, any thread.
 */
#ifndef EDDY_PLACEMENT_FORESIGHT_LIFE_H
#define EDDY_PLACEMENT_FORESIGHT_LIFE_H

#include <stdbool.h>

enum life {
    LIFE_INIT,     /* nothing can be read by that name, as far as is known */
    LIFE_WRITING,  /* open for writing on this node */
    LIFE_WRITTEN,  /* here, not all on the PFS */
    LIFE_FLUSHED,  /* here, and on the PFS: may leave */
    LIFE_GONE,     /* on the PFS, not all here */
    LIFE_READING,  /* on its way here */
    LIFE_AHEAD,    /* here for an admitted hint */
    LIFE_CONSUMED, /* read; not read again before what is hinted */
    LIFE_STATES,
};

enum life_event {
    LIFE_WRITE,         /* opened for writing on this node */
    LIFE_CLOSE,         /* the last writer has closed it */
    LIFE_FLUSH,         /* all of it is on the PFS, and no hint for it is admitted */
    LIFE_FLUSH_WANTED,  /* the same, with an admitted hint */
    LIFE_ADMIT,
    LIFE_HERE,          /* all of it is here */
    LIFE_CONSUME,
    LIFE_GIVE_UP,       /* the admitted hint does not protect it any more */
    LIFE_EVICT,         /* some of it is not here any more */
    LIFE_OTHER_VERSION, /* the PFS has other bytes, or another node has claimed it */
    LIFE_REMOVE,        /* the name is gone */
    LIFE_EVENTS,
};

/* Moves *state on.  False: this event does not happen in this state (it came late), and nothing is changed. */
bool life_step(enum life *state, enum life_event e);
const char *life_name(enum life state);

#endif
