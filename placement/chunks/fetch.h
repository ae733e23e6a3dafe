/* fetch.h - clean chunks: they come from the local store, or else from the owner, the next node, or the PFS;
 * each is read from the PFS once for the session.
 *
 * For each chunk (fid, index, version) there is one flight, for readers of this node and FETCHes of other
 * nodes (flight.h).  Readers get the bytes as soon as they are here; after that the bytes go to the store.
 * The owner's side (serve.c) answers FETCH from its store (libuv's pool), or reads the PFS (pool_data) and
 * sends WORKING every second meanwhile.  Each chunk is sent with its fid, index, version and XXH3; the
 * receiver checks them all.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FETCH_H
#define EDDY_PLACEMENT_CHUNKS_FETCH_H

#include "placement/store/file.h"

#include <sys/types.h>

void fetch_start(void); /* registers the FETCH handler: before peer_start */
void fetch_stop(void);  /* after pools_stop and peer_stop, while the loop still runs */

/* Bytes that were fetched for a handle and that it has not read yet: its credit.  When it reads such bytes
 * from the store, they are counted as read from the node or PFS that they came from. */
struct fetched_ahead {
    _Atomic uint64_t peer, pfs;
};

/* Where the bytes that were asked for came from; the calls below add to it. */
struct fetched {
    uint64_t local, peer, pfs;
    uint64_t early; /* of pfs: read in this call, and not proved yet (proof.h) */
    /* Gets the rest of the chunks' bytes as credit: only for the call for which they came, and before
     * any reader can have them.  May be NULL. */
    struct fetched_ahead *ahead;
};

/* A number that a caller gets before it looks into the store: if it is the same when a flight begins, no
 * fetch has brought a chunk of the file since then.  Any thread. */
uint64_t fetch_looks(struct file *f);

/* Bytes [off, off + len) of the file in version v, up to the version's end. */
struct fetch {
    struct version v;
    uint64_t off;
    size_t len;
    void *buf;            /* gets all the bytes; NULL: they are only brought into the store */
    uint64_t looked;      /* with buf: fetch_looks before the caller saw that they are not in the store */
    bool owned;           /* without buf: only chunks that this node owns */
    bool idle;            /* no application waits for it: it is no activity where it comes from either */
    uint64_t end_ms;      /* boot_ms: deadline of all waits; 0: as long as the PFS takes */
    struct fetched *from; /* or NULL */
};

/* Brings the chunks that have the bytes; asks for several at once.  With buf the call does not wait for the
 * store; without buf the chunks are in the store when it returns.  Bytes beyond the version's end do not
 * exist: *got, which may be NULL, gets the number of bytes that exist.
 *
 * Blocks.  Only pool threads for whose jobs no fetch waits may call it (pool_waiters, carry's).  A flight
 * waits for the silence of two nodes at most, 3 s each; then this node reads the PFS.  The caller waits until
 * end_ms; chunks that are on their way then come without it.
 *
 * -ETIMEDOUT: end_ms came; -ESTALE: the version does not exist any more, or the store's file has another one:
 * the caller asks the home again; -ENOSPC: no buf, and no room in the store; or the PFS's error. */
int fetch_range(struct file *f, const struct fetch *want, size_t *got);

/* Waits until no call of fetch_range with buf is under way on this node: for what is fetched ahead, and has time. */
void fetch_yield(void);

/* Registered by fs/daemon/steps.c before fetch_start: a FETCH of another node begins / ends, for which an application waits. */
void fetch_on_activity(void (*begin)(void), void (*end)(void));

#endif
