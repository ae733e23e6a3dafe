/* shadow.c - the data file of passthrough descriptors that the store has left (shadow.h).
 *
 * Locks: f->lock for the pointer.  Writes go by a reference, without a lock: the caller puts those of one file in
 * order (tell.c).
 */
#include "placement/store/shadow_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/store/datafile_kernel_io.h"
#include "placement/store/store_int.h"

struct shadow *shadow_get(struct file *f)
{
    if (!__atomic_load_n(&f->shadow, __ATOMIC_RELAXED))
        return NULL;
    lock_take(&f->lock);
    struct shadow *s = f->shadow;
    if (s)
        s->refs++;
    lock_drop(&f->lock);
    return s;
}

void shadow_put(struct shadow *s)
{
    if (!s || --s->refs)
        return;
    close(s->fd);
    free(s->stores.hashes);
    pthread_cond_destroy(&s->stores.taken);
    lock_destroy(&s->lock);
    free(s);
}

static void say(struct file *f, const char *what, int err)
{
    static _Atomic uint64_t said;
    if (!log_every(&said, 10000))
        return;
    char *path = file_path(f);
    log_warn("the cache's disk: %s: a file that was open before another node changed it (%s): %s: its descriptors "
             "may read older bytes",
             path ? path : "?", what, strerror(err));
    free(path);
}

/* ---- begin and end ---- */

bool shadow_is(struct file *f)
{
    return __atomic_load_n(&f->shadow, __ATOMIC_RELAXED) != NULL;
}

struct shadow *shadow_make(struct file *f)
{
    int fd, err = datafile_open_to_write(f, &fd);
    if (err) {
        log_warn("the cache's disk: a data file in use cannot be opened: %s: its descriptors may read older bytes",
                 strerror(-err));
        return NULL;
    }
    struct shadow *s = xcalloc(1, sizeof(*s));
    s->refs = 1;
    s->fd = fd;
    lock_init(&s->lock, RANK_LEAF);
    lock_cond_init(&s->stores.taken);
    return s;
}

void shadow_is_of(struct file *f, struct shadow *s)
{
    const struct file_core *c = core(f);
    s->followed = c->flags & CORE_BASE && !(c->flags & CORE_RACY);
    s->version = c->base;
}

void shadow_take(struct file *f, struct shadow *s)
{
    if (!s)
        return;
    s->life = f->kernel_io.life;
    s->opens = f->kernel_io.opens;
    f->shadow = s;
}

bool shadow_join(struct file *f, unsigned life)
{
    lock_take(&f->lock);
    struct shadow *s = f->shadow;
    bool is = s && s->life == life;
    if (is)
        s->opens++;
    lock_drop(&f->lock);
    return is;
}

void shadow_leave(struct file *f, unsigned life)
{
    lock_take(&f->lock);
    struct shadow *s = f->shadow;
    bool last = s && s->life == life && !--s->opens;
    if (last)
        f->shadow = NULL;
    lock_drop(&f->lock);
    if (last)
        shadow_put(s);
}

void shadow_end(struct file *f)
{
    struct shadow *s = f->shadow;
    f->shadow = NULL;
    shadow_put(s);
}

/* ---- what it has ---- */

static void no_version(struct file *f, struct shadow *s)
{
    lock_take(&f->lock);
    s->known = false;
    lock_drop(&f->lock);
}

/* A change begins, which end ends; NULL: there is no shadow. */
static struct shadow *begin(struct file *f)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return NULL;
    no_version(f, s);
    lock_take(&s->lock);
    s->changes++;
    return s;
}

static void end(struct file *f, struct shadow *s, const char *what, int err)
{
    lock_drop(&s->lock);
    if (err)
        say(f, what, err);
    shadow_put(s);
}

static int put_bytes(int fd, const void *buf, size_t len, uint64_t off)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, (const char *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno != EINTR)
            return errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Of a shadow that processes store into: one page, or a part of it.  Bytes that it is known to have are no news: they come back
 * from where they were put, and the process may have stored newer ones since.  fill: what was stored stays in any case. */
static int put_page(struct shadow *s, const char *buf, size_t len, uint64_t off, bool fill)
{
    if (shadow_pages_are_known(s, buf, len, off))
        return 0;
    shadow_pages_before(s, off, len);
    int err = fill && shadow_pages_stored(s, off) ? 0 : put_bytes(s->fd, buf, len, off);
    shadow_pages_after(s);
    return err;
}

static int put_pages(struct shadow *s, const char *buf, size_t len, uint64_t off, bool fill)
{
    if (!s->stores.hashes)
        return put_bytes(s->fd, buf, len, off);
    int err = 0;
    for (size_t done = 0, n; done < len && !err; done += n) {
        n = MIN(len - done, PAGE - (off + done) % PAGE);
        err = put_page(s, buf + done, n, off + done, fill);
    }
    return err;
}

void shadow_write(struct file *f, const void *buf, size_t len, uint64_t off)
{
    struct shadow *s = begin(f);
    if (s)
        end(f, s, "write", put_pages(s, buf, len, off, false));
}

void shadow_zero(struct file *f, uint64_t off, uint64_t len)
{
    struct shadow *s = begin(f);
    if (!s)
        return;
    shadow_pages_before(s, off, len);
    int err = fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len) ? errno : 0;
    shadow_pages_after(s);
    end(f, s, "punch", err);
}

void shadow_resize(struct file *f, uint64_t size)
{
    struct shadow *s = begin(f);
    if (!s)
        return;
    shadow_pages_before(s, size, 0);
    int err = ftruncate(s->fd, (off_t)size) ? errno : 0;
    shadow_pages_after(s);
    end(f, s, "truncate", err);
}

uint64_t shadow_changes(struct file *f)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return 0;
    lock_take(&s->lock);
    uint64_t changes = s->changes;
    lock_drop(&s->lock);
    shadow_put(s);
    return changes;
}

int shadow_fill(struct file *f, const void *buf, size_t len, uint64_t off, uint64_t size, uint64_t changes)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return 0;
    lock_take(&s->lock);
    int err = s->changes == changes ? -put_pages(s, buf, len, off, true) : -EAGAIN;
    if (!err && off + len >= size) {
        shadow_pages_before(s, size, 0);
        err = ftruncate(s->fd, (off_t)size) ? -errno : 0;
        shadow_pages_after(s);
    }
    lock_drop(&s->lock);
    shadow_put(s);
    return err;
}

/* changed: perhaps by this node since.  True also without a shadow. */
static bool has(struct file *f, const struct version *v, bool changed)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return true;
    lock_take(&f->lock);
    bool has = (changed ? s->followed : s->known) && version_eq(&s->version, v);
    lock_drop(&f->lock);
    shadow_put(s);
    return has;
}

bool shadow_is_at(struct file *f, const struct version *v)
{
    return has(f, v, false);
}

bool shadow_follows(struct file *f, const struct version *base)
{
    return has(f, base, true);
}

bool shadow_follows_claim(struct file *f, uint64_t node, uint64_t begun)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return true;
    lock_take(&f->lock);
    bool follows = (s->followed && version_mark(&s->version) == begun) || (s->claimant == node && s->begun == begun);
    lock_drop(&f->lock);
    shadow_put(s);
    return follows;
}

void shadow_now_of_claim(struct file *f, uint64_t node, uint64_t begun)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return;
    lock_take(&f->lock);
    s->claimant = node;
    s->begun = begun;
    lock_drop(&f->lock);
    shadow_put(s);
}

void shadow_now_at(struct file *f, const struct version *v)
{
    struct shadow *s = shadow_get(f);
    if (!s)
        return;
    lock_take(&f->lock);
    s->known = s->followed = true;
    s->version = *v;
    lock_drop(&f->lock);
    shadow_put(s);
}
