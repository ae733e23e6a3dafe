/* chunk_answer.h - makes the answer to FETCH from a chunk's buffer, and takes an answer into a buffer only if
 * it is the chunk that was asked for.
 *
 * These functions count and log a wrong answer, so their callers need not.  Any thread.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_CHUNK_ANSWER_H
#define EDDY_PLACEMENT_CHUNKS_CHUNK_ANSWER_H

#include "placement/chunks/chunk.h"
#include "transport/message.h"

#define CHUNK_FROM_PFS 1u /* source: just read from the PFS; else from the store */

/* Makes the answer; takes over the reference to c, and drops it when the answer has been sent. */
struct msg *chunk_answer(const struct chunk_key *key, struct chunk *c, unsigned source);

/* Takes the answer of `node` to the FETCH of this key; its bytes must be in c->data.  Sets the rest of c.
 * -EBADMSG: another chunk.  It does not look at the bytes yet, so the network thread may call it. */
int chunk_answer_take(struct chunk *c, const struct chunk_key *key, const struct msg *reply,
                      uint64_t node);
/* 0: the bytes are those that `node` hashed; else -EBADMSG. */
int chunk_answer_check(const struct chunk *c, const struct chunk_key *key, uint64_t node);

#endif
