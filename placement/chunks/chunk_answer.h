/* chunk_answer.h - a chunk as the answer to FETCH: made from a buffer, and taken into one only if
 * it is what was asked for.
 *
 * A wrong answer is counted and complained of here, for each part that asks.  Any thread.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_CHUNK_ANSWER_H
#define EDDY_PLACEMENT_CHUNKS_CHUNK_ANSWER_H

#include "placement/chunks/chunk.h"
#include "transport/message.h"

#define CHUNK_FROM_PFS 1u /* source: read just now, else from the store */

/* The answer; takes over the reference to c, which is dropped when it has been sent. */
struct msg *chunk_answer(const struct chunk_key *key, struct chunk *c, unsigned source);

/* What `node` answered to the FETCH of this key, whose bytes were to go to c->data: fills in the
 * rest of c.  -EBADMSG: another chunk.  The bytes are not looked at yet: cheap enough for the
 * network thread. */
int chunk_answer_take(struct chunk *c, const struct chunk_key *key, const struct msg *reply,
                      uint64_t node);
/* Are its bytes those that `node` hashed?  -EBADMSG */
int chunk_answer_check(const struct chunk *c, const struct chunk_key *key, uint64_t node);

#endif
