/* rows.h - which nodes have a chunk, as its owner knows it: so that one that is wanted by many at once comes from many.
 *
 * A chunk that was asked for has a row of places: nodes that have it, or are getting it.  Each that asks becomes a place
 * itself.  So the copies of a hot chunk spread as a tree: the owner feeds two, each of these two more, and so on.
 *
 *     owner --+-- b --+-- d        A node counts as fed for FED_MS: as long as those who read the same are still coming.
 *             |       '-- e        After that the owner itself feeds again.
 *             '-- c --+-- f
 *                     '-- g
 *
 * An asker is sent where it gets the chunk soonest, in steps from node to node: those that are before the place, if it is still
 * getting the chunk; one for each node that it feeds already; and one for each asker that this owner has sent there of late
 * beyond what it has sent to another place of the row.  So the links carry the same, whoever asks first.  Among equal ones a place of the asker's own
 * group comes first (the nodes fall into groups, about as many as each has nodes).
 *
 * A row is a hint: an asker who finds nothing where it was sent asks the owner again, which then answers itself.  It is
 * bounded in places, and the rows in number; a place that can feed no more makes room for a new one, and a row that was not
 * asked for longest for another chunk's.
 *
 * No node waits for one that waits for it, as far as one owner's rows go: each is sent only to places that asked before it, and one that is a
 * place already, and so may be what others wait for, is answered by the owner.
 *
 * An owner that needs room may let its own copy go when one of the places has said that it keeps the chunk now (keep.h): the caretaker.  From
 * then on all askers are sent to places, and nobody is answered by the owner, until the caretaker is none any more.
 *
 * Pure: no locks, no clocks, no messages; the caller serialises the calls (places.c).
 */
#ifndef EDDY_PLACEMENT_CHUNKS_ROWS_H
#define EDDY_PLACEMENT_CHUNKS_ROWS_H

#include "placement/chunks/chunk.h"

#define ROW_PLACES 64   /* of one chunk; memory for them is taken as they come */
#define ROW_FEEDS  2    /* nodes that each place feeds at once */
#define GROUPS_MAX 16
#define FED_MS     10000 /* so far apart are nodes that read one file together */

struct rows;
/* max: how many chunks have rows at once.  nodes: of the view; the number of groups comes from it. */
struct rows *rows_new(unsigned max, unsigned nodes);
void rows_free(struct rows *r); /* NULL is ignored */
/* The group of a node in a view of so many. */
unsigned rows_group(uint64_t node, unsigned nodes);

/* `node` asks for the chunk at now_ms.  0: the owner is to answer, and feeds it; else the node that is to be asked. */
uint64_t rows_ask(struct rows *r, const struct chunk_key *key, uint64_t node, uint64_t now_ms);
/* `node` asks the owner again, as it was sent to not_at in vain: this is no place any more.  The owner is to answer. */
void rows_failed(struct rows *r, const struct chunk_key *key, uint64_t node, uint64_t not_at, uint64_t now_ms);
/* News: the node has the chunk now; it has let go what it had of it, in whatever version. */
void rows_has(struct rows *r, const struct chunk_key *key, uint64_t node);
void rows_gone(struct rows *r, struct fid fid, uint64_t index, uint64_t node);

/* A place that said that it has the chunk, and feeds the fewest; 0: there is none. */
uint64_t rows_holder(const struct rows *r, const struct chunk_key *key, uint64_t now_ms);
/* The node keeps the chunk now; 0: nobody but the owner does. */
void rows_set_caretaker(struct rows *r, const struct chunk_key *key, uint64_t node);
/* The owner has let its copy go, whether anybody keeps it or not: a place that has one counts as the caretaker until it says otherwise. */
void rows_owner_gone(struct rows *r, struct fid fid, uint64_t index, uint64_t now_ms);
/* Who keeps the chunk, in whatever version if the key has none (all zeros); 0: nobody but the owner. */
uint64_t rows_caretaker(const struct rows *r, const struct chunk_key *key);

/* How many places the chunk has, beside the owner, and how many rows there are. */
unsigned rows_places(const struct rows *r, const struct chunk_key *key);
unsigned rows_count(const struct rows *r);

#endif
