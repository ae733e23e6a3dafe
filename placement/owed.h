/* owed.h - what other nodes have acknowledged, and no sync has covered (owed.c). */
#ifndef EDDY_PLACEMENT_OWED_H
#define EDDY_PLACEMENT_OWED_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/fid.h"
#include "transport/lock.h"

/* A node, in this incarnation, has acknowledged a change that no sync has covered. */
struct debt {
    uint64_t node, incarnation;
    uint64_t departures; /* ended_departures() before the change */
};

/* All of a handle.  Zeros and owed_init at first. */
struct owed {
    struct lock lock; /* RANK_LEAF */
    struct debt *v;
    unsigned n;
    uint64_t notes;    /* how often owed_note was called */
    uint64_t claimant; /* of those changes; 0: this node */
    bool given_up;     /* such changes were given up, and nobody was told so yet */
};
void owed_init(struct owed *o);
void owed_free(struct owed *o);
/* The node has acknowledged a change.  departures: ended_departures() before it was sent.  incarnation: the node's, or an
 * earlier one; 0: not known.  NULL: nothing is noted.  Any thread that holds no leaf lock. */
void owed_note(struct owed *o, uint64_t node, uint64_t incarnation, uint64_t departures);
/* The same of the file's claimant, which owed_moves compares. */
void owed_note_claimant(struct owed *o, uint64_t node, uint64_t incarnation, uint64_t departures);
/* How often something was noted: a sync covers what was noted before it. */
uint64_t owed_notes(struct owed *o);
/* May a node that owes have been given up since?  Any thread. */
bool owed_is_doubtful(struct owed *o);
/* Sets given_up if something was lost, by the marks in the session directory, and ends the debts then; all: always.  What is noted
 * meanwhile stays, and the rest with it.  Blocking. */
void owed_look(struct owed *o, struct fid fid, bool all);
/* Is another node the claimant now than of what is owed?  0: this node is; OWED_NOBODY: the PFS has the file. */
#define OWED_NOBODY UINT64_MAX
bool owed_moves(struct owed *o, uint64_t claimant);
int owed_said(struct owed *o); /* -EIO, once, if something was given up; else 0 */
void owed_covered(struct owed *o, uint64_t notes); /* by a sync that began when owed_notes gave that */

#endif
