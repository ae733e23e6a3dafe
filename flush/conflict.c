/* conflict.c - a file with unflushed data that somebody else has changed on the PFS.
 *
 *     what the PFS has is this node's own doing (made.h) -> it is flushed, as always
 *     changed, or another file has its name              -> what the application wrote is put beside
 *                                                           it, as NAME.eddy-conflict-NODE; the PFS's
 *                                                           file stays as it is
 *     its name is gone                                   -> it stays in the cache, and is named
 *     another node has removed it, as the log of moves
 *     says (transport/moves.h)                           -> it is dropped
 *     the dead daemon was removing it, and it is gone    -> it is dropped.  The PFS may still be
 *                                                           removing it: until it is flushed, each
 *                                                           run begins with a look at it
 *     an operator has forgotten it (eddy forget)         -> it is put beside, whatever the PFS has
 *
 * The files that a dead daemon left are looked at once, at the start, before any request is served.  A file
 * that cannot be looked at (the PFS has an error) is looked at again at the beginning of each of its runs.
 * So is a file whose last run has not ended in order: of such a file only a change counts, since this
 * session may be removing or replacing its name just now.  While it is open here, it is not put beside:
 * processes that have it open see it as it is.
 */
#include "flush/copy_aside.h"
#include "flush/copyout.h"
#include "flush/flush_recover.h"
#include "flush/made.h"
#include "flush/queue.h"
#include "placement/borrow.h"
#include "placement/borrow_flush.h"
#include "placement/claims/claim.h"
#include "placement/claims/claim_give.h"
#include "placement/claims/claim_forget.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_new.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_lend.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"
#include "transport/marks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum found { FOUND_SAME, FOUND_CHANGED, FOUND_REPLACED, FOUND_REMOVED, FOUND_FORGOTTEN };

static char *node_name;
static struct {
    struct lock lock; /* RANK_LEAF */
    struct flush_conflict *list;
    size_t n;
} said = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

/* ---- has it changed? ---- */

/* Has the PFS any page of the last change as it is here?  A page that the PFS file ends in goes on with zeros.  A change of the size
 * alone is there if it is seen. */
static int has_last_change(struct file *f, const struct file_info *info, const struct statx *stx,
                           bool *has)
{
    const struct file_trace *t = &info->trace;
    *has = !t->len && t->off == stx->stx_size;
    if (!t->len)
        return 0;
    size_t len = (size_t)MIN((uint64_t)t->len, info->size - MIN(t->off, info->size)), got = 0;
    char *here = xmalloc(2 * (len + 1)), *there = here + len + 1;
    int err = store_pread(f, here, len, t->off);
    if (!err)
        err = pfs_read(f, there, len, t->off, &got);
    if (!err && got < len)
        memset(there + got, 0, len - got);
    for (size_t at = 0; !err && !*has && at < MIN(len, got); at += PAGE)
        *has = !memcmp(here + at, there + at, MIN(len - at, (size_t)PAGE));
    free(here);
    return err;
}

static int compare(struct file *f, const struct statx *stx, enum found *found)
{
    struct file_info info;
    struct version now = version_of(stx);
    store_info(f, &info);
    enum made made = made_of(&info, &now, session_clock_offset_ns());
    bool has = made == MADE_HERE;
    int err = made == MADE_BY_BYTES ? has_last_change(f, &info, stx, &has) : 0;
    if (err)
        return err;
    *found = has ? FOUND_SAME : FOUND_CHANGED;
    if (has)
        store_flush_left(f, &now);
    return 0;
}

/* A run has failed since the start, or was stopped. */
static int look_again(struct file *f, enum found *found, struct statx *stx)
{
    *found = FOUND_SAME;
    return pfs_file_stat(f, stx) || !stx->stx_nlink ? 0 : compare(f, stx, found);
}

/* Its name is gone, or (replaced) another file's. */
static int look_why_missing(struct file *f, bool replaced, enum found *found)
{
    struct file_info info;
    store_info(f, &info);
    if (info.leaving || pfs_was_removed(f))
        *found = FOUND_REMOVED;
    else if (replaced && !pfs_name_was_removed(f)) /* under a name that is not known, or without one, it has not changed */
        *found = FOUND_REPLACED;
    else
        return -ENOENT;
    return 0;
}

static int look(struct file *f, enum found *found, struct statx *stx)
{
    if (!claim_is_forgotten(f) && !item_of(f)->unchecked)
        return look_again(f, found, stx);
    int err = pfs_file_stat(f, stx);
    if (claim_is_forgotten(f)) {
        *found = FOUND_FORGOTTEN;
        return 0;
    }
    bool replaced = err == -ESTALE; /* another file has its name */
    if (replaced || (err == -ENOENT && !item_of(f)->tries))
        err = pfs_find_near(f, stx);
    if (err)
        return err == -ENOENT ? look_why_missing(f, replaced, found) : err;
    return compare(f, stx, found);
}

/* ---- beside it ---- */

static void remember(char *path, char *beside, uint64_t missing)
{
    lock_take(&said.lock);
    said.list = xrealloc(said.list, (said.n + 1) * sizeof(*said.list));
    said.list[said.n++] = (struct flush_conflict){path, beside, missing};
    lock_drop(&said.lock);
}

static const char *when(struct file *f, enum found found)
{
    if (fid_is_loan(f->fid))
        return "its claimant was away";
    if (found == FOUND_FORGOTTEN)
        return "this node was away";
    return item_of(f)->unchecked ? "no daemon ran" : "its flush had failed";
}

static void say(struct file *f, enum found found, char *beside, uint64_t missing)
{
    static const char *const what[] = {[FOUND_CHANGED] = "was changed on the PFS",
                                       [FOUND_REPLACED] = "was replaced on the PFS",
                                       [FOUND_FORGOTTEN] = "was forgotten by an operator"};
    char *path = file_path(f);
    bool part = copy_aside_is_part(f);
    log_error("conflict: %s: %s while %s, and this node has unflushed data of it: the "
              "file on the PFS stays as it is, this node's data is in %s",
              path, what[found], when(f, found), beside);
    if (missing && !part)
        log_error("conflict: %s: %llu bytes of it were only in the version that is gone from the "
                  "PFS: holes are in their place",
                  beside, (unsigned long long)missing);
    if (part)
        log_error("conflict: %s: it has only what is on this node: other nodes have other parts of the file", beside);
    count(conflicts, 1);
    remember(path, beside, missing);
}

static int write_beside(struct file *f, enum found found, const struct statx *like)
{
    struct pfs_new to;
    struct file_info info;
    char suffix[300], *path = file_path(f), *beside = NULL;
    snprintf(suffix, sizeof(suffix), ".eddy-conflict-%s", node_name);
    int err = path ? pfs_new_begin(&to, pfs_root_fd(), path, node_name, f->fid, false) : -ENOENT;
    free(path);
    if (err)
        return err;
    struct copying c = {.f = f, .to = &to};
    err = copy_aside(&c);
    store_info(f, &info);
    struct pfs_new_attr attr = {info.size, info.mtime_ns, found == FOUND_CHANGED ? like : NULL};
    if (err)
        pfs_new_abort(&to);
    else
        err = pfs_new_end(&to, &attr, suffix, true, &beside);
    if (!err)
        say(f, found, beside, c.missing);
    return err;
}

/* This node has nothing to flush of this file any more.  Of one without a name other nodes may have descriptors: the end of the
 * claim tells them, and what is here stays as long as they need it. */
static void let_go(struct file *f, enum found found)
{
    if (found == FOUND_REMOVED)
        file_set_unlinked(f, true);
    store_set_deleted(f);
    if (found != FOUND_REMOVED)
        store_set_reborn(f); /* if it fails: the next open tries again */
    pfs_drop(f);
}

static bool is_leaving(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return info.leaving;
}

/* Open here; or written for another node, or for a moment by a call that has no handle. */
static bool is_used(struct file *f)
{
    return pfs_is_open(f) || claim_has_writers(f);
}

/* No open begins meanwhile.  */
static int settle(struct file *f, enum found found, const struct statx *stx)
{
    int err = store_not_again(f); /* nor is it flushed into it after a power loss */
    if (!err && found != FOUND_REMOVED)
        err = write_beside(f, found, stx);
    if (err)
        return err;
    if (claim_is_forgotten(f))
        store_lend_void(f); /* else the claim could not be given back, and who has parts would flush them into the file */
    let_go(f, found);
    if (claim_is_forgotten(f))
        claim_forgotten_settled(f);
    return 0;
}

/* Who has it open goes on with it. */
static int settle_used(struct file *f, enum found found)
{
    if (found != FOUND_REMOVED)
        return -EBUSY;
    file_set_unlinked(f, true);
    store_set_deleted(f);
    return 0;
}

static int settle_alone(struct file *f, enum found found, const struct statx *stx)
{
    if (!claim_aside_begin(f))
        return -EBUSY;
    int err = is_used(f) ? settle_used(f, found) : settle(f, found, stx);
    claim_aside_end(f);
    return err;
}

/* Its file has lost its last name, and no process of this node has it open. */
static bool is_nobodys(struct file *loan)
{
    struct file *f = file_find_used(fid_real(loan->fid));
    bool open = f && pfs_is_open(f);
    if (f)
        file_put(f);
    return !open && pfs_was_removed(loan);
}

int conflict_loan(struct file *loan)
{
    borrow_void_begin(loan);
    int err = is_nobodys(loan) ? 0 : write_beside(loan, FOUND_FORGOTTEN, NULL);
    if (!err)
        borrow_void_end(loan);
    return err;
}

int conflict_check(struct file *f, bool *settled)
{
    struct statx stx;
    enum found found;
    *settled = false;
    int err = look(f, &found, &stx);
    if (!err && found != FOUND_SAME) {
        err = settle_alone(f, found, &stx);
        *settled = !err;
    }
    if (!err)
        item_of(f)->unchecked = !*settled && is_leaving(f);
    return err;
}

bool conflict_is_due(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    if (claim_is_forgotten(f))
        return true;
    return !info.lent && (info.flushing || item_of(f)->tries || item_of(f)->unchecked); /* borrowers change it, too */
}

/* ---- at the start ---- */

static int check_one(void *arg, struct file *f)
{
    bool settled;
    struct file_info info;
    (void)arg;
    store_info(f, &info);
    if (!info.dirty || info.lent || fid_is_loan(f->fid)) /* other nodes have changed it, too */
        return 0;
    item_of(f)->unchecked = true;
    int err = conflict_check(f, &settled);
    if (settled)
        claim_give_back(f);
    if (!err && !settled)
        pfs_keep_found(f); /* beyond the budget it is found by its path */
    if (err == -ENOENT) {
        char *path = file_path(f);
        log_warn("%s: is not on the PFS any more: this node's unflushed data of it stays in the "
                 "cache directory",
                 path);
        free(path);
    } else if (err && claim_is_forgotten(f)) { /* no open of it is served meanwhile (claim_is_void) */
        char *path = file_path(f);
        log_error("%s: was forgotten by an operator (eddy forget), and what this node has of it cannot be put beside it: %s: it "
                  "stays in the cache directory, and is tried again",
                  path, strerror(-err));
        free(path);
    } else if (err) {
        char *path = file_path(f);
        log_warn("%s: cannot see whether it was changed on the PFS (%s): it is looked at again "
                 "before its flush",
                 path, strerror(-err));
        free(path);
    }
    return 0;
}

int flush_check_recovered(const char *node)
{
    free(node_name);
    node_name = xstrdup(node);
    return store_each_claimed(check_one, NULL);
}

int flush_each_conflict(int (*cb)(void *arg, const struct flush_conflict *c), void *arg)
{
    int rc = 0;
    lock_take(&said.lock);
    size_t n = said.n;
    lock_drop(&said.lock);
    for (size_t i = 0; i < n && !rc; i++) {
        lock_take(&said.lock);
        struct flush_conflict c = said.list[i]; /* its strings stay */
        lock_drop(&said.lock);
        rc = cb(arg, &c);
    }
    return rc;
}
