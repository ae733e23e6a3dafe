/* local.c - reading and changing a file in this node's store.
 *
 * A page can be evicted between its fetch and its use, and its file can get another version.  So each
 * function is a loop that looks at the store again.  It gives up only if it got no further until the deadline
 * of the call.
 *
 * Bytes of the PFS count up to base_end only, and only for pages that are not valid.  The same holds for
 * bytes that a reader gets without their being stored (no room).
 *
 * While this node flushes the file, the PFS file has neither the old nor the new version, so the owners
 * answer -ESTALE.  The flush does not write missing pages (store_copyout.h: what was dirty stays until
 * store_flushed), so the PFS file has the right bytes of these: they are read by this node's own descriptor.
 * They are stored under the base version from before the read.  If the flush ended meanwhile, store_fill
 * refuses them.  The same descriptor is used when the owners do not find the file (-ENOENT): the claimant's
 * path of it may be old, or the file has no name any more.
 */
#include "placement/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "placement/chunks/chunk.h"
#include "placement/chunks/proof.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_size.h"
#include "placement/store/space.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_keep.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_loan.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"
#include "transport/hash.h"

/* ---- what flush/ does for changes ---- */

static const struct local_needs nothing;
static const struct local_needs *_Atomic needs = &nothing;

void local_on_need(const struct local_needs *with)
{
    needs = with ? with : &nothing;
}

static int make_room(struct file *f, uint64_t *seen)
{
    const struct local_needs *n = needs;
    return n->make_room ? n->make_room(f, seen) : -ENOSPC;
}

int local_sync_pfs(struct file *f)
{
    const struct local_needs *n = needs;
    return n->sync_pfs ? n->sync_pfs(f) : -EOPNOTSUPP;
}

static bool must_wait(uint64_t len)
{
    const struct local_needs *n = needs;
    return n->must_wait && n->must_wait(len);
}

static int admit(struct file *f, uint64_t len)
{
    const struct local_needs *n = needs;
    return n->admit ? n->admit(f, len) : 0;
}

/* Does this error of an owner say that only this node, which has the claim, can read the bytes? */
static bool owner_cannot(int err)
{
    return err == -ESTALE || err == -ENOENT;
}

/* ---- reading ---- */

/* Gets the read's next len bytes, which are missing in the store; zeros beyond base_end.  looked: fetch_looks
 * before the bytes were seen to be missing. */
static int read_missing(struct file *f, struct local_read *r, const struct file_info *info,
                        size_t len, uint64_t looked)
{
    uint8_t *buf = (uint8_t *)r->buf + r->got;
    uint64_t off = r->off + r->got;
    size_t wanted = info->base_end > off ? MIN(len, info->base_end - off) : 0, got = 0;
    if (wanted && fid_is_loan(f->fid)) {
        int err = pfs_read(f, buf, wanted, off, &got);
        r->from.pfs += err ? 0 : got;
        if (err)
            return err;
    } else if (wanted) {
        struct fetch want = {.v = info->base,
                             .off = off,
                             .len = wanted,
                             .buf = buf,
                             .looked = looked,
                             .from = &r->from};
        int err = fetch_range(f, &want, &got);
        if (owner_cannot(err) && r->claimed) {
            err = pfs_read(f, buf, wanted, off, &got);
            r->from.pfs += err ? 0 : got;
        }
        if (err)
            return err;
    }
    memset(buf + got, 0, len - got);
    return 0;
}

static bool is_lent(struct file *f, uint64_t off)
{
    uint64_t until;
    return store_is_lent(f) && store_lent_to(f, off / LOAN_UNIT, off / LOAN_UNIT, &until);
}

/* Reads some of the next bytes: returns how many, 0 if another thread brought the first one meanwhile, or
 * -errno.  own: no reader of this node can have had newer bytes. */
static ssize_t read_some(struct file *f, struct local_read *r, const struct file_info *info,
                         bool *own)
{
    uint8_t *buf = (uint8_t *)r->buf + r->got;
    uint64_t off = r->off + r->got, len = MIN(r->len - r->got, info->size - off), miss, n;
    uint64_t early = r->from.early, looked = fetch_looks(f);
    ssize_t valid = store_read(f, buf, len, off);
    *own = r->claimed;
    r->from.local += valid > 0 ? (size_t)valid : 0;
    if (!valid && is_lent(f, off))
        return -EREMOTE;
    if (valid || !store_missing(f, off, len, &miss, &n) || miss != off)
        return valid;
    int err = read_missing(f, r, info, n, looked);
    *own = r->claimed || r->from.early - early == n;
    return err ? err : (ssize_t)n;
}

int local_read(struct file *f, struct local_read *r)
{
    struct proofs then = proofs_now(f);
    r->got = 0;
    while (r->got < r->len) {
        struct file_info info;
        bool own;
        store_info(f, &info);
        if (r->off + r->got >= info.size)
            return 0;
        ssize_t n = read_some(f, r, &info, &own);
        int err = n < 0 ? (int)n : n && !own ? proofs_stand(f, &then, &info.base, true) : 0;
        if (!err && !n && boot_ms() >= r->end_ms)
            err = -EIO;
        if (err)
            return err;
        r->got += (size_t)n;
    }
    return 0;
}

/* ---- changing ---- */

/* Reads the chunk around a missing page by this node's own descriptor (see the head). */
static int fill_by_descriptor(struct file *f, const struct file_info *info, uint64_t page_off,
                              enum space_limit limit)
{
    uint64_t size = store_chunk_size();
    struct chunk_key key = {.fid = f->fid, .index = page_off / size, .version = info->base};
    size_t len = chunk_key_len(&key), got = 0;
    if (!len)
        return -EIO;
    struct chunk *c = chunk_new(ROOM_ASK, size);
    int err = pfs_read(f, c->data, len, key.index * size, &got);
    if (!err) {
        memset(c->data + got, 0, len - got); /* the flush has cut these off: beyond base_end by now */
        struct clean_chunk clean = {.index = key.index,
                                    .version = key.version,
                                    .buf = c->data,
                                    .len = len,
                                    .hash = data_hash(c->data, len),
                                    .racy = true}; /* the flush changes the file */
        err = store_fill_needed(f, &clean, limit);
    }
    chunk_put(c);
    return err == -ESTALE ? 0 : err; /* the flush ended: the caller looks again */
}

/* The PFS has the bytes of a loan that are not here, and no other node. */
static int fill_loan(struct file *f, const struct file_info *info, uint64_t page_off)
{
    char page[PAGE];
    size_t got = 0, len = (size_t)MIN(info->base_end - MIN(info->base_end, page_off), (uint64_t)PAGE);
    int err = pfs_read(f, page, len, page_off, &got);
    if (!err)
        err = store_loan_fill(f, info->base.mtime_ns, page_off, page, got);
    return err == -ESTALE ? 0 : err; /* the caller looks again */
}

/* limit: see change_with_room. */
static int fill(struct file *f, uint64_t page_off, enum space_limit limit)
{
    struct file_info info;
    store_info(f, &info);
    if (fid_is_loan(f->fid))
        return fill_loan(f, &info, page_off);
    struct fetch want = {.v = info.base, .off = page_off, .len = PAGE};
    int err = fetch_range(f, &want, NULL);
    bool here = owner_cannot(err) || (err == -ENOSPC && limit == SPACE_DISK);
    return here ? fill_by_descriptor(f, &info, page_off, limit) : err;
}

static int sync_change(struct file *f, const struct change *c)
{
    return c->mode == 1 ? local_sync_pfs(f) : store_sync(f);
}

/* Appends the bytes that were not appended yet. */
static int append(struct file *f, struct change *c, enum space_limit limit, uint64_t *fill_off)
{
    size_t before = c->appended;
    struct appended out = {.off = c->off_out};
    int err =
        store_append(f, (const char *)c->buf + before, c->len - before, limit, &out, fill_off);
    c->off_out = out.off - MIN(out.off, (uint64_t)before);
    c->appended += out.len;
    return err;
}

static int change_once(struct file *f, struct change *c, enum space_limit limit, uint64_t *fill_off)
{
    switch (c->op) {
    case CARRY_WRITE:
        c->off_out = c->off;
        return store_write(f, c->buf, c->len, c->off, limit, fill_off);
    case CARRY_STORE:
        c->off_out = c->off;
        return store_write_within(f, c->buf, c->len, c->off, limit, fill_off);
    case CARRY_GIVE:
        c->off_out = c->off;
        return store_write_given(f, c->giver, c->buf, c->len, c->off, limit, fill_off);
    case CARRY_APPEND:
        return append(f, c, limit, fill_off);
    case CARRY_TRUNCATE:
        return store_truncate(f, c->len, fill_off);
    case CARRY_PUNCH:
        return store_punch(f, c->off, c->len, limit, fill_off);
    case CARRY_ALLOCATE:
        return store_allocate(f, c->off, c->len, c->mode & FALLOC_FL_KEEP_SIZE);
    case CARRY_TIMES:
        store_set_times(f, c->time_ns);
        return store_note_time(f, c->time_ns); /* the asker sets the PFS's times */
    case CARRY_SYNC:
        return sync_change(f, c);
    default:
        return -EINVAL;
    }
}

/* ---- sizes that the PFS cannot have ---- */

/* How large the file must be able to be for the change; 0: the change makes it no larger.  size: its present
 * one, for APPEND. */
static uint64_t end_of(const struct change *c, uint64_t size)
{
    switch (c->op) {
    case CARRY_WRITE:
    case CARRY_GIVE:
    case CARRY_ALLOCATE:
        return c->off + MIN(c->len, UINT64_MAX - c->off);
    case CARRY_TRUNCATE:
        return c->len;
    case CARRY_APPEND:
        return size + (c->len - c->appended);
    default:
        return 0;
    }
}

int local_change_now(struct file *f, struct change *c)
{
    struct file_info info = {0};
    uint64_t fill_off;
    if (c->op == CARRY_APPEND)
        store_info(f, &info);
    if (must_wait(c->len) || !pfs_size_is_proved(end_of(c, info.size)))
        return -EAGAIN;
    if (info.kernel_io)
        return -EAGAIN; /* a part of it may be appended, and the next try would append all again */
    int err = change_once(f, c, SPACE_NOW, &fill_off);
    return err == -ENODATA || err == -ENOSPC ? -EAGAIN : err;
}

/* True: there is no room although nothing in the cache is dirty: other files fill the disk. */
static bool others_have_it(int err)
{
    uint64_t dirty, room;
    store_dirty(&dirty, &room);
    return err == -ENOSPC && !dirty;
}

/* A change needs the bytes around its begin and around its end.  What was filled for one of them must not make room for the
 * other. */
struct filled {
    uint64_t at[2];
    unsigned n;
};

static void hold(struct file *f, struct filled *filled, uint64_t off)
{
    bool has = filled->n && filled->at[0] / store_chunk_size() == off / store_chunk_size();
    if (!has && filled->n < ARRAY_LEN(filled->at) && store_hold(f, off))
        filled->at[filled->n++] = off;
}

static void let_go(struct file *f, const struct filled *filled)
{
    for (unsigned i = 0; i < filled->n; i++)
        store_unhold(f, filled->at[i]);
}

/* Tries until the change is made, or cannot be made.  If other files have filled the disk, a write may go
 * beyond the cache's limits (SPACE_DISK), and the next one waits until it is flushed. */
static int try_with_room(struct file *f, struct change *c, struct filled *held)
{
    enum space_limit limit = SPACE_CACHE;
    uint64_t fill_off = 0, filled = UINT64_MAX, seen = UINT64_MAX;
    for (;;) {
        int err = change_once(f, c, limit, &fill_off);
        if (err == -ENODATA) {
            if (fill_off == filled && boot_ms() >= c->end_ms)
                return -EIO;
            filled = fill_off;
            err = fill(f, fill_off, limit);
            if (!err) {
                hold(f, held, fill_off);
                continue;
            }
        }
        if (err != -ENOSPC || c->op == CARRY_SYNC) /* the sync's -ENOSPC comes from the PFS or the disk */
            return err;
        int e = make_room(f, &seen);
        if (e && (limit == SPACE_DISK || !others_have_it(e)))
            return e;
        limit = e ? SPACE_DISK : SPACE_CACHE;
    }
}

static int change_with_room(struct file *f, struct change *c)
{
    struct filled held = {.n = 0};
    int err = try_with_room(f, c, &held);
    let_go(f, &held);
    return err;
}

int local_change(struct file *f, struct change *c)
{
    struct file_info info = {0};
    if (c->op == CARRY_APPEND)
        store_info(f, &info);
    int err = pfs_size_check(end_of(c, info.size));
    if (!err && carry_op_is_write(c->op))
        err = admit(f, c->len);
    return err ? err : change_with_room(f, c);
}
