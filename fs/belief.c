/* belief.c - how long the kernel may believe attributes, and the end of what this mount believes (belief.h). */
#include "fs/belief.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fs/kept.h"
#include "fs/known.h"
#include "fs/page_cache.h"
#include "fs/uring.h"
#include "placement/data_believe.h"
#include "placement/store/kernel_io.h"
#include "placement/store/shadow.h"

struct belief belief_fixed(void)
{
    return (struct belief){.keep = true};
}

bool belief_unheard(const struct inode *i)
{
    struct file *f = i->second ? file_find(i->fid) : NULL;
    bool writes = f && (kernel_io_writes(f) || shadow_stores_may_be(f));
    if (f)
        file_put(f);
    return writes;
}

struct belief belief_of(const struct inode *i, const struct location *at)
{
    if (i->fixed || !S_ISREG(i->type))
        return belief_fixed();
    return (struct belief){.keep = at->keep && !i->retired && !belief_unheard(i),
                           .told = true,
                           .fid = i->fid,
                           .ticket = at->ticket,
                           .where = at->where,
                           .node = at->node};
}

/* This node alone has changed it, by this node id: the kernel has counted the size itself. */
static bool is_own(const struct inode *i, const struct belief *b)
{
    return b->told && b->where == WHERE_HERE && !i->others;
}

double belief_begin(struct belief *b, struct inode *i, uint64_t size, double timeout)
{
    bool own = is_own(i, b);
    i->told_size = own ? size : MIN(i->told_size, size);
    b->begun = b->keep && (!b->told || look_answer_begin(b->fid, b->ticket));
    if (!b->begun)
        return 0;
    double left = (double)look_left_ms(b->ticket) / 1000;
    return b->told ? MIN(timeout, left) : timeout;
}

void belief_end(struct belief *b)
{
    if (b->begun && b->told) {
        uring_settle(); /* the kernel has it */
        look_answer_end(b->fid, b->ticket);
    }
    b->begun = false;
}

/* ---- the size ---- */

static bool is_open(const struct inode *i)
{
    return i->mode.cached || i->mode.direct || i->mode.passthrough || i->mode.beside;
}

bool belief_must_grow(const struct inode *i, const struct belief *b, uint64_t size)
{
    return b->told && !is_own(i, b) && S_ISREG(i->type) && size > i->told_size && is_open(i);
}

/* The file was changed, or its bytes went to another node. */
static bool has_moved(int err)
{
    return err == -ESTALE || err == -ENOENT || err == -EAGAIN || err == -EREMOTE;
}

bool belief_grow(struct inode *i, const struct belief *b, uint64_t size)
{
    char last;
    struct file *f = belief_must_grow(i, b, size) ? file_find(i->fid) : NULL;
    int err = f ? data_byte(f, b->where, b->node, size - 1, &last) : 0;
    if (f && !err)
        page_cache_grow(i, size, last);
    if (f)
        file_put(f);
    return !has_moved(err);
}

/* ---- the size, for appends ---- */

/* The kernel counts the place of an append by the size that it has, and asks nobody before. */
static bool must_have_size(struct inode *i)
{
    lock_take(&i->lock);
    bool must = i->mode.appends || i->opening;
    lock_drop(&i->lock);
    return must;
}

/* The kernel lets no notification make the size less: then an append has the old place, until the kernel asks. */
static void push_size(struct inode *i, const struct told_change *c)
{
    if (c->what == TOLD_CUT)
        i->told_size = MIN(i->told_size, c->size);
    if (c->ends && must_have_size(i))
        page_cache_grow_beside(i, c->size, c->last);
}

uint64_t belief_size_if_lost(struct inode *i, uint64_t size)
{
    return must_have_size(i) ? i->told_size : size;
}

void belief_appends(struct inode *i, const struct location *at)
{
    char last;
    struct file *f = at->size ? file_find(i->fid) : NULL;
    if (f && !data_byte(f, at->where, at->node, at->size - 1, &last))
        page_cache_grow_beside(i, at->size, last);
    if (f)
        file_put(f);
}

/* Of another node id. */
static void each_appended_beside(struct inode *i, const struct location *at, bool *any)
{
    struct inode **all = i->retired || i->second ? inode_all_of(i->fid) : NULL;
    for (struct inode **other = all; other && *other; other++) {
        if (*other != i && must_have_size(*other)) {
            *any = true;
            if (at)
                belief_appends(*other, at);
        }
        inode_put(*other);
    }
    free(all);
}

bool belief_appended_beside(struct inode *i)
{
    bool any = false;
    each_appended_beside(i, NULL, &any);
    return any;
}

void belief_grown_by(struct inode *i, const struct location *at)
{
    bool any = false;
    each_appended_beside(i, at, &any);
}

/* ---- the end ---- */

/* A handle that is opened meanwhile is counted, or sees the break (data_may_cache). */
static unsigned left_cached(struct inode *i)
{
    lock_take(&i->lock);
    unsigned kinds = (i->mode.cached || i->opening ? LOOKER_CACHED : 0) |
                     (i->mode.appends || i->opening ? LOOKER_APPENDS : 0);
    lock_drop(&i->lock);
    return kinds;
}

/* By whatever node id. */
static unsigned left_passthrough(struct fid fid)
{
    struct file *f = file_find(fid);
    bool open = f && kernel_io_is_open(f);
    if (f)
        file_put(f);
    return open ? LOOKER_PASSTHROUGH : 0;
}

static void forget_where(struct fid fid)
{
    struct file *f = file_find(fid);
    if (!f)
        return;
    data_break(f);
    file_put(f);
}

static void note_told(struct inode *i)
{
    i->others = true;
    lock_take(&i->lock);
    i->told_ms = boot_ms();
    lock_drop(&i->lock);
}

/* What it has left, of all inodes of the file: also one without a name, or whose node id was given up, may be open. */
static unsigned each_inode(struct fid fid, void (*fn)(struct inode *i, const struct told_change *c),
                           const struct told_change *c)
{
    struct inode **all = inode_all_of(fid);
    unsigned kinds = 0;
    for (struct inode **at = all; *at; at++) {
        note_told(*at);
        fn(*at, c);
        kinds |= left_cached(*at);
        inode_put(*at);
    }
    free(all);
    return kinds | left_passthrough(fid);
}

/* Its bytes here are not the file's any more (known_open): a name must lead to it while there is one. */
static void end_all(struct inode *i, const struct told_change *c)
{
    (void)c;
    known_want_descriptor(i);
    lock_take(&i->lock);
    kept_lose(i);
    lock_drop(&i->lock);
    page_cache_drop(i, 0, 0);
}

unsigned belief_break(struct fid fid)
{
    forget_where(fid);
    return each_inode(fid, end_all, NULL);
}

static void end_changed(struct inode *i, const struct told_change *c)
{
    if (c->what == TOLD_ATTR || c->what == TOLD_DROP)
        page_cache_drop_attr(i);
    else
        page_cache_drop(i, c->off, c->what == TOLD_CUT ? 0 : c->len);
    push_size(i, c);
}

/* Its last name is gone: its claimant keeps what the PFS never gets until the last close here. */
static void keep_bytes(struct fid fid)
{
    struct file *f = file_find(fid);
    if (!f)
        return;
    data_keep(f, true);
    file_put(f);
}

unsigned belief_changed(struct fid fid, const struct told_change *c)
{
    if (c->what == TOLD_DROP)
        keep_bytes(fid);
    return each_inode(fid, end_changed, c);
}

/* ---- several node ids ---- */

/* What was looked at before is not known any more. */
static void touch(struct inode *i)
{
    i->others = true;
    lock_take(&i->lock);
    i->touched_ms = boot_ms();
    lock_drop(&i->lock);
}

void belief_changed_by(struct inode *i, uint64_t off, uint64_t len)
{
    struct inode *other = inode_beside_retired(i);
    if (other) {
        touch(other);
        page_cache_drop(other, off, len);
    }
    inode_put(other);
}

void belief_changed_attr_by(struct inode *i)
{
    struct inode *other = inode_beside_retired(i);
    if (other) {
        touch(other);
        page_cache_drop_attr(other);
    }
    inode_put(other);
}
