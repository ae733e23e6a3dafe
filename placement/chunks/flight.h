/* flight.h - single flight: of each chunk (fid, index, version) that is on its way to this node there
 * is one, however many want it.
 *
 * Two kinds of parties wait for a flight: readers of this node, of which fetch.c has one for each chunk
 * of a call, and FETCHes of other nodes (serve.c).  Whichever comes first begins the flight; the others
 * join it.  Until the bytes are in the store the flight stays in the table and serves those that come, so
 * that nobody fetches what is on its way into the store; the room of its buffer is held as long, which
 * bounds what a slow disk can pile up.
 *
 * A reader waits in its own thread and does one job there: it checks the answer of a node.  A FETCH is
 * called back.  No call here waits, but flight_next.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_FLIGHT_H
#define EDDY_PLACEMENT_CHUNKS_FLIGHT_H

#include "placement/chunks/chunk.h"
#include "placement/store/file.h"

#define FLIGHT_READERS 8 /* chunks that one call waits for at once */

struct fetched_ahead;
struct file_info;
struct flight;

enum source { FROM_STORE, FROM_PEER, FROM_PFS };

/* Where the chunks of one call of a reader's tell that something has happened: on its stack. */
struct flight_call {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t cond;
    struct flight_reader *readers[FLIGHT_READERS]; /* the call's thread's */
    unsigned n;
};
void flight_call_init(struct flight_call *call);
void flight_call_destroy(struct flight_call *call);

/* What a reader is told: an answer is to be checked; it need not wait any more. */
enum flight_news { NO_NEWS, AN_ANSWER, AN_END };

/* One chunk that a call waits for. */
struct flight_reader {
    /* the caller's, before flight_join */
    struct file *file; /* stays referenced until the reader's end */
    bool takes;        /* it waits for the bytes; else until they are in the store */
    /* Gets the credit for `rest` bytes if they come for this reader; or NULL. */
    struct fetched_ahead *ahead;
    uint64_t rest;
    uint64_t looked; /* flight_ended before it was seen that the chunk is not in the store */

    /* when flight_next has returned it */
    int err; /* 0, or why there are no bytes; !takes: or why the store has them not */
    const struct chunk *chunk; /* no err: valid until flight_put */
    enum source source;
    bool led;   /* the bytes came for this reader */
    bool early; /* and nothing proves yet of which version they are (proof.h) */

    /* flight.c's */
    struct flight *flight; /* referenced */
    struct flight_call *call;
    struct flight_reader *next; /* the flight's list: shard's lock */
    bool waits;                 /* it is on that list */
    enum flight_news news;      /* call's lock */
};

/* A number that has changed if a flight of the file has ended since it was asked for: if it has not, none has
 * put a chunk into the store that was not there before.  Any thread. */
uint64_t flight_ended(struct fid fid);

/* r joins the flight of this chunk; where there is none it begins one, with the empty buffer c (consumed in
 * any case).  False: there is none, and c is NULL.  Never the network thread. */
bool flight_join(struct flight_call *call, const struct chunk_key *key, struct flight_reader *r,
                 struct chunk *c);
/* The next reader of the call that need not wait any more; the caller calls flight_put.  NULL: end_ms
 * (boot_ms; 0: never) has come first. */
struct flight_reader *flight_next(struct flight_call *call, uint64_t end_ms);
void flight_put(struct flight_reader *r);
/* All readers of the call give up.  What is on its way comes without them, and is kept. */
void flight_leave(struct flight_call *call);

/* A FETCH that waits.  done is called once, in a thread of pool_data, in a reader's, in a filler's, or in
 * that of flight_serve; no lock is held; c is valid during the call (chunk_ref to keep it).  err: 0;
 * -ESTALE: the PFS has another version; -ENOENT: the path leads nowhere or to another file; or the PFS's
 * error. */
struct flight_peer {
    void (*done)(struct flight_peer *p, int err, struct chunk *c);
    struct flight_peer *next;
};

/* What this node knows of a chunk that another one asks for. */
struct flight_served {
    struct chunk_key key;
    struct file *file; /* or NULL: it does not know the file */
    const char *path;  /* the peer's hint; NULL: it is no good.  Copied */
    /* The version that the store had when it had not the chunk, if it had one. */
    struct version before;
    bool before_known;
    uint64_t looked; /* flight_ended before that */
};

/* p waits for the chunk, which never waits for another node's answer but a former owner's from its store.
 * c: an empty buffer, consumed.  Never the network thread. */
void flight_serve(const struct flight_served *s, struct chunk *c, struct flight_peer *p);

/* The store's wholly valid copy of the chunk, if it may be trusted: version right and not racy.  -ENOENT. */
int flight_stored(const struct chunk_key *key, struct file *f, const struct file_info *info,
                  struct chunk *c);

#endif
