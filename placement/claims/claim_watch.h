/* claim_watch.h - the watchers of a file that this node has claimed: nodes with descriptors that serve bytes which
 * only the claimant knows to be old (docs/protocol.md, "Looking").
 *
 * The home names them in GRANT: what was left of its lookers after BREAK.  FREE gives those that are still
 * there back to the home.  A node that opens the file while it is written here asks the claimant at each use; while
 * nobody writes it becomes a watcher.  The claim's lock (RANK_CLAIM).
 *
 * A node that opens the file with O_APPEND becomes a watcher at once, for the file's size alone: what processes here
 * store by the kernel itself (passthrough) it is not told.  Of such nodes CLAIM_WATCHERS_MAX are told, and no more,
 * since a log to which all nodes append would cost a message to each at each append.
 *
 * A claimant that has left the view goes on, and cannot tell its watchers.  So each node that sees a view without a
 * node that may still run ends what it believes of its open files (claim_views.c); the claimant leaves out a watcher
 * when W has passed since it saw a view without the watcher, or without itself.
 */
#ifndef EDDY_PLACEMENT_CLAIMS_CLAIM_WATCH_H
#define EDDY_PLACEMENT_CLAIMS_CLAIM_WATCH_H

#include "placement/claims/look.h"
#include "placement/store/file.h"

#define CLAIM_WATCHERS_MAX 8 /* by name; more: any member may be one */

struct claim_watcher {
    uint64_t node, incarnation;
    unsigned kinds;   /* LOOKER_... bits; LOOKER_OPEN alone: no watcher, it is told of TOLD_DROP only */
    bool of_bytes;    /* no change is made past it; else it is one because of the size alone, or none */
    unsigned entered; /* counts up each time a node becomes one */
};

/* Is any other node told of changes?  Cheap; any thread.  Only after claim_open_writer or claim_carry_begin has
 * succeeded: a claim that was taken up at the start learns it from the home then. */
bool claim_watched(struct file *f);
bool claim_watched_bytes(struct file *f); /* and not of its size alone */
/* The watchers, and nodes that have it open; answers how many are in out.  *any: what any other member of the view but
 * this one may have left; 0: nothing. */
unsigned claim_watchers(struct file *f, struct claim_watcher out[CLAIM_WATCHERS_MAX], unsigned *any);
/* What the node has left, as it answered CHANGED; 0: it is no watcher any more, unless it has become one again since
 * `since`: its `entered` when it was told.  Where any member could be one: a node with something left is one by
 * name from now on. */
void claim_watcher_left(struct file *f, uint64_t node, unsigned kinds, unsigned since);
/* All members were told of a change, and each has answered (claim_watcher_left was called for them): there are no
 * watchers but those by name.  Nothing changes if there are more than CLAIM_WATCHERS_MAX. */
void claim_watchers_asked(struct file *f);
/* The node opens the file.  True: it is a watcher now, and is told of each change from now on.  False: the file is open
 * for writing, perhaps through the kernel, so that its changes are not seen here; or there are too many. */
bool claim_watch_begin(struct file *f, uint64_t node, uint64_t incarnation);
/* The node has opened the file to append to it: it is told of the size from now on, if there is room. */
void claim_watch_appends(struct file *f, uint64_t node, uint64_t incarnation);
/* The node has the file open, and is not counted here any more: it is told before what the PFS never gets is
 * dropped. */
void claim_watch_open(struct file *f, uint64_t node, uint64_t incarnation);
/* Is this node told of each change of the bytes, by name or as any member? */
bool claim_is_watcher(struct file *f, uint64_t node);

#endif
