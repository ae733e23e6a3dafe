/* keep.h - which node keeps the session's copy of a chunk, when its owner, or who keeps it for the owner, needs room.
 *
 *     owner --KEEP: these would leave next--> a node that has them, too
 *     owner <--KEPT: these I keep now-------- it
 *
 * As a rule the owner keeps a chunk, and all others have replicas, which leave their caches first (store/eviction.h).  Before kept chunks
 * leave, their node asks others to keep them: an owner asks a place of the chunk's row, a node that keeps a chunk for
 * its owner asks the owner.  Who says that it keeps a chunk has it, and takes it among those that leave last.  Only
 * then the asker's copy is a replica, and leaves first.  The owner's row says who keeps it: readers are sent there, and the PFS is not read.
 *
 * What is asked about is not accepted from others meanwhile.  So two nodes never both let go because the other one has it.
 *
 * Eviction waits for no answer.  What must leave before one has come, or is the last copy, leaves.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_KEEP_H
#define EDDY_PLACEMENT_CHUNKS_KEEP_H

/* Nobody is asked for so long after a round in which nobody kept anything. */
#define KEEP_QUIET_MS 100
/* KEEPs of others that are looked at, at the same time at most: as each node asks each one at most once at a time, only a flood is more. */
#define KEEP_SERVED 64

void keep_start(void); /* registers the handler of KEEP: before peer_start */
/* While the loop still runs.  From then on nobody is asked, and no answer that comes late lets anything go. */
void keep_stop(void);
/* Chunks that this node keeps are about to leave.  Any thread, with locks down to RANK_POOL. */
void keep_wanted(void);

#endif
