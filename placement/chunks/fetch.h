/* fetch.h - clean chunks: local store -> owner -> next node -> PFS, each read from the PFS once for
 * the session.
 *
 * Single flight by (fid, index, version): who comes second waits for the first.  Readers have their
 * bytes as soon as they are here; they go to the store after that.  The owner's side
 * (serve.c) answers FETCH from its store (libuv's pool) or reads the PFS (pool_data) and says
 * WORKING every second meanwhile.  Every chunk carries fid, index, version and XXH3; the receiver
 * checks all.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FETCH_H
#define EDDY_PLACEMENT_CHUNKS_FETCH_H

#include "placement/store/file.h"

#include <sys/types.h>

void fetch_start(void); /* registers the FETCH handler: before peer_start */
void fetch_stop(void);  /* after pools_stop and peer_stop, while the loop still runs */

/* Bytes that were fetched and that nobody asked for yet: the credit of a handle, from which its
 * local reads are counted as what they were. */
struct fetched_ahead {
    _Atomic uint64_t peer, pfs;
};

/* Where the bytes that were asked for came from; the calls below add to it. */
struct fetched {
    uint64_t local, peer, pfs;
    uint64_t early; /* of pfs: read in this call, and not proved yet (proof.h) */
    /* What came with them, the rest of their chunks, is added here, for the one call that fetched
     * it and before anybody can have it; may be NULL. */
    struct fetched_ahead *ahead;
};

/* Brings the chunks of version v that cover [off, off+len) into the store; several are asked for at
 * once.  If buf is not NULL the bytes are put there, always full up to the version's size, *got
 * bytes, and the call does not wait for the store; without buf they are in the store when it
 * returns.  from and got may be NULL.
 *
 * Blocks: pool threads whose jobs nobody else's fetch waits for (pool_waiters, carry's).  Silence
 * is waited for 3 s at each of two nodes, then this node reads for itself.
 *
 * -ESTALE: the version is no more (or the store's file has another one): ask the home again;
 * -ENOSPC: no room and no buf; or the PFS's error. */
int fetch_range(struct file *f, const struct version *v, uint64_t off, size_t len, void *buf,
                size_t *got, struct fetched *from);

/* steps.c registers, before fetch_start: a FETCH of another node begins, ends. */
void fetch_on_activity(void (*begin)(void), void (*end)(void));

/* ---- serve.c, private to fetch.c ---- */
void serve_start(void);
void serve_stop(void);

#endif
