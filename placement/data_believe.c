/* data_believe.c - what the kernel may believe of an open file's bytes (data_believe.h). */
#include "placement/data_believe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/borrow.h"
#include "placement/data_int.h"
#include "placement/lend.h"
#include "placement/local.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/shadow.h"
#include "placement/store/store_lend.h"
#include "transport/peer.h"

/* ---- until when ---- */

void data_break(struct file *f)
{
    data_of(f)->drops++;
}

bool data_is_told(struct data_handle *h)
{
    uint64_t node;
    if (data_where(h, &node) != WHERE_NODE)
        return data_stays(h);
    lock_take(&h->lock);
    bool watched = h->watched;
    lock_drop(&h->lock);
    return watched;
}

bool data_may_cache(struct data_handle *h)
{
    uint64_t node;
    enum where w = data_where(h, &node);
    if (w == WHERE_HERE && store_is_shared(h->f))
        return false;
    return (w == WHERE_HERE || w == WHERE_PFS || (w == WHERE_NODE && data_is_told(h))) && !data_is_behind(h);
}

/* ---- one byte ---- */

int data_byte(struct file *f, enum where where, uint64_t node, uint64_t off, char *out)
{
    struct local_read here = {
        .buf = out, .len = 1, .off = off, .claimed = true, .end_ms = data_patience().end_ms};
    struct carry_range there = {.buf = out, .len = 1, .off = off};
    struct borrow_heard heard;
    size_t got = 0;
    int err;
    if (where == WHERE_HERE) {
        err = lend_read_all(f, &here);
        got = here.got;
    } else if (where == WHERE_NODE) {
        err = borrow_read(f, node, &there, &heard);
        got = there.got;
    } else {
        err = pfs_read(f, out, 1, off, &got);
    }
    return err ? err : got == 1 ? 0 : -ESTALE;
}

/* ---- passthrough descriptors of an older version ---- */

/* By the store, owners and the PFS, as any reader gets it; it writes over what is there. */
static int copy_to_shadow(struct data_handle *h, uint64_t size)
{
    void *buf = peer_buffer(CARRY_PIECE);
    uint64_t off = 0;
    int err;
    do {
        uint64_t changes = shadow_changes(h->f);
        size_t got;
        err = data_read(h, buf, MIN(CARRY_PIECE, size - off), off, &got);
        if (!err)
            err = shadow_fill(h->f, buf, got, off, got ? size : off, changes);
        off += err ? 0 : got;
        size = !err && !got ? off : size; /* it became shorter */
    } while (err == -EAGAIN || (!err && off < size));
    peer_buffer_free(buf);
    return err;
}

static void say_behind(struct file *f, int err)
{
    char *path = file_path(f);
    log_warn("%s: processes that had it open before it was changed may read older bytes: %s", path ? path : "?",
             strerror(-err));
    free(path);
}

static bool has_all(struct file *f, enum where w, const struct location *at)
{
    return w == WHERE_PFS    ? shadow_is_at(f, &at->version)
           : w == WHERE_HERE ? shadow_follows(f, &at->version)
                             : shadow_follows_claim(f, at->node, at->begun);
}

void data_follow(struct data_handle *h)
{
    uint64_t node;
    struct location at;
    bool cache = data_may_cache(h);
    enum where w = data_where(h, &node);
    if (w == WHERE_NODE || (!cache && w != WHERE_LOST))
        shadow_begin(h->f); /* -EBUSY: the bytes are here */
    if (!shadow_is(h->f) || w == WHERE_LOST)
        return;
    data_attr(h, &at);
    if (has_all(h->f, w, &at))
        return;
    int err = copy_to_shadow(h, at.size);
    if (err)
        say_behind(h->f, err);
    else if (w == WHERE_NODE)
        shadow_now_of_claim(h->f, at.node, at.begun);
    else
        shadow_now_at(h->f, &at.version);
}
