/* claim_life.h - this node's claims from its start to its end (claim_views.c). */
#ifndef EDDY_PLACEMENT_CLAIMS_CLAIM_LIFE_H
#define EDDY_PLACEMENT_CLAIMS_CLAIM_LIFE_H

#include "transport/members.h"

void claim_start(void); /* handlers of ASK, NAMED; members' callbacks must be claim_members_ops */
void claim_stop(void);
extern const struct members_ops claim_members_ops;
/* Called when a view was adopted (NULL: none), after the homes know of it.  Network thread. */
void claim_on_adopted(void (*fn)(const struct view *v));

/* At the start, before members_join: takes up the claims of dirty files in the store, and drops those of
 * clean files. */
int claim_recover(void);

unsigned claim_held(void); /* number of claims of this node */
/* Gives back all clean claims; for the end. Returns how many remain. */
unsigned claim_give_back_all(void);

#endif
