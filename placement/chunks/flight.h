/* flight.h - single flight: each chunk (fid, index, version) that is on its way to this node has one flight,
 * however many readers and nodes want it.
 *
 * Readers of this node wait for a flight (fetch.c has one reader for each chunk of a call), and FETCHes of
 * other nodes (serve.c).  The first one begins the flight; the others join it.  The flight stays in the table
 * and serves new ones until the bytes are in the store, so that no chunk is fetched again on its way into the
 * store.  It keeps its buffer as long, so a slow disk cannot pile up more buffers than their limit.
 *
 * A reader waits in its own thread, and may check a node's answer there.  A FETCH is called back.  Only
 * flight_next waits.
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

/* One call of fetch_range, on its stack: its readers' flights signal it when something has happened. */
struct flight_call {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t cond;
    struct flight_reader *readers[FLIGHT_READERS]; /* only for the call's thread */
    unsigned n;
};
void flight_call_init(struct flight_call *call);
void flight_call_destroy(struct flight_call *call);

/* What a reader is told: AN_ANSWER: it is to check an answer; AN_END: it need not wait any more. */
enum flight_news { NO_NEWS, AN_ANSWER, AN_END };

/* One chunk that a call waits for. */
struct flight_reader {
    /* set by the caller before flight_join */
    struct file *file; /* the caller keeps its reference until the reader's end */
    bool idle;         /* no application waits for it */
    bool takes;        /* it waits until the bytes are here; else until they are in the store */
    /* Gets the credit for `rest` bytes if they come for this reader; or NULL. */
    struct fetched_ahead *ahead;
    uint64_t rest;
    uint64_t looked; /* flight_ended before the caller saw that the chunk is not in the store */

    /* set when flight_next returns it */
    int err; /* 0, or why there are no bytes; !takes: or why they are not in the store */
    const struct chunk *chunk; /* if err is 0: valid until flight_put */
    enum source source;
    bool led;   /* the bytes came for this reader */
    bool early; /* it is not proved yet of which version the bytes are (proof.h) */

    /* private to flight*.c */
    struct flight *flight; /* referenced */
    struct flight_call *call;
    struct flight_reader *next; /* the flight's list: shard's lock */
    bool waits;                 /* it is on that list */
    enum flight_news news;      /* call's lock */
};

/* A number that changes when a flight of the file ends.  As long as it is the same, no flight has put a new
 * chunk of the file into the store.  Any thread. */
uint64_t flight_ended(struct fid fid);

/* r joins the flight of this chunk; if there is none, it begins one with the empty buffer c.  Takes over c in
 * any case.  False: there is no flight, and c is NULL.  Never the network thread. */
bool flight_join(struct flight_call *call, const struct chunk_key *key, struct flight_reader *r,
                 struct chunk *c);
/* The next reader of the call that need not wait any more; the caller calls flight_put.  NULL: end_ms
 * (boot_ms; 0: never) has come first. */
struct flight_reader *flight_next(struct flight_call *call, uint64_t end_ms);
void flight_put(struct flight_reader *r);
/* All readers of the call give up.  Chunks that are on their way still come, and are stored. */
void flight_leave(struct flight_call *call);

/* A FETCH that waits.  done is called once, in a thread of pool_data, a reader, a filler or the caller of
 * flight_serve, without a lock.  c is valid during the call (chunk_ref keeps it longer).  err: 0; -ESTALE:
 * the PFS has another version; -ENOENT: the path leads nowhere or to another file; or the PFS's error. */
struct flight_peer {
    void (*done)(struct flight_peer *p, int err, struct chunk *c);
    struct flight_peer *next;
};

/* What this node knows of a chunk for which another node asks. */
struct flight_served {
    struct chunk_key key;
    struct file *file; /* NULL: this node does not know the file */
    const char *path;  /* the path in the peer's FETCH; NULL: it is not valid.  Copied */
    /* The store's version, if any, when the chunk was not in the store. */
    struct version before;
    bool before_known;
    uint64_t looked; /* flight_ended before that */
};

/* p waits for the chunk.  The flight then waits for no other node's answer but that of a former owner, which
 * answers from its store.  c: an empty buffer, which is taken over.  Never the network thread. */
void flight_serve(const struct flight_served *s, struct chunk *c, struct flight_peer *p);

/* p, which an owner has sent here, waits for the chunk if it is on its way to this node.  False: it is not, and p is not called.  The
 * flight neither waits nor reads for p; if it ends without the bytes, p gets an error.  Never the network thread. */
bool flight_serve_sent(const struct chunk_key *key, struct flight_peer *p);

/* Reads the chunk from the store into c.  -ENOENT: the store does not have all of it in this version, or the
 * version is racy. */
int flight_stored(const struct chunk_key *key, struct file *f, const struct file_info *info,
                  struct chunk *c);

#endif
