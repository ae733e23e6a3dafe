/* file_path.c - finds a file by its fid; and the path that leads to it, a hint that is also in the record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/store/file_int.h"
#include "placement/store/space.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"

/* After a power loss, what fsync covered comes back under the path in its record.  That path must be whole,
 * and must not be the old one, whose slots are used again.  f->lock is dropped meanwhile. */
static void sync_path(struct file *f)
{
    int err = f->rec->covered.check ? store_sync_path(f) : 0;
    if (!err && f->rec->covered.check)
        err = store_sync_record(f);
    if (err)
        log_error("the cache's disk: writing the path of %s: %s", f->path, strerror(-err));
}

static void say_too_long(const char *path)
{
    log_warn("a file's new path has %zu bytes, more than %d: after a crash it would be found under the old one "
             "only: %.200s...",
             strlen(path), PATH_BYTES_MAX, path);
}

static void set_path(struct file *f, const char *path)
{
    uint32_t slots = state_path_slots(strlen(path)), used = 0;
    int err = space_reserve_files(slots);
    lock_take(&f->lock);
    if (!f->path || strcmp(f->path, path)) {
        if (!err)
            used = state_path_set(f->rec, path);
        free(f->path);
        f->path = xstrdup(path);
        if (!err)
            sync_path(f);
    }
    lock_drop(&f->lock);
    if (err)
        log_warn("%s: no room in the cache for its new path: after a crash it would be found under "
                 "the old one only",
                 path);
    else
        state_unreserve(SLAB_FILES, slots - used);
}

/* What this node has borrowed of the file is flushed by the same name. */
static void set_path_of_loan(struct file *f, const char *path)
{
    struct file *loan = fid_is_loan(f->fid) ? NULL : file_find_used(fid_of_loan(f->fid));
    if (!loan)
        return;
    set_path(loan, path);
    file_put(loan);
}

void file_set_path(struct file *f, const char *path)
{
    if (strlen(path) > PATH_BYTES_MAX) {
        say_too_long(path);
        return;
    }
    set_path(f, path);
    set_path_of_loan(f, path);
}

char *file_path(struct file *f)
{
    lock_take(&f->lock);
    char *path = xstrdup(f->path ? f->path : "");
    lock_drop(&f->lock);
    return path;
}

/* Takes the path that has just led to the file as its hint, unless the path is kept current anyway (the file
 * is dirty or claimed here). */
static void hint_path(struct file *f, const char *path)
{
    lock_take(&f->lock);
    bool use =
        !f->path || (!(core(f)->flags & (CORE_DIRTY | CORE_CLAIMED)) && strcmp(f->path, path));
    lock_drop(&f->lock);
    if (use)
        file_set_path(f, path);
}

int file_get(struct fid fid, const char *path, struct file **out)
{
    if (path && strlen(path) > PATH_BYTES_MAX)
        return -ENAMETOOLONG;
    struct file *f = file_find(fid);
    if (!f) {
        bool made;
        int err = space_reserve_files(1);
        if (err)
            return err;
        f = file_make(fid, &made);
        if (!made)
            state_unreserve(SLAB_FILES, 1);
    }
    if (path)
        hint_path(f, path);
    *out = f;
    return 0;
}
