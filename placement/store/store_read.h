/* store_read.h - a file as this node has it: its state, and those of its bytes that are here (store_open.h
 * has the rules of the store). */
#ifndef EDDY_PLACEMENT_STORE_STORE_READ_H
#define EDDY_PLACEMENT_STORE_STORE_READ_H

#include "placement/store/file.h"
#include "placement/store/trace.h"

/* ---- a file's state, a copy taken under its lock ---- */
struct file_info {
    uint64_t size;
    int64_t mtime_ns, ctime_ns; /* as applications are told */
    int64_t stands_ns; /* ctime_ns stands for this ctime of the PFS file, and for earlier ones; INT64_MAX: for
                          any, as a run is changing the file, or nodes that borrow parts of it may flush them */
    uint64_t blocks;     /* st_blocks: of the data file, and of what is still on the PFS */
    struct version base; /* version of the PFS file that clean pages are of */
    bool base_known;
    uint64_t base_end, cut;
    uint64_t dirty_bytes; /* without holes that the PFS must punch */
    uint64_t change;
    bool dirty;   /* pages, size, cut or times are not on the PFS */
    bool claimed; /* the record holds a claim: */
    uint64_t claim_inc, claim_number;
    bool kernel_io;      /* an application may change it through kernel I/O at any time */
    bool mtime_set; /* utimens after the last write: flush publishes exactly this */
    bool racy;      /* clean pages were filled while the version was racy */
    bool flushing;  /* a run has begun to change the PFS file and did not end: its version may differ
                       by this node's own doing, as `trace` tells */
    struct file_trace trace;
    uint8_t policy; /* store_set_policy, by this daemon or the one before; 0: it was not called */
    bool deleted;   /* store_set_deleted: what was not flushed is never on the PFS */
    bool only_here; /* ... and there is such: not flushed then, or changed since */
    bool leaving;   /* it has no name (file_set_unlinked, file_saw_links), or is losing it (store_set_leaving): so
                       says this daemon, or the one before */
    bool lent;      /* parts of it are, or may be, lent to other nodes (store_lend.h) */
    bool loss_told; /* a power loss before this start took something of it, and the log says so */
};
void store_info(struct file *f, struct file_info *out);

/* ---- reading ---- */
/* Bytes that are here, for applications and peers: store_hit.h. */
/* Reads bytes that are here and stay, as those of a snapshot, from the data file; zeros beyond its end.
 * Reads all, or returns -errno. */
int store_pread(struct file *f, void *buf, size_t len, uint64_t off);
/* Maps bytes that are here, in whole pages, which spares a copy.  The pages need not be anchored: a reader gets
 * what is stored meanwhile.  NULL: there is no view; use store_pread.  Only a system call may read a view:
 * where the data file was cut off, or its disk fails, a system call returns EFAULT, but any other read kills
 * the process. */
void *store_view(struct file *f, size_t len, uint64_t off);
void store_unview(void *view, size_t len);
/* Is the whole file here, clean, in version *v?  Then no chunk of it is evicted until store_unanchor with the
 * same *bytes.  Also false if too much of the cache is anchored already.  A newer version still takes its place:
 * a caller that needs this version looks at the base again. */
bool store_anchor(struct file *f, const struct version *v, uint64_t *bytes);
void store_unanchor(struct file *f, uint64_t bytes);
bool store_is_held(struct file *f);
/* The first range of bytes in [off, off + len) that is not here.  False: there is none. */
bool store_missing(struct file *f, uint64_t off, uint64_t len, uint64_t *miss_off,
                   uint64_t *miss_len);
/* Of a loan, or of a file of which parts are lent: the first bytes from off on that are here and no hole, [*at, *end).  Whatever
 * is here is right: only what is not here is lent, so who has what else need not be known, as after a start.  *missing: the bytes
 * before them that are not here.  -ENXIO: there are none up to the file's end; *missing is set. */
int store_own_next(struct file *f, uint64_t off, uint64_t *at, uint64_t *end, uint64_t *missing);
/* Copies a whole clean chunk to buf (chunk_size bytes), for another node; sets *len, and *hash (as stored, or
 * computed if none is).  -ENOENT: not all of it is here in that version, or it is dirty. */
int store_get_chunk(struct file *f, uint64_t index, const struct version *v, void *buf, size_t *len,
                    uint64_t *hash);
/* The same for the network thread.  -EAGAIN: it would have to wait for a lock, another call or the disk, or
 * the chunk is not here (or is racy); store_get_chunk tells which. */
int store_get_chunk_now(struct file *f, uint64_t index, const struct version *v, void *buf,
                        size_t *len, uint64_t *hash);

#endif
