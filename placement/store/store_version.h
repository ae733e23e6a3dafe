/* store_version.h - of which PFS version a file's clean bytes are, and what fills them; what a claim, a removal
 * and the flusher keep in the record (store_open.h has the rules of the store). */
#ifndef EDDY_PLACEMENT_STORE_STORE_VERSION_H
#define EDDY_PLACEMENT_STORE_STORE_VERSION_H

#include "placement/store/file.h"
#include "placement/store/store_open.h"

/* ---- versions ---- */
/* The PFS has version v now (same_as: and v's data is that of *same_as, may be NULL).  Clean pages
 * of another version are dropped (counters.stale_bytes), size and times follow v.  racy clean pages
 * too.  Only while the file is neither claimed nor dirty: else -EBUSY and nothing happens.  -EIO,
 * -ENOSPC: the cache's disk failed: the version is what it was. */
int store_set_version(struct file *f, const struct version *v, const struct version *same_as);
/* The same for who has read the PFS meanwhile: before is the version that the file had here when
 * that began (NULL: none).  -ESTALE, and nothing happens: it has another one by now that is not v;
 * which of the two is the newer is not known here. */
int store_follow_version(struct file *f, const struct version *v, const struct version *before,
                         const struct version *same_as);
/* Our own name operation moved ctime: base becomes `after` if it was `before`; also if claimed.  False: it
 * was not, or a flush is changing the PFS's data. */
bool store_same_data(struct file *f, const struct version *before, const struct version *after);

/* ---- filling with clean bytes ---- */
/* The bytes that a chunk has in a version of the file. */
struct clean_chunk {
    uint64_t index;
    struct version version;
    const void *buf;
    size_t len;    /* up to chunk size, shorter only at the end of the file */
    uint64_t hash; /* of the bytes (transport/hash.h) */
    bool owned;    /* this node is the ring's owner; else a replica */
    bool racy;     /* read while the version was racy (transport/fid.h) */
};
/* Writes pages that are not valid and below base_end; others are left as they are.  -ESTALE: the file's
 * base is not c->version.  -ENOSPC: no room could be made: use the buffer without keeping it. */
int store_fill(struct file *f, const struct clean_chunk *c);
/* The same for a chunk that a change can not go on without. */
int store_fill_needed(struct file *f, const struct clean_chunk *c, enum space_limit limit);

/* ---- claims on disk (claim.c and claim_views.c call these) ---- */
/* -EIO, -ENOSPC, and no claim: what is here of another version than `base` can not be dropped (never
 * without a base). */
int store_set_claim(struct file *f, uint64_t number_inc, uint64_t number,
                    const struct version *base);
/* Data stays as clean data of that version (NULL: of the base).  False, and nothing is done: it is
 * dirty (again), or the cache's disk failed, and a power loss might bring back what was fsynced. */
bool store_clear_claim(struct file *f, const struct version *clean_version);
/* What was fsynced does not come back after a power loss.  0, or the cache's disk failed. */
int store_not_again(struct file *f);
/* Unlinked: drop everything dirty; pages stay readable until the last put. */
void store_set_deleted(struct file *f);
/* Of the flusher's own, what it is to find again after a crash. */
void store_set_policy(struct file *f, uint8_t policy);
/* Its last name is about to be removed on the PFS by this node; false: it was not.  In the record
 * before the PFS is asked: a daemon that dies in between would find unflushed data of a file that is
 * gone, and not know that this was wanted. */
void store_set_leaving(struct fid fid, bool leaving);
/* A PFS that gives no birth times used the inode number of an unlinked file again: this fid is a
 * new file's now.  -EIO, -ENOSPC: the cache's disk failed: it counts as removed still. */
int store_set_reborn(struct file *f);

#endif
