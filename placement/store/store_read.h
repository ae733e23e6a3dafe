/* store_read.h - looking at a file here: its state, and its bytes as far as they are here (store_open.h has the
 * rules of the store). */
#ifndef EDDY_PLACEMENT_STORE_STORE_READ_H
#define EDDY_PLACEMENT_STORE_STORE_READ_H

#include "placement/store/file.h"

/* ---- a file's state, a copy taken under its lock ---- */
struct file_info {
    uint64_t size;
    int64_t mtime_ns, ctime_ns;
    uint64_t blocks;     /* st_blocks: of the data file, and of what is still on the PFS */
    struct version base; /* version of the PFS file that clean pages are of */
    bool base_known;
    uint64_t base_end, cut;
    uint64_t dirty_bytes;
    uint64_t change;
    bool dirty;   /* pages, size, cut or times are not on the PFS */
    bool claimed; /* the record holds a claim: */
    uint64_t claim_inc, claim_number;
    bool kernel_io;      /* writers that the kernel serves may change it at any time */
    bool mtime_set; /* utimens after the last write: flush publishes exactly this */
    bool racy;      /* clean pages were filled while the version was racy */
    bool flushing;  /* a flush has begun to change the PFS file and did not end: its version differs
                       by our own doing */
    uint8_t policy; /* store_set_policy, by this daemon or the one before; 0: nothing was said */
    bool deleted;   /* store_set_deleted: what was not flushed is never on the PFS */
    bool leaving;   /* store_set_leaving, by this daemon or the one before */
    bool loss_told; /* a power loss before this start took something of it, and the log says so */
};
void store_info(struct file *f, struct file_info *out);

/* ---- reading ---- */
/* Bytes that are here, for applications and peers: store_hit.h. */
/* pread from the data file of bytes that are here and stay, as those of a snapshot; zeros beyond its end.
 * Full or -errno. */
int store_pread(struct file *f, void *buf, size_t len, uint64_t off);
/* A view of bytes that are here, which spares a copy: of whole pages that need not be pinned, for a
 * system call to read, which then takes what is stored meanwhile.  NULL: there is none; store_pread.
 * Nothing else may read it: where the data file was cut off, or its disk fails, a system call says
 * EFAULT, and everybody else is killed. */
void *store_view(struct file *f, size_t len, uint64_t off);
void store_unview(void *view, size_t len);
/* Is the whole file here, clean, in version *v?  Then nothing of it is evicted until store_unhold
 * with the same *bytes.  False also if too much of the cache is held already.  A newer version
 * still takes its place: look at the base when it matters. */
bool store_hold(struct file *f, const struct version *v, uint64_t *bytes);
void store_unhold(struct file *f, uint64_t bytes);
bool store_is_held(struct file *f);
/* First missing byte range at or after off within [off, off+len): false if none. */
bool store_missing(struct file *f, uint64_t off, uint64_t len, uint64_t *miss_off,
                   uint64_t *miss_len);
/* A whole clean chunk for another node: copies it to buf (chunk_size); *len, *hash (stored, or
 * computed when there is none). -ENOENT: not (wholly) here in that version, or dirty. */
int store_get_chunk(struct file *f, uint64_t index, const struct version *v, void *buf, size_t *len,
                    uint64_t *hash);
/* The same for the network thread: -EAGAIN when it would have to wait for a lock, another call or
 * the disk, and when the chunk is not here (or racy): the other one knows. */
int store_get_chunk_now(struct file *f, uint64_t index, const struct version *v, void *buf,
                        size_t *len, uint64_t *hash);

#endif
