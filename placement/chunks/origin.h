/* origin.h - reading a chunk from the PFS, once however many ask for it at the same time.
 *
 * The owner's half of a fetch, for other nodes (serve.c) and for this one (fetch.c).  The read runs
 * in pool_data and never waits for another node.  What was read is kept in the store.
 */
#ifndef EDDY_PLACEMENT_CHUNKS_ORIGIN_H
#define EDDY_PLACEMENT_CHUNKS_ORIGIN_H

#include "placement/chunks/chunk.h"
#include "placement/store/file.h"

/* Someone who waits: for the bytes first, which go to the store only when all have them.
 *
 * done is called once, in a thread of pool_data or (when the bytes are already there) of
 * origin_read's caller, no lock held; c is valid during the call (chunk_ref to keep it).
 *
 * err: 0; -ESTALE: the PFS has another version; -ENOENT: the path leads nowhere or to another file;
 * or the PFS's error.
 *
 * early, unless NULL, is called before done, at most once, in the thread of the read: the bytes are
 * here, and nothing proves yet that they are of the key's version; c's hash is not known.  Only for
 * who began the read, as they may be older than the call of another, and only where no node of the
 * session can be writing the file: they are what a reader of the PFS would have had.  done tells
 * whether they were of the version.  What others may have meanwhile: proof.h.
 *
 * filled, unless NULL, is called once for a `done` without error, and only then is w let go of;
 * usually after done, in the file's filler (filler.h) or a thread of pool_data.  kept: 0, or why
 * the store does not have it (-ENOSPC, -ESTALE ...). */
struct origin_waiter {
    void (*done)(struct origin_waiter *w, int err, struct chunk *c);
    void (*early)(struct origin_waiter *w, struct chunk *c);
    void (*filled)(struct origin_waiter *w, int kept);
    struct origin_waiter *next;
};

/* f: the file if this node knows it, else NULL; path: a peer's hint, may be NULL, else copied.
 * into: an empty chunk for the bytes, taken over.  Any thread.  Returns whether it joined a read
 * that another began (with another path perhaps). */
bool origin_read(const struct chunk_key *key, struct file *f, const char *path, struct chunk *into,
                 struct origin_waiter *w);

/* The store's wholly valid copy of the chunk, if it may be trusted: version right and not racy.
 * -ENOENT. */
int origin_cached(const struct chunk_key *key, struct file *f, struct chunk *c);

#endif
