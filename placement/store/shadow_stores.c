/* shadow_stores.c - what processes store into a shadow by a mapping, and how it becomes the file's.
 *
 * The kernel tells nobody of a store.  So the hash of each page is kept, as this node knows the page: a page that has another
 * one was stored into.
 *
 *     page as known --a store--> it has another hash --shadow_stores_take--> put (fs/stores.c writes it into the file)
 *           '--a change that this node makes or is told of--> the new hash; after a store: 0, so that the store is still found
 *
 * A data file's ctime moves with the first store into a page since the page was written back.  So pages are compared only if it
 * has moved, and all are written back before that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "placement/store/kernel_io.h"
#include "placement/store/shadow_int.h"
#include "placement/store/store_int.h"

#define TAKE_MAX ((size_t)64 * PAGE) /* bytes of one put */

/* ---- begin ---- */

int shadow_stores_begin(struct file *f)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return -ENOENT;
    lock_take(&s->lock);
    shadow_pages_begin(s);
    lock_drop(&s->lock);
    shadow_put(s);
    return 0;
}

bool shadow_stores_may_be(struct file *f)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return false;
    lock_take(&s->lock);
    bool may = s->stores.hashes;
    lock_drop(&s->lock);
    shadow_put(s);
    return may;
}

/* ---- what was stored ---- */

/* With s->lock.  1: there may be stores since the last look, and each store from now on moves the ctime again.  0: there are none.
 * -errno */
static int look(struct shadow *s)
{
    struct shadow_stores *t = &s->stores;
    struct timespec now;
    struct stat st;
    if (!t->hashes)
        return 0;
    if (fstat(s->fd, &st))
        return -errno;
    if (t->seen_all && st.st_ctim.tv_sec == t->seen.tv_sec && st.st_ctim.tv_nsec == t->seen.tv_nsec)
        return 0;
    t->seen = st.st_ctim;
    clock_gettime(CLOCK_REALTIME, &now);
    /* a younger one may be that of a later store, too */
    t->seen_all = ns_of_time(now.tv_sec, now.tv_nsec) - ns_of_time(st.st_ctim.tv_sec, st.st_ctim.tv_nsec) > STORE_GRAIN_NS;
    if (sync_file_range(s->fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER))
        t->seen_all = false;
    return 1;
}

/* With s->lock.  Of the bytes at off, n of which are in buf: the first pages that were stored into, one after the other, which
 * count as known from now on.  How many bytes; *at: where in buf. */
static size_t first_stored(struct shadow *s, const char *buf, size_t n, uint64_t off, size_t *at)
{
    struct shadow_stores *t = &s->stores;
    size_t len = 0;
    for (size_t k = 0; k < n; k += PAGE) {
        size_t in = MIN(n - k, (size_t)PAGE);
        uint64_t page = (off + k) / PAGE, hash = shadow_page_hash(buf + k, in);
        bool stored = page < t->pages && hash != t->hashes[page];
        if (!stored && len)
            break;
        if (!stored)
            continue;
        if (!len)
            *at = k;
        t->hashes[page] = hash;
        len += in;
    }
    return len;
}

/* With s->lock: they could not be put. */
static void not_put(struct shadow *s, size_t len, uint64_t off)
{
    struct shadow_stores *t = &s->stores;
    for (uint64_t p = off / PAGE; p < MIN((off + len + PAGE - 1) / PAGE, t->pages); p++)
        t->hashes[p] = 0;
    t->seen_all = false;
}

static int put_stored(struct shadow *s, const char *buf, size_t len, uint64_t off, shadow_store_fn put, void *arg)
{
    int err = put(arg, buf, len, off);
    if (!err)
        return 0;
    lock_take(&s->lock);
    not_put(s, len, off);
    lock_drop(&s->lock);
    return err;
}

static int take_all(struct shadow *s, shadow_store_fn put, void *arg)
{
    char *buf = xmalloc(TAKE_MAX);
    uint64_t off = 0;
    int err = 0;
    for (;;) {
        size_t at = 0;
        lock_take(&s->lock);
        ssize_t n = pread(s->fd, buf, TAKE_MAX, (off_t)off);
        err = n < 0 ? -errno : 0;
        size_t len = n > 0 ? first_stored(s, buf, (size_t)n, off, &at) : 0;
        lock_drop(&s->lock);
        if (n <= 0)
            break;
        err = len ? put_stored(s, buf + at, len, off + at, put, arg) : 0;
        if (err)
            break;
        off += len ? (at + len + PAGE - 1) / PAGE * PAGE : (size_t)n;
        if (off % PAGE)
            break; /* the end */
    }
    free(buf);
    return err;
}

int shadow_stores_take(struct file *f, shadow_store_fn put, void *arg)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return 0;
    struct shadow_stores *t = &s->stores;
    lock_take(&s->lock);
    while (t->taking)
        lock_wait(&s->lock, &t->taken, 0);
    int err = look(s);
    bool any = t->taking = err > 0;
    lock_drop(&s->lock);
    if (any)
        err = take_all(s, put, arg);
    lock_take(&s->lock);
    if (any)
        t->taking = false;
    if (err)
        t->seen_all = false; /* the next call looks at all pages again */
    pthread_cond_broadcast(&t->taken);
    lock_drop(&s->lock);
    shadow_put(s);
    return err;
}

/* ---- the end ---- */

/* With s->lock.  This process's own descriptor, which can write, would count. */
static bool lease_is_given(struct shadow *s)
{
    char path[sizeof("/proc/self/fd/") + 10];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
    int read_only = open(path, O_RDONLY | O_CLOEXEC);
    if (read_only < 0)
        return false;
    close(s->fd);
    bool given = !fcntl(read_only, F_SETLEASE, F_RDLCK);
    if (given)
        fcntl(read_only, F_SETLEASE, F_UNLCK);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", read_only);
    s->fd = open(path, O_RDWR | O_CLOEXEC);
    if (s->fd < 0) { /* from here on its changes fail, which is logged */
        s->fd = read_only;
        return given;
    }
    close(read_only);
    return given;
}

bool shadow_stores_are_over(struct file *f)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return true;
    lock_take(&s->lock);
    bool over = lease_is_given(s);
    lock_drop(&s->lock);
    shadow_put(s);
    return over;
}
