/* store_hit.h - reading bytes that are here: a look finds them and anchors them, then they are read.
 *
 *     store_read_begin  --0-->  the first byte is not here
 *          | > 0
 *          |  with f->lock taken once: so many bytes are here, they are anchored, their chunks count
 *          |  as used now, and the data file is open
 *          v
 *     store_read_copy, or store_read_view and store_unview: no lock, no further look
 *          |
 *     store_read_end
 *
 * In between the bytes are not evicted, cut off or punched: a call that would do so waits (range.h).  A write
 * of them does not wait, as on a local disk (ext4, btrfs): a page that is being written may come with bytes of
 * before and after.  That is the only way in which a page is mixed.  What else puts bytes into a page here, a
 * fill, does so before the page counts, and a hash or a copy-out of a page that a write meets does not count
 * (RANGE_READ, pages_changed).  So a
 * thread must end its read soon, and must not change the file before.  Any thread that may do local disk I/O.
 */
#ifndef EDDY_PLACEMENT_STORE_STORE_HIT_H
#define EDDY_PLACEMENT_STORE_STORE_HIT_H

#include <sys/types.h>

#include "placement/store/range.h"

/* A read that has begun, on the caller's stack.  It is linked in the file until store_read_end, and must
 * not move.  The caller keeps its reference to f as long. */
struct store_hit {
    struct file *f;
    uint64_t off;
    size_t len;          /* of the bytes that are here */
    bool ends;           /* the file ends behind them */
    bool copied;         /* they can only be copied: there is no view of them */
    int fd;              /* of the data file; -ENODATA: it was never made, all are zeros; -errno */
    struct version base; /* the version that clean bytes are of; all zeros: not known */
    struct range_op pin;
};

/* How many bytes from off on (<= len, <= up to the size) can be read from the data file now: valid
 * pages, or holes at or above base_end.  0: the first is missing, or is beyond the end, and nothing has
 * begun. */
size_t store_read_begin(struct file *f, uint64_t off, size_t len, struct store_hit *hit);
/* hit->len bytes to buf.  0, or -errno: the cache's disk failed. */
int store_read_copy(const struct store_hit *hit, void *buf);
/* A view of them, as store_view; off is at the start of a page.  NULL: there is none, and the caller uses
 * store_read_copy.  To be given to store_unview before the read ends. */
void *store_read_view(const struct store_hit *hit);
void store_read_end(struct store_hit *hit);

/* All in one: how many bytes from off on were here and are in buf now; 0 as store_read_begin; -errno:
 * the cache's disk failed. */
ssize_t store_read(struct file *f, void *buf, size_t len, uint64_t off);

#endif
