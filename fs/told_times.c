/* told_times.c - the times of a file that applications are told.
 *
 * A flush moves the PFS's ctime, and where the PFS keeps coarser times, or refuses to set them, its mtime.
 * Applications are told the times from before the flush, as long as the PFS's file is what the flush has made of it
 * (docs/protocol.md, "Times that are told").  Of the version that the PFS has, they are told, in this order:
 *
 *     what was told of it before by this node (inode.told)
 *     what the home was told by the claimant that gave the file back in this version
 *     what this node's cache has in its record of this version
 *     what a claimant said, if the PFS has just that now: the flush that came in between has moved ctime
 *     the version's own times
 */
#include "fs/told_times.h"

#include <stdlib.h>

#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

static bool is_same_file_state(const struct stat *a, const struct stat *b)
{
    return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid &&
           a->st_nlink == b->st_nlink && a->st_size == b->st_size;
}

/* pfs: the PFS's own word. */
static bool was_flushed_from(const struct stat *word, const struct stat *pfs)
{
    return word->st_nlink && is_same_file_state(word, pfs) &&
           time_is_kept(ns_of(&pfs->st_mtim), ns_of(&word->st_mtim)) &&
           ns_of(&word->st_ctim) < ns_of(&pfs->st_ctim);
}

bool told_times_named(const struct location *loc, const struct version *v)
{
    return loc && loc->where == WHERE_PFS && (loc->known == 1 || loc->known == 2) &&
           version_eq(&loc->version, v);
}

/* False also if nothing else than the version's own times was told. */
static bool record_tells(struct fid fid, const struct version *v, struct told *out)
{
    struct file_info info = {.base_known = false};
    struct file *f = file_find(fid);
    if (f) {
        store_info(f, &info);
        file_put(f);
    }
    if (!info.base_known || info.dirty || !version_eq(&info.base, v))
        return false;
    *out = (struct told){info.mtime_ns, info.ctime_ns};
    return out->mtime_ns != v->mtime_ns || out->ctime_ns != v->ctime_ns;
}

struct told told_times_before(const struct inode *i, const struct version *v)
{
    if (i->told.known && version_eq(&i->told.version, v))
        return i->told.told;
    return (struct told){v->mtime_ns, v->ctime_ns};
}

void told_times_note(struct inode *i, const struct version *v, const struct told *told)
{
    lock_take(&i->lock);
    if (!i->told.known || v->ctime_ns >= i->told.version.ctime_ns)
        i->told = (struct told_of){*v, *told, true};
    lock_drop(&i->lock);
}

/* What was told of the file by another node id of it (inode_retire) holds for this one, too. */
static void learn_from(struct inode *i, struct inode *other)
{
    lock_take(&other->lock);
    struct told_of told = other->told;
    struct stat word = other->word;
    int64_t moved_ns = other->moved_ns;
    lock_drop(&other->lock);
    if (told.known)
        told_times_note(i, &told.version, &told.told);
    lock_take(&i->lock);
    i->moved_ns = MAX(i->moved_ns, moved_ns);
    if (word.st_nlink && ns_of(&word.st_ctim) > ns_of(&i->word.st_ctim))
        i->word = word;
    lock_drop(&i->lock);
}

static void learn_what_was_told(struct inode *i)
{
    if (!i->others) /* nor is there another node id */
        return;
    struct inode **all = inode_all_of(i->fid);
    for (struct inode **at = all; *at; at++) {
        if (*at != i)
            learn_from(i, *at);
        inode_put(*at);
    }
    free(all);
}

static struct told what_is_told(struct inode *i, const struct stat *pfs, const struct version *v,
                                const struct location *loc)
{
    lock_take(&i->lock);
    struct told told = told_times_before(i, v);
    bool known = i->told.known && version_eq(&i->told.version, v);
    struct stat word = i->word;
    int64_t moved_ns = i->moved_ns;
    lock_drop(&i->lock);
    if (known)
        return told;
    if (told_times_named(loc, v))
        told = loc->told;
    else if (!record_tells(i->fid, v, &told) && was_flushed_from(&word, pfs))
        told = (struct told){ns_of(&word.st_mtim), ns_of(&word.st_ctim)};
    told.ctime_ns = MAX(told.ctime_ns, moved_ns);
    told_times_note(i, v, &told);
    return told;
}

/* Inode locked.  What a claimant says may be older than what this node has told of the same version, if the home had
 * forgotten that a flush had moved the ctime. */
static int64_t latest_ctime(const struct inode *i, int64_t ctime_ns, const struct version *pfs)
{
    bool told = i->told.known && version_eq(&i->told.version, pfs);
    return MAX(MAX(ctime_ns, i->moved_ns), told ? i->told.told.ctime_ns : INT64_MIN);
}

void told_times_word(struct inode *i, struct stat *st, const struct version *pfs)
{
    learn_what_was_told(i);
    lock_take(&i->lock);
    st->st_ctim = time_of_ns(latest_ctime(i, ns_of(&st->st_ctim), pfs));
    i->word = *st;
    lock_drop(&i->lock);
}

void told_times_pfs(struct inode *i, struct stat *st, const struct version *pfs, const struct location *loc)
{
    learn_what_was_told(i);
    struct told told = what_is_told(i, st, pfs, loc);
    st->st_mtim = time_of_ns(told.mtime_ns);
    st->st_ctim = time_of_ns(told.ctime_ns);
}

bool told_times_are(const struct stat *st, const struct version *v, const struct told *told)
{
    return (uint64_t)st->st_size == v->size && ns_of(&st->st_mtim) == told->mtime_ns &&
           ns_of(&st->st_ctim) == told->ctime_ns;
}
