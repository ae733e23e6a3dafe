/* recover.c - what a dead daemon left in the cache directory: queued like any other dirty file.
 *
 * Files that were dirty before a power loss and not covered by fsync are suspect: the store has set
 * them aside and named them (store_each_suspect); here they are counted, and stay on the dirty list
 * (names.c).  Modes that a flush had raised are given back.
 */
#include "flush/flush_int.h"

#include "placement/pfs_data.h"
#include "placement/store.h"

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

static int count_suspect(void *arg, struct fid fid, const char *path, uint64_t bytes, bool suspect)
{
    struct found *found = arg;
    (void)fid;
    (void)path;
    (void)bytes;
    found->suspects += suspect;
    return 0;
}

static int take_up(void *arg, struct file *f)
{
    struct found *found = arg;
    struct file_info info;
    restore_mode(f);
    store_info(f, &info);
    if (info.dirty) {
        queue_add(f);
        found->files++;
        found->bytes += info.dirty_bytes;
    }
    return 0;
}

int flush_recover(void)
{
    struct found found = {0, 0, 0};
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
