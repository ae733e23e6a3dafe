/* places.h - a hot chunk comes from many nodes: an owner that already feeds two sends the next asker to a node that has the
 * chunk or is getting it (rows.h says to which).
 *
 *     asker --FETCH any--> owner --ELSEWHERE: ask X--> asker --FETCH sent--> X --CHUNK--> asker
 *                            ^                                              |
 *                            '------FETCH here------- asker <--- not mine, or silent
 *
 * One such answer for each flight: then the owner answers itself.  X waits for bytes that are on their way to it, but begins
 * nothing for an asker that was sent.  It says no WORKING meanwhile, so a chain of nodes that wait never waits for more than
 * T_suspect; that also ends a circle, which the rows of two owners of two views could make.
 *
 * News about copies go to owners in batches, NEWS_MS after the first one of a batch.  All of this is a hint: what an asker takes is right by the chunk's
 * fid, index, version and hash, whoever sent it.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_PLACES_H
#define EDDY_PLACEMENT_CHUNKS_PLACES_H

#include "placement/chunks/chunk.h"
#include "transport/message.h"
#include "transport/view.h"

#define PLACES_MEMBERS 4 /* a smaller view has no rows */
#define NEWS_MS        100
#define PLACES_NEWS    512 /* items of one PLACES */

/* How a FETCH may be answered: by ELSEWHERE, too; from the store or a flight that is under way; by the node itself, which may
 * read the PFS. */
enum fetch_way { FETCH_ANY, FETCH_SENT, FETCH_HERE, FETCH_WAYS };
/* What a node tells of its copy of a chunk.  Of PLACE_GONE the version does not count: it has none of any version. */
enum place_news { PLACE_HAS, PLACE_GONE, PLACE_NEWS };
/* What a node tells of shelves (shelves.h).  To the owner: it has the chunk on a shelf; not any more, or what `node` said of its own is not so.
 * To the node with the shelf: it was read. */
enum shelf_news { SHELF_HAS, SHELF_GONE, SHELF_USED, SHELF_NEWS };

void places_start(void); /* registers the handler of PLACES: before peer_start */
void places_stop(void);  /* after peer_stop, while the loop still runs */
/* A view was adopted (NULL: none): all rows are dropped.  Network thread. */
void places_adopted(const struct view *v);

/* m, a FETCH for this chunk, has come.  The node to which its sender is to be sent, or 0: this node answers.  Network thread. */
uint64_t places_ask(const struct msg *m, const struct chunk_key *key);

/* The node that keeps the chunk, which this node owns and has let go (keep.h), if it can be asked; else 0. */
uint64_t places_caretaker(const struct chunk_key *key);
/* Does this node own the chunk, and has not let it go, in whatever version?  Any lock but leaves. */
bool places_owned(struct fid fid, uint64_t index);
/* A node that could keep it: it has said that it has the chunk; or 0. */
uint64_t places_holder(const struct chunk_key *key);
void places_set_caretaker(const struct chunk_key *key, uint64_t node); /* 0: only the owner */
void places_lost(const struct chunk_key *key, uint64_t node); /* that one does not have it */

/* This node got a copy of another node's chunk, and keeps it; or a chunk has left its store.  Any thread, with locks down to RANK_POOL. */
void places_has(const struct chunk_key *key);
void places_left(struct fid fid, uint64_t index);
/* News of a shelf goes to that node; i->node, for SHELF_HAS the teller.  Any thread, with locks down to RANK_POOL. */
void places_tell_shelf(uint64_t to, const struct item_shelf *i);
/* Registers who takes such news of other nodes: in the network thread.  NULL: nobody. */
void places_on_shelf(void (*fn)(uint64_t from, const struct item_shelf *i));

#endif
