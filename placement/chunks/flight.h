/* flight.h - single flight: of each chunk (fid, index, version) that is on its way to this node there
 * is one, however many readers want it.  Private to fetch.c, which leads them.
 *
 * Who begins a flight leads it, in its own thread; the network thread and pool_data only put events on
 * the list of the leader's call.  Done: who wants the bytes has them.  Until it is filled (they are in
 * the store) the flight stays in the table and serves who comes, so that nobody fetches what is on its
 * way into the store; its buffer's room is held as long, which bounds what a slow disk can pile up.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FLIGHT_H
#define EDDY_PLACEMENT_CHUNKS_FLIGHT_H

#include "placement/chunks/chunk.h"
#include "placement/chunks/origin.h"
#include "placement/store/file.h"

struct range;

enum source { FROM_STORE, FROM_PEER, FROM_PFS };

/* One fetch_range's list of events, on its stack. */
struct call {
    struct file *f;
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t cond;
    struct flight *ready;
    const struct range *range;
    unsigned leads; /* flights that it still leads; its thread only */
};

struct flight {
    struct chunk_key key;
    struct flight *next; /* shard's list */

    /* shard's lock */
    unsigned refs;
    bool done;
    bool filled; /* and out of the table; perhaps before the leader has seen that it is done */
    int kept;    /* filled: 0, or why it is not in the store */
    pthread_cond_t changed;

    /* the leader's until done, then everybody's to read */
    struct chunk *chunk;
    int err;
    enum source source;
    struct file *file; /* referenced */

    /* the leader's, but for NULL in `call`, which is set with the shard's lock: it has gone */
    struct call *call;
    char *path;
    unsigned turn; /* < TURNS: the n-th node of the ring is asked */
    uint64_t node; /* that is being asked; 0 = the PFS */
    bool fallback; /* the PFS is read because no node could serve */
    bool joined;   /* ... by a read that another began */
    bool credited; /* the origin's */
    struct origin_waiter waiter;

    /* the event, set before the flight is put on the call's list, or while it is there (with the
     * call's lock) */
    struct flight *ready_next;
    bool queued;
    bool early; /* the bytes are there unproven; no error */
    int event_err;
};

/* The flight of this chunk, referenced, or NULL. */
struct flight *flight_find(const struct chunk_key *key);
/* The same; if there is none, one is begun with buffer c, which it takes over, and the caller must lead
 * it: *leads. */
struct flight *flight_join(const struct chunk_key *key, struct call *call, struct chunk *c,
                           bool *leads);
void flight_ref(struct flight *fl);
void flight_put(struct flight *fl);
/* to_come: flight_filled will be called, or was.  By who leads it, who keeps his reference, or by
 * who brought the bytes after flight_event said that the leader has gone. */
void flight_done(struct flight *fl, int err, enum source source, bool to_come);
/* In the store (0), or why not.  Pool threads. */
void flight_filled(struct flight *fl, int kept);
/* Until it is done, or filled. */
void flight_wait(struct flight *fl, bool filled);

/* Something has happened to it: its leader hears.  Network thread or pool_data.  False: the leader has
 * gone. */
bool flight_event(struct flight *fl, int err, bool early);
/* The next one that something has happened to, waited for.  The call's thread. */
struct flight *flight_next_event(struct call *call, bool *early);
/* The leader goes, unless it has been told meanwhile that its flight is done: then false. */
bool flight_leave(struct flight *fl);

#endif
