/* copy_aside.c - all that is here of a file, into a new file: of a conflict, and of `eddy recover --to`.
 *
 *     holes                     stay holes
 *     bytes that are here       are copied
 *     bytes that only the PFS   come from `fill`, or are missing
 *       has
 *     parts that other nodes    are missing.  After a start it is not known which those are, and it need not be: what is here
 *       have                    is this node's (store_own_next)
 */
#include "flush/copy_aside.h"
#include "flush/piece.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_read.h"
#include "placement/store/store_write.h"

#include <errno.h>
#include <stdlib.h>

/* Copies the bytes from off to end that are here.  `fill` gives the other bytes, or they are counted in
 * *missing and become a hole. */
static int copy_range(struct copying *c, uint64_t off, uint64_t end)
{
    while (off < end) {
        uint64_t miss_off, miss_len;
        ssize_t here = store_read(c->f, c->buf, (size_t)MIN(end - off, (uint64_t)PIECE), off);
        size_t n = here > 0 ? (size_t)here : 0;
        int err = here < 0 ? (int)here : 0;
        if (n) {
            err = pfs_new_write(c->to, c->buf, n, off);
        } else if (err) {
            return err;
        } else if (store_missing(c->f, off, end - off, &miss_off, &miss_len)) {
            n = (size_t)MIN(miss_off + miss_len - off, (uint64_t)PIECE);
            err = c->fill ? c->fill(c, off, &n) : -ENODATA;
            if (err == -ENODATA) {
                c->missing += n;
                err = 0;
            } else if (!err) {
                err = pfs_new_write(c->to, c->buf, n, off);
            }
        } else {
            struct file_info info;
            store_info(c->f, &info);
            return off < info.size ? -EIO : 0; /* it ends here */
        }
        if (err)
            return err;
        off += n;
    }
    return 0;
}

static int copy_all(struct copying *c)
{
    uint64_t data, end = 0;
    int err;
    while (!(err = store_seek(c->f, end, false, &data))) {
        err = store_seek(c->f, data, true, &end);
        if (!err)
            err = copy_range(c, data, end);
        if (err)
            break;
    }
    return err;
}

static int copy_own(struct copying *c)
{
    uint64_t at, end = 0, missing;
    int err;
    while (!(err = store_own_next(c->f, end, &at, &end, &missing))) {
        c->missing += missing;
        for (uint64_t off = at; !err && off < end;) {
            size_t n = (size_t)MIN(end - off, (uint64_t)PIECE);
            err = store_pread(c->f, c->buf, n, off);
            if (!err)
                err = pfs_new_write(c->to, c->buf, n, off);
            off += n;
        }
        if (err)
            return err;
    }
    c->missing += missing;
    return err;
}

bool copy_aside_is_part(struct file *f)
{
    return store_is_lent(f) || fid_is_loan(f->fid);
}

int copy_aside(struct copying *c)
{
    c->missing = 0;
    c->buf = xmalloc(PIECE);
    int err = copy_aside_is_part(c->f) ? copy_own(c) : copy_all(c);
    free(c->buf);
    return err == -ENXIO ? 0 : err;
}
