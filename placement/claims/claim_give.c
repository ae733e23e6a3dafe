/* claim_give.c - see claim_give.h.
 *
 * A claim goes when the file is clean and no open writes to it.  Of a file without a name it goes when the file is closed
 * on this node and counted for no other one; what the PFS never gets goes with it (docs/protocol.md, rules 13 and 28).
 */
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_int.h"

#include <stdlib.h>

#include "placement/claims/claim_own.h"
#include "placement/claims/pin_list.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_moves.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

/* ---- bytes that the PFS never gets ---- */

/* No node must believe that the PFS has what was here of a removed file: no version is this one. */
static const struct version dropped = {UINT64_MAX, INT64_MAX, INT64_MAX};

bool claim_dropped(const struct location *at)
{
    return at->where == WHERE_PFS && at->known == 1 && version_eq(&at->version, &dropped);
}

/* Nodes that opened the file before it was claimed here are not counted here (pins.c).  Before what the PFS never
 * gets is dropped they are told, and those that still have the file open are counted. */
static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t none;
    void (*fn)(struct file *f);
    unsigned calls; /* whose claim_drop_told is to come */
} drops = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF},
          .none = PTHREAD_COND_INITIALIZER};

void claim_on_drop(void (*fn)(struct file *f))
{
    lock_take(&drops.lock);
    drops.fn = fn;
    while (!fn && drops.calls)
        lock_wait(&drops.lock, &drops.none, 0);
    lock_drop(&drops.lock);
}

void claim_drop_told(struct file *f)
{
    claim_carry_end(f);
    lock_take(&drops.lock);
    if (!--drops.calls)
        pthread_cond_broadcast(&drops.none);
    lock_drop(&drops.lock);
}

/* The claim's lock is held.  Not NULL: it is to be called, and the claim stays until claim_drop_told. */
static void (*begin_drop(struct file_claim *c, const struct file_info *info))(struct file *f)
{
    if (!info->only_here || !(c->watchers || c->watchers_unknown) || c->drop_told)
        return NULL;
    lock_take(&drops.lock);
    void (*fn)(struct file *f) = drops.fn;
    drops.calls += fn != NULL;
    lock_drop(&drops.lock);
    c->drop_told = true;
    c->writers += fn != NULL;
    return fn;
}

/* ---- giving it back ---- */

/* What was written to it, and will not be flushed, is only here.  A process that has it open may open it
 * again (/proc/self/fd, /dev/stdin) until the last close.  Not without a descriptor: see claim_unlinked. */
static bool is_open_without_name(struct file *f)
{
    return file_is_unlinked(f) && pfs_is_open(f) && pfs_has_descriptor(f);
}

/* The home is told after the claim was cleared on this node's disk. */
static void tell_given(struct file *f, const struct file_info *info, uint64_t inc, uint64_t number,
                       const struct watchers *had)
{
    struct told told = {info->mtime_ns, info->ctime_ns};
    const struct version *base = info->base_known ? &info->base : NULL;
    claim_tell_free(f->fid, inc, number, info->only_here ? &dropped : base, &told, had);
    if (file_is_unlinked(f))
        pfs_drop(f); /* unless it is open; it was open for a flush that does not come */
    file_put(f); /* the claim's own reference: the caller has another one */
}

static void add_pin(void *had, const struct pin_id *id)
{
    watchers_add_open(had, id->node, id->incarnation);
}

void claim_give_back(struct file *f)
{
    struct file_claim *c = claim_if(f);
    struct file_info info;
    bool given = false;
    void (*tell_drop)(struct file *f) = NULL;
    if (!c)
        return;
    lock_take(&c->lock);
    if (c->state == CLAIM_HELD && !c->writers) {
        store_info(f, &info); /* first: a file that loses its name is clean soon after, flushed or not */
        bool may = !info.dirty && !info.lent && !is_open_without_name(f);
        tell_drop = may ? begin_drop(c, &info) : NULL;
        given = may && !tell_drop && store_clear_claim(f, info.base_known ? &info.base : NULL);
    }
    uint64_t inc = c->inc, number = c->number;
    struct watchers had = watchers_of(c);
    if (given && pfs_is_open(f)) /* nodes that have asked here are not entered at the home */
        pin_list_of(f, add_pin, &had);
    if (given) {
        watchers_set(c, &(struct watchers){0});
        own_remove(f->fid);
        c->state = CLAIM_NONE;
        pthread_cond_broadcast(&c->changed);
    }
    lock_drop(&c->lock);
    if (given)
        tell_given(f, &info, inc, number, &had);
    if (tell_drop)
        tell_drop(f);
}

static bool has_claim(struct file *f)
{
    struct file_claim *c = claim_if(f);
    if (!c)
        return false;
    lock_take(&c->lock);
    bool has = c->state != CLAIM_NONE;
    lock_drop(&c->lock);
    return has;
}

/* Its claim may have ended when a borrower that is dead now comes back.  It must not put what it had beside a file that nobody
 * can open any more. */
static void tell_borrowers(struct file *f)
{
    struct file_claim *c = claim_if(f);
    if (!c || !store_is_lent(f))
        return;
    lock_take(&c->lock);
    bool told = c->gone_told;
    c->gone_told = true;
    lock_drop(&c->lock);
    char *path = told ? NULL : file_path(f);
    if (!told)
        moves_log_gone(f->fid, path, false);
    free(path);
}

/* The descriptor on the PFS is closed last: while it is open, the PFS does not give the inode's number to
 * a new file, which would have the same fid where the PFS reports no birth time. */
void claim_unlinked(struct file *f)
{
    file_set_unlinked(f, true);
    bool open = pfs_is_open(f);
    tell_borrowers(f);
    store_set_deleted(f);
    claim_give_back(f);
    if (!open && !has_claim(f))
        pfs_drop(f);
}

void claim_drop_unlinked(struct file *f)
{
    if (file_is_unlinked(f) && pfs_open_ends(f))
        claim_unlinked(f);
}
