/* fetch.h - clean chunks: local store -> owner -> next node -> PFS, each read from the PFS once for
 * the session.
 *
 * Single flight by (fid, index, version), for readers of this node and FETCHes of others (flight.h).  Readers
 * have their bytes as soon as they are here; they go to the store after that.  The owner's side (serve.c)
 * answers FETCH from its store (libuv's pool) or reads the PFS (pool_data) and says WORKING every second
 * meanwhile.  Every chunk carries fid, index, version and XXH3; the receiver checks all.
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

/* A number to take before one looks into the store: if it is the same when a flight begins, no fetch has
 * brought anything of the file since.  Any thread. */
uint64_t fetch_looks(struct file *f);

/* Bytes [off, off + len) of the file in version v, up to the version's end. */
struct fetch {
    struct version v;
    uint64_t off;
    size_t len;
    void *buf;            /* gets the bytes, all of them; NULL: they are to be in the store */
    uint64_t looked;      /* with buf: fetch_looks before the caller saw that they are not in the store */
    uint64_t end_ms;      /* boot_ms: so long it waits, for whatever; 0: as long as the PFS takes */
    struct fetched *from; /* or NULL */
};

/* Brings the chunks that cover the bytes; several are asked for at once.  With buf the call does not wait for
 * the store; without it they are in the store when it returns.  Chunks whose first byte is beyond the end are
 * none: *got, which may be NULL, is how many bytes there are.
 *
 * Blocks: pool threads whose jobs nobody else's fetch waits for (pool_waiters, carry's).  A node's silence
 * is waited for 3 s at each of two nodes, then this node reads for itself; the caller waits until end_ms,
 * whatever is waited for then, and what is on its way comes without it.
 *
 * -ETIMEDOUT: end_ms; -ESTALE: the version is no more (or the store's file has another one): ask the home
 * again; -ENOSPC: no room and no buf; or the PFS's error. */
int fetch_range(struct file *f, const struct fetch *want, size_t *got);

/* steps.c registers, before fetch_start: a FETCH of another node begins, ends. */
void fetch_on_activity(void (*begin)(void), void (*end)(void));

#endif
