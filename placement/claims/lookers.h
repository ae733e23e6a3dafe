/* lookers.h - the home's table of lookers: which nodes are to be told before a file changes (docs/protocol.md,
 * "Looking").
 *
 * An entry is of a file and a node, and ends at some time, or when the node says so (LEAVE), or answers BREAK.
 * Of one file at most LOOKERS_NAMED nodes have entries; one more, and the file has one entry for any node.  Such
 * an entry, or none, costs messages, never a wrong byte.  The table is of one view, and of bounded size.
 *
 * Private to the home.  home_lock is held.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_LOOKERS_H
#define EDDY_PLACEMENT_CLAIMS_LOOKERS_H

#include "placement/claims/look.h"

#define LOOKERS_NAMED 8
#define LOOKERS_BYTES (64u << 20)
/* An entry of LOOK_STAT: from when WHERE comes on.  The asker counts LOOK_STAT_MS from before it sent WHERE; the
 * rest is for what it takes it to hand the answer to its kernel. */
#define LOOKER_STAT_MS 1500
/* So long no node may keep anything of a file that was broken so often while descriptors that cache were open, each
 * time within this time after the one before: a log that many nodes follow costs a BREAK to each now and then, not at
 * each line. */
#define LOOKER_HUSH_MS    60000
#define LOOKER_HUSH_AFTER 4

#define LOOKER_ANY UINT32_MAX /* instead of a member's index in the view: any member */

struct looker_found {
    uint32_t node; /* index in the view, or LOOKER_ANY */
    enum look look;
    uint32_t number;
};

/* A new view, or the end: no entries, and no memory. */
void lookers_begin(void);
/* The node may keep what it finds: it is entered.  False: it may not, since the file was broken of late, or the
 * table is full (it is entered as LOOK_QUIET then, if it opens the file); but if it is entered as LOOK_OPEN already it
 * may, for it will be told. */
bool looker_enter(struct fid fid, uint32_t node, enum look look, uint64_t number);
/* A node that looks whatever the home says: it has said so, or next has entered it.  If the table is full, all
 * members count as lookers of all files until the view ends; quiet ones, if all without room were. */
void looker_note(struct fid fid, uint32_t node, enum look look, uint64_t number);
/* The node is about to remove a name of the file: nobody may open the file without a descriptor, until no look that is from
 * before it left counts any more (lookers_known_for).  Without room this is so for all files until the view ends. */
void looker_goes(struct fid fid, uint32_t node, uint64_t number);
bool looker_name_goes(struct fid fid);
/* So long after a look at a name a node may open the file by what it knows of it; LOOK_STAT_MS, if it is not set. */
void lookers_known_for(uint64_t ms);
/* The node has closed the file.  It may still have attributes. */
void looker_leave(struct fid fid, uint32_t node, uint64_t number);
/* Nothing is left at this node; LOOKER_ANY: nor at those that are not named. */
void looker_forget(struct fid fid, uint32_t node);
/* All of the file; not the hush. */
void lookers_forget(struct fid fid);
/* The lookers now: at most LOOKERS_NAMED and LOOKER_ANY.  Answers how many.  LOOKER_ANY comes last; if it is
 * LOOK_QUIET, those that are not named need not be told. */
unsigned lookers_of(struct fid fid, struct looker_found out[LOOKERS_NAMED + 1]);
/* It was broken while descriptors that cache were open.  At the LOOKER_HUSH_AFTERth time looker_enter says false, for
 * LOOKER_HUSH_MS. */
void looker_hush(struct fid fid);

/* Drops entries whose time is over, of some thousand places; true: it has reached the end of the table. */
bool lookers_sweep_some(void);
unsigned lookers_count(void);
size_t lookers_bytes(void);

#endif
