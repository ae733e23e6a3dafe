/* store_version.h - which PFS version a file's clean bytes are of, and filling with clean bytes; what a
 * claim, a removal and the flush keep in the record (store_open.h has the rules of the store). */
#ifndef EDDY_PLACEMENT_STORE_STORE_VERSION_H
#define EDDY_PLACEMENT_STORE_STORE_VERSION_H

#include "placement/store/file.h"
#include "placement/store/store_open.h"

/* ---- versions ---- */
/* The PFS has version v now.  same_as (may be NULL): v's data is the same as that of *same_as.  Drops clean
 * pages of another version (counters.stale_bytes), and clean pages that are racy; size and times follow v.
 * -EBUSY, and nothing happens: the file is claimed or dirty.  -EIO, -ENOSPC: the cache's disk failed, and the
 * version stays as it was. */
int store_set_version(struct file *f, const struct version *v, const struct version *same_as);
/* The same for a caller that has read the PFS meanwhile: before is the version that the file had here when
 * the read began (NULL: none).  -ESTALE, and nothing happens: the file has got another version here that is
 * not v, and the store can not tell which of the two is newer. */
int store_follow_version(struct file *f, const struct version *v, const struct version *before,
                         const struct version *same_as);
/* This node's own change of a name moved ctime: base becomes `after` if it was `before`; for a claimed or
 * dirty file, if it was `before` but for the ctime.  False: base was another one, or a run is changing the
 * PFS's data. */
bool store_same_data(struct file *f, const struct version *before, const struct version *after);

/* Applications were told these times of version v, elsewhere: from now on here, too, unless v's own times
 * were given up already, or the file has changed. */
void store_tell(struct file *f, const struct version *v, const struct told *told);
/* What is told of the ctime moves on to this one, if that is later: somebody has set an attribute. */
void store_move_ctime(struct file *f, int64_t ctime_ns);

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
/* Notes the claim, and drops bytes of another version than `base` (NULL: drops none).  -EIO, -ENOSPC, and no
 * claim: they can not be dropped. */
int store_set_claim(struct file *f, uint64_t number_inc, uint64_t number,
                    const struct version *base);
/* Ends the claim.  The data stays as clean data of that version (NULL: of the base).  False, and nothing is
 * done: the file is dirty (again), or the cache's disk failed, and a power loss might bring back what was
 * fsynced. */
bool store_clear_claim(struct file *f, const struct version *clean_version);
/* From now on a power loss does not bring back what was fsynced.  0, or -errno: the cache's disk failed. */
int store_not_again(struct file *f);
/* The file is unlinked: nothing of it is dirty any more.  Its pages stay readable until the last put. */
void store_set_deleted(struct file *f);
/* Keeps a value for flush, which finds it again after a crash. */
void store_set_policy(struct file *f, uint8_t policy);
/* This node is about to remove the file's last name on the PFS; false: it did not.  The record says so before
 * the PFS is asked.  Else, if the daemon died in between, the next one would find unflushed data of a file
 * that is gone, and not know that this was wanted. */
void store_set_leaving(struct fid fid, bool leaving);
/* A PFS that gives no birth times used the inode number of an unlinked file again: this fid is now that of a
 * new file.  -EIO, -ENOSPC: the cache's disk failed, and the file still counts as removed. */
int store_set_reborn(struct file *f);

#endif
