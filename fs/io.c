/* io.c - reading and writing.
 *
 * What the local store has is read and written by the FUSE worker itself; what must wait (a page to
 * fetch, another node's claim, room in the cache) goes to pool_waiters.  Every request counts as
 * activity from its start to its answer (flush/lull.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flush/flush.h"
#include "flush/flush_events.h"
#include "fs/belief.h"
#include "fs/handle.h"
#include "fs/kept.h"
#include "fs/notify.h"
#include "fs/ops.h"
#include "fs/stores.h"
#include "fs/workers.h"
#include "fs/uring.h"
#include "placement/data_believe.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/peer.h"

#define PIECE    ((size_t)FUSE_IO_MAX)
#define VIEW_MIN ((size_t)256 << 10) /* below it making and removing the view costs as much */
/* of one copy_file_range: the caller goes on, and can be interrupted */
#define COPY_MAX ((size_t)64 << 20)
#define READS    8 /* so often a read begins again because other nodes change its bytes meanwhile */

static void end(struct request *r, int err)
{
    request_err(r, err);
    lull_end();
}

/* A request with a handle that counts as activity. */
static struct request *io_request(fuse_req_t req, fuse_ino_t ino, const struct fuse_file_info *fi,
                                  size_t size, off_t off)
{
    struct request *r = request_new(req, ino);
    if (!r) {
        lull_end();
        return NULL;
    }
    handle_use(r, fi, NULL);
    r->size = size;
    r->off = (uint64_t)off;
    return r;
}

/* ---- read ---- */

/* Is it for pages of the kernel, also those of a mapping by a direct open?  Else it goes past them, into a process's memory, and
 * the kernel names the process. */
static bool reads_pages(const struct fuse_file_info *fi)
{
    return !fi->lock_owner;
}

/* Before the request waits: the kernel may hold pages for it. */
static void start_read(struct request *r, struct pool *p, void (*fn)(struct request *r))
{
    page_use_begin(r->inode, &r->pages, r->off, r->size, reads_pages(&r->fi) ? PAGE_READ : PAGE_READ_PAST);
    request_start(r, p, fn);
}

/* Of pages that are answered with len of size bytes (page_cache_ends). */
static uint64_t end_of(uint64_t off, size_t size, size_t len)
{
    return len < size || (off + len) % PAGE ? off + len : UINT64_MAX;
}

/* Answers with err, or with bytes, and ends the request. */
static void end_read(struct request *r, int err, const char *buf, size_t len)
{
    if (request_take(r))
        err ? fuse_reply_err(r->req, -err) : fuse_reply_buf(r->req, buf, len);
    uring_settle();
    page_use_end(r->inode, &r->pages);
    request_done(r);
    lull_end();
}

/* Is the kernel told before the bytes that this handle reads change? */
static bool is_told(const struct handle *h)
{
    return !h->inode->retired && data_is_told(h->data);
}

/* Reads again if the bytes were changed meanwhile: else the kernel would have older ones in its pages, or the answer some of
 * before the change and some of after it.  If they change all the time the pages are dropped after the answer.  Nothing is
 * dropped after a read that left no page: the process that it has answered may ask for the file's end meanwhile
 * (page_cache_grow says why not). */
static void read_fn(struct request *r)
{
    struct handle *h = handle_of(&r->fi);
    size_t got = 0;
    char *buf = peer_buffer(r->size);
    unsigned tries = READS;
    int err = stores_take(h->data->f);
    while (!err) {
        err = data_read(h->data, buf, r->size, r->off, &got);
        r->pages.brings = end_of(r->off, r->size, got);
        if (err || page_use_answer(r->inode, &r->pages, --tries, reads_pages(&r->fi) && !is_told(h)))
            break;
    }
    end_read(r, err, buf, got);
    peer_buffer_free(buf);
}

/* Both answer with the bytes of a read that has begun, and end it.  Once answered the handle may be closed,
 * and the file forgotten. */

/* Straight from the cache's pages.  If its disk fails now the kernel can not read them, and tells the reader EIO; with io_uring
 * this process would read them, and end by it.  False: nothing is done. */
static bool reply_view(fuse_req_t req, struct store_hit *hit)
{
    bool may = hit->len >= VIEW_MIN && hit->off % PAGE == 0 && uring_why_not();
    void *view = may ? store_read_view(hit) : NULL;
    if (!view)
        return false;
    struct file *f = file_ref(hit->f);
    fuse_reply_buf(req, view, hit->len);
    store_unview(view, hit->len);
    store_read_end(hit);
    file_put(f);
    return true;
}

static void reply_copy(fuse_req_t req, struct store_hit *hit)
{
    void *buf = workers_data();
    int err = store_read_copy(hit, buf);
    store_read_end(hit);
    if (err)
        fuse_reply_err(req, -err);
    else
        fuse_reply_buf(req, buf, hit->len);
}

/* pool_proofs: the bytes are here.  If they are not any more, the read waits with the others. */
static void proved_fn(struct request *r)
{
    struct store_hit hit;
    if (data_read_begin(handle_of(&r->fi)->data, r->off, r->size, true, &hit) <= 0) {
        request_move(r, pool_waiters, read_fn);
        return;
    }
    char *buf = peer_buffer(hit.len);
    int err = store_read_copy(&hit, buf);
    size_t got = hit.len;
    store_read_end(&hit);
    r->pages.brings = end_of(r->off, r->size, got);
    if (!err && !page_use_answer(r->inode, &r->pages, READS, false))
        request_move(r, pool_waiters, read_fn);
    else
        end_read(r, err, buf, got);
    peer_buffer_free(buf);
}

/* Before the first bytes are looked for: what the kernel gets from now on is at least as new as what
 * the open was told. */
static void first_read(struct handle *h)
{
    if (h->mode != IO_CACHED || atomic_exchange(&h->asked, true))
        return;
    lock_take(&h->inode->lock);
    kept_asked(h->inode, h->turn);
    lock_drop(&h->inode->lock);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    size = MIN(size, PIECE);
    struct handle *h = handle_of(fi);
    if (!h->asked)
        first_read(h);
    lull_begin();
    page_quick_begin();
    struct store_hit hit;
    int begun = 0;
    if (!h->inode->retired && !stores_any_of(h->data->f)) /* else its pages are dropped after the answer */
        begun = data_read_begin(h->data, (uint64_t)off, size, false, &hit);
    if (begun > 0) {
        if (reads_pages(fi))
            page_cache_ends(h->inode, end_of((uint64_t)off, size, hit.len));
        if (!reply_view(req, &hit))
            reply_copy(req, &hit);
        lull_end();
    } else {
        struct request *r = io_request(req, ino, fi, size, off);
        if (r)
            start_read(r, begun ? pool_proofs : pool_waiters, begun ? proved_fn : read_fn);
    }
    uring_settle();
    page_quick_end();
}

/* ---- write ---- */

/* Known from the attributes that the kernel was told. */
static mode_t mode_told(struct inode *i, gid_t *gid)
{
    lock_take(&i->lock);
    mode_t mode = i->attr_known ? i->attr.st_mode : 0;
    *gid = i->attr.st_gid;
    lock_drop(&i->lock);
    return mode;
}

/* Setuid and setgid may have to go: whether they do is found out in strip. */
static bool may_strip(struct inode *i, uid_t uid)
{
    gid_t gid;
    return uid && mode_told(i, &gid) & (S_ISUID | S_ISGID);
}

static int strip(const struct request *r, struct handle *h)
{
    gid_t gid;
    mode_t mode = mode_told(h->inode, &gid), drop = request_drops(r, mode, gid);
    if (!drop)
        return 0;
    int err = pfs_strip_suid(h->data->f, drop);
    if (err)
        return err;
    lock_take(&h->inode->lock);
    h->inode->attr.st_mode &= ~drop;
    h->inode->touched_ms = boot_ms();
    lock_drop(&h->inode->lock);
    notify_attr_now(h->inode->nodeid);
    belief_changed_attr_by(h->inode);
    return 0;
}

/* Of a write past its pages the kernel holds none. */
static bool holds_pages(const struct request *r)
{
    return r->fi.writepage || !handle_is_direct(handle_of(&r->fi));
}

static bool beside_cached(struct handle *h)
{
    if (h->mode != IO_DIRECT)
        return false;
    lock_take(&h->inode->lock);
    bool cached = h->inode->mode.cached;
    lock_drop(&h->inode->lock);
    return cached;
}

/* A change through h may have made the file longer. */
static void grown(struct handle *h)
{
    struct location at;
    struct data_tag tag;
    if (!belief_appended_beside(h->inode))
        return;
    data_look(h->data, &at, &tag);
    belief_grown_by(h->inode, &at);
}

/* The kernel's pages are wrong where an append went elsewhere than it thought, and so is its size; and pages are wrong where
 * a read by a cached open may have brought back what was there before a write that went past them.  last: the last byte
 * of len > 0. */
static void written(struct handle *h, uint64_t thought, uint64_t went, size_t len, char last)
{
    if (thought != went) {
        page_cache_drop(h->inode, 0, 0);
        page_cache_grow_beside(h->inode, went + len, last);
    } else if (beside_cached(h)) {
        page_cache_drop(h->inode, went, len);
    }
    belief_changed_by(h->inode, went, len);
    grown(h);
}

/* The kernel sends an FSYNC after a write with O_SYNC or O_DSYNC, but not where it caches nothing. */
static bool must_sync(const struct handle *h)
{
    return h->flags & O_DSYNC && handle_is_direct(h);
}

/* Pages that were stored into through a mapping come when the kernel likes, also after an open with
 * O_TRUNC that it let pass them; they never made the file longer. */
static enum carry_op kind_of(const struct fuse_file_info *fi)
{
    if (fi->writepage)
        return CARRY_STORE;
    return fi->flags & O_APPEND ? CARRY_APPEND : CARRY_WRITE;
}

static void end_write(struct request *r, int err)
{
    if (request_take(r))
        err ? fuse_reply_err(r->req, -err) : fuse_reply_write(r->req, r->size);
}

static void write_fn(struct request *r)
{
    struct handle *h = handle_of(&r->fi);
    bool holds = holds_pages(r);
    uint64_t went = r->off;
    int err = strip(r, h);
    if (!err)
        err = stores_take(h->data->f);
    if (!err)
        err = data_write(h->data, kind_of(&r->fi), r->text, r->size, r->off, &went);
    if (!err) {
        h->wrote += r->size;
        written(h, r->off, went, r->size, r->text[r->size - 1]);
        err = must_sync(h) ? file_sync(h) : 0;
    }
    if (holds)
        page_use_answer(r->inode, &r->pages, 0, false);
    end_write(r, err);
    if (holds) {
        uring_settle();
        page_use_end(r->inode, &r->pages);
    }
    request_done(r);
    lull_end();
}

/* It has been written, at off2. */
static void written_fn(struct request *r)
{
    written(handle_of(&r->fi), r->off, r->off2, r->size, *r->text);
    end_write(r, 0);
    request_done(r);
    lull_end();
}

/* An append that went elsewhere than the kernel thought: a FUSE worker may not wait until the kernel knows. */
static void start_written(fuse_req_t req, const char *last, size_t size, uint64_t off, uint64_t went,
                          const struct fuse_file_info *fi)
{
    struct request *r = io_request(req, handle_of(fi)->inode->nodeid, fi, size, (off_t)off);
    if (!r)
        return;
    r->text = xmalloc(1);
    *r->text = *last;
    r->off2 = went;
    request_start(r, pool_waiters, written_fn);
}

/* False: nothing is done.  Ends the activity otherwise. */
static bool write_now(fuse_req_t req, struct handle *h, const char *buf, size_t size, uint64_t off,
                      const struct fuse_file_info *fi)
{
    uint64_t went = off;
    bool others = beside_cached(h) || h->inode->retired || stores_any_of(h->data->f); /* have pages to be dropped */
    if (may_strip(h->inode, fuse_req_ctx(req)->uid) || must_sync(h) || others || belief_appended_beside(h->inode))
        return false; /* it may have to wait */
    int err = data_write_now(h->data, kind_of(fi), buf, size, off, &went);
    if (err == -EAGAIN)
        return false;
    if (!err)
        h->wrote += size;
    if (!err && went != off) {
        start_written(req, buf + size - 1, size, off, went, fi);
        return true;
    }
    err ? fuse_reply_err(req, -err) : fuse_reply_write(req, size);
    lull_end();
    return true;
}

static void start_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                        struct fuse_file_info *fi)
{
    struct request *r = io_request(req, ino, fi, size, off);
    if (!r)
        return;
    r->text = xmalloc(size);
    memcpy(r->text, buf, size);
    if (holds_pages(r))
        page_use_begin(r->inode, &r->pages, r->off, size, PAGE_WRITE);
    request_start(r, flush_must_wait(size) ? pool_writers : pool_waiters, write_fn);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    lull_begin();
    page_quick_begin();
    if (!write_now(req, handle_of(fi), buf, size, (uint64_t)off, fi))
        start_write(req, ino, buf, size, off, fi);
    uring_settle();
    page_quick_end();
}

/* ---- fallocate, lseek, copy_file_range ---- */

static void fallocate_fn(struct request *r)
{
    struct handle *h = handle_of(&r->fi);
    int err = strip(r, h);
    if (!err)
        err = data_fallocate(h->data, r->flags, r->off, r->size);
    if (!err) {
        belief_changed_by(h->inode, r->off, r->size);
        grown(h);
    }
    end(r, err);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
                         struct fuse_file_info *fi)
{
    lull_begin();
    struct request *r = io_request(req, ino, fi, (size_t)len, off);
    if (!r)
        return;
    r->flags = mode;
    request_start(r, pool_waiters, fallocate_fn);
}

static void lseek_fn(struct request *r)
{
    uint64_t found = 0;
    int err = data_seek(handle_of(&r->fi)->data, r->off, r->flags == SEEK_HOLE, &found);
    if (err) {
        request_err(r, err);
        return;
    }
    if (request_take(r))
        fuse_reply_lseek(r->req, (off_t)found);
    request_done(r);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence,
                     struct fuse_file_info *fi)
{
    if (whence != SEEK_DATA && whence != SEEK_HOLE) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    struct request *r = request_new(req, ino);
    if (!r)
        return;
    handle_use(r, fi, NULL);
    r->off = (uint64_t)off;
    r->flags = whence;
    request_start(r, pool_waiters, lseek_fn);
}

/* A copy within the mount: through this node's memory, in pieces; short if an error or the end came
 * after some bytes. */
static int copy_pieces(struct handle *from, struct handle *to, struct request *r, size_t *done)
{
    char *buf = peer_buffer(PIECE);
    int err = 0;
    *done = 0;
    while (!err && *done < r->size) {
        size_t n = MIN(r->size - *done, PIECE), got = 0;
        uint64_t went;
        err = data_read(from->data, buf, n, r->off + *done, &got);
        if (!err && !got)
            break;
        if (!err)
            err = data_write(to->data, CARRY_WRITE, buf, got, r->off2 + *done, &went);
        if (!err)
            *done += got;
    }
    peer_buffer_free(buf);
    return *done ? 0 : err;
}

static void copy_fn(struct request *r)
{
    struct handle *from = r->handle, *to = r->handle2;
    size_t done = 0;
    int err = strip(r, to);
    if (!err)
        err = stores_take(from->data->f);
    if (!err)
        err = copy_pieces(from, to, r, &done);
    if (done && to->flags & O_DSYNC) /* the kernel sends no FSYNC after it */
        err = file_sync(to);
    if (done) {
        belief_changed_by(to->inode, r->off2, done);
        grown(to);
    }
    if (err)
        request_err(r, err);
    else
        request_write(r, done);
    lull_end();
}

/* The kernel looks at this itself, but takes the two node ids that a file can have for two files. */
static bool overlaps(const struct request *r, size_t len)
{
    bool same = fid_eq(r->handle->inode->fid, r->handle2->inode->fid);
    return same && r->off < r->off2 + len && r->off2 < r->off + len;
}

static void op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in,
                               struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t off_out,
                               struct fuse_file_info *fi_out, size_t len, int flags)
{
    if (flags) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    lull_begin();
    struct request *r = request_new(req, ino_in);
    if (!r) {
        lull_end();
        return;
    }
    handle_use(r, fi_in, fi_out);
    r->size = MIN(len, COPY_MAX);
    r->off = (uint64_t)off_in;
    r->inode2 = inode_get(ino_out);
    r->off2 = (uint64_t)off_out;
    if (overlaps(r, len))
        end(r, -EINVAL);
    else
        request_start(r, pool_waiters, copy_fn);
}

void io_ops(struct fuse_lowlevel_ops *ops)
{
    ops->read = op_read;
    ops->write = op_write;
    ops->fallocate = op_fallocate;
    ops->lseek = op_lseek;
    ops->copy_file_range = op_copy_file_range;
}
