/* recover.c - what a dead daemon left in the cache directory: queued like any other dirty file.
 *
 * Files that were dirty before a power loss and not covered by fsync are suspect.  The store has put
 * them aside and named them (store_each_suspect).  Here they are counted, and stay on the dirty list
 * (names.c).  Modes that a flush had raised are restored.
 */
#include "flush/flush_int.h"
#include "flush/flush_recover.h"
#include "flush/names.h"
#include "flush/queue.h"
#include "placement/pfs/pfs_write.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/marks.h"
#include "transport/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct found {
    uint64_t files, bytes, suspects;
};

static void restore_mode(struct file *f)
{
    int err = pfs_restore_mode(f);
    if (!err)
        return;
    char *path = file_path(f);
    log_warn("the mode that a flush had changed could not be restored (%s): %s: tried again with "
             "its next flush",
             strerror(-err), path);
    free(path);
}

static int count_suspect(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    struct found *found = arg;
    (void)fid;
    (void)path;
    (void)bytes;
    found->suspects += why == UNFLUSHED_SUSPECT;
    return 0;
}

struct searched {
    struct fid fid;
    bool found;
};

static int is_it(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    struct searched *s = arg;
    (void)path;
    (void)bytes;
    (void)why;
    s->found |= fid_eq(s->fid, fid);
    return 0;
}

static bool is_suspect(struct fid fid)
{
    struct searched s = {fid, false};
    return !store_each_suspect(is_it, &s) && s.found;
}

static void say_lost(const char *path, const char *what)
{
    log_error("power loss: %s: %s", path, what);
}

/* The cache has the file as it was at an fsync, and nothing there shows that it had changed since.
 * Both times must differ: a rename changes the ctime alone, and utimens may set the mtime to anything. */
static bool is_older(const struct file_info *info, const struct dirty_name *listed)
{
    return info->ctime_ns < listed->ctime_ns && info->mtime_ns != listed->mtime_ns;
}

static int name_lost(void *arg, const struct dirty_name *listed)
{
    (void)arg;
    struct file_info info = {.dirty = false};
    struct file *f = file_find(listed->fid);
    if (f) {
        store_info(f, &info);
        file_put(f);
    }
    if (is_suspect(listed->fid))
        return 0;
    if (!info.dirty)
        say_lost(listed->path,
                 "it was not on the PFS, and nothing of it is left in the cache: what "
                 "was written to it last is lost");
    else if (!info.loss_told && is_older(&info, listed))
        say_lost(listed->path,
                 "what was written to it after its last fsync is lost: kept as fsynced");
    return 0;
}

/* A power loss may have destroyed all records of a file, or of its last changes.  The list
 * that the last daemon left in the session directory (names.c) still names it, until the list is written
 * again. */
static void name_all_lost(void)
{
    char dir[64];
    if (!store_lost_power() || session_dirfd() < 0)
        return;
    snprintf(dir, sizeof(dir), "/proc/self/fd/%d/..", session_dirfd());
    int err = session_each_dirty_of(dir, store_node_id(), name_lost, NULL);
    if (err)
        log_error(
            "after a power loss: the list of files that were not on the PFS cannot be read: %s: "
            "files that were lost as a whole are not named",
            strerror(-err));
}

static int take_up(void *arg, struct file *f)
{
    struct found *found = arg;
    struct file_info info;
    restore_mode(f);
    store_info(f, &info);
    if (info.dirty) {
        lock_take(&flush.lock); /* recovered once before, it is on a list */
        struct flush_item *it = item_of(f);
        if (!it->queued)
            it->policy = info.policy <= FLUSH_POLICIES ? info.policy : 0;
        lock_drop(&flush.lock);
        queue_add(f);
        found->files++;
        found->bytes += info.dirty_bytes;
    }
    return 0;
}

int flush_recover(void)
{
    struct found found = {0, 0, 0};
    name_all_lost(); /* first: files that are queued may be flushed, and clean, at once */
    int err = store_each_claimed(take_up, &found);
    if (err)
        return err;
    names_go();
    if (found.files) {
        char text[32];
        log_warn("recovered: %llu files with %s that the last daemon had not flushed",
                 (unsigned long long)found.files, size_format(found.bytes, text, sizeof(text)));
    }
    err = store_each_suspect(count_suspect, &found);
    if (found.suspects)
        log_error("%llu files are suspect after a power loss: kept in %s/suspect, not flushed",
                  (unsigned long long)found.suspects, store_dir());
    return err;
}
