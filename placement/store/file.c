/* file.c - the table of files in use: one object per fid.
 *
 * There are SHARDS chained hash tables, each under a lock (RANK_FILES), so that opens and closes run beside
 * each other: a small file's object is made at its open, and another thread frees it after its close.  The
 * last put takes the file down without that lock, since it may have to close descriptors and remove the data
 * file.  Meanwhile the object stays in the table as "going", and a thread that asks for the fid waits.  So
 * there is never a second object, or a new record, beside it.
 */
#include "placement/store/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "placement/store/datafile.h"
#include "placement/store/file_int.h"
#include "placement/store/kernel_io_store.h"
#include "placement/store/pages.h"
#include "placement/store/remover.h"
#include "placement/store/state.h"
#include "placement/store/state_table.h"
#include "placement/store/store_int.h"

#define SHARDS      16 /* a power of two */
#define BUCKETS_MIN 64 /* of each; a power of two */

struct shard {
    struct lock lock; /* RANK_FILES: its chains; refs and going of its files */
    pthread_cond_t gone;
    struct file **bucket;
    size_t mask, count;
};

/* file_end.c's functions: take_down takes a file down after its last put; give_back gives back a file that
 * waits for that. */
static void (*take_down)(struct file *f);
static bool (*give_back)(struct file *f);

void file_on_end(void (*down)(struct file *f), bool (*back)(struct file *f))
{
    take_down = down;
    give_back = back;
}

static struct shard shards[SHARDS];
static pthread_once_t shards_once = PTHREAD_ONCE_INIT;

static void shards_init(void)
{
    for (unsigned n = 0; n < SHARDS; n++) {
        struct shard *s = &shards[n];
        lock_init(&s->lock, RANK_FILES);
        lock_cond_init(&s->gone);
        s->mask = BUCKETS_MIN - 1;
        s->bucket = xcalloc(BUCKETS_MIN, sizeof(*s->bucket));
    }
}

static struct shard *shard_of(struct fid fid)
{
    pthread_once(&shards_once, shards_init);
    return &shards[fid.hi & (SHARDS - 1)];
}

/* ---- a shard's table; its lock is held ---- */

static struct file **bucket_of(struct shard *s, struct fid fid)
{
    return &s->bucket[(fid.lo ^ fid.hi >> 17 ^ fid.lo >> 31) & s->mask];
}

static void grow(struct shard *s)
{
    struct file **old = s->bucket;
    size_t n = s->mask + 1;
    s->mask = n * 2 - 1;
    s->bucket = xcalloc(n * 2, sizeof(*s->bucket));
    for (size_t i = 0; i < n; i++)
        for (struct file *f = old[i], *next; f; f = next) {
            next = f->hash_next;
            struct file **b = bucket_of(s, f->fid);
            f->hash_next = *b;
            *b = f;
        }
    free(old);
}

static void table_add(struct shard *s, struct file *f)
{
    if (s->count++ > s->mask)
        grow(s);
    struct file **b = bucket_of(s, f->fid);
    f->hash_next = *b;
    *b = f;
}

static void table_remove(struct shard *s, struct file *f)
{
    struct file **p = bucket_of(s, f->fid);
    while (*p != f)
        p = &(*p)->hash_next;
    *p = f->hash_next;
    s->count--;
}

static struct file *lookup(struct shard *s, struct fid fid)
{
    struct file *f = *bucket_of(s, fid);
    while (f && !fid_eq(f->fid, fid))
        f = f->hash_next;
    return f;
}

/* Gives a reference to the file, or NULL.  If the file is going, waits until it is gone, or takes it down.
 * The lock is dropped meanwhile. */
static struct file *table_find(struct shard *s, struct fid fid)
{
    struct file *f;
    while ((f = lookup(s, fid)) && f->going) {
        if (!give_back(f)) {
            lock_wait(&s->lock, &s->gone, 0);
            continue;
        }
        lock_drop(&s->lock);
        take_down(f);
        lock_take(&s->lock);
    }
    if (f)
        f->refs++;
    return f;
}

/* ---- objects ---- */

static struct file *file_new(struct fid fid, struct file_record *r)
{
    struct file *f = xcalloc(1, sizeof(*f));
    char path[STATE_PATH_MAX + 1];
    f->fid = fid;
    f->refs = 1;
    f->rec = r;
    f->data_fd = -1;
    f->hollow = pages_hollow(r);
    f->change = unlike_u64() | 1;
    f->synced = r->covered.check; /* by the last daemon */
    f->shared = r->lent;
    f->cover.err = r->unsynced ? -EIO : 0;
    datafile_begin(f);
    if (state_path_get(r, path))
        f->path = xstrdup(path);
    lock_init(&f->lock, RANK_FILE);
    lock_cond_init(&f->changed);
    return f;
}

static void part_free(struct file_part *p)
{
    if (!p)
        return;
    if (p->ops->end)
        p->ops->end(p);
    free(p);
}

struct file_part *file_part_make(struct file *f, enum file_part_name which,
                                 const struct file_part_ops *ops)
{
    struct file_part *p = xcalloc(1, ops->size), *there = NULL;
    p->ops = ops;
    if (ops->begin)
        ops->begin(f, p);
    if (atomic_compare_exchange_strong(&f->parts[which], &there, p))
        return p;
    part_free(p); /* another thread was quicker */
    return there;
}

static void tell_unused(struct file *f)
{
    for (unsigned n = 0; n < FILE_PARTS; n++) {
        struct file_part *p = f->parts[n];
        if (p && p->ops->unused)
            p->ops->unused(f, p);
    }
}

static void file_free(struct file *f)
{
    for (unsigned n = 0; n < FILE_PARTS; n++)
        part_free(f->parts[n]);
    lock_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
    free(f->path);
    free(f);
}

/* With the shard's lock: the object from its table, or made from its record; NULL if there is
 * neither.  make: makes the record, for which a slot is set aside; *made. */
static struct file *find_or_make(struct shard *s, struct fid fid, bool make, bool *made)
{
    struct file *f = table_find(s, fid);
    struct file_record *r = f ? NULL : state_file_find(fid);
    *made = !f && !r && make;
    if (*made)
        r = state_file_new(fid);
    if (r) {
        f = file_new(fid, r);
        table_add(s, f);
    }
    return f;
}

struct file *file_make(struct fid fid, bool *made)
{
    struct shard *s = shard_of(fid);
    lock_take(&s->lock);
    struct file *f = find_or_make(s, fid, true, made);
    lock_drop(&s->lock);
    return f;
}

struct file *file_find(struct fid fid)
{
    bool made;
    struct shard *s = shard_of(fid);
    lock_take(&s->lock);
    struct file *f = find_or_make(s, fid, false, &made);
    lock_drop(&s->lock);
    return f;
}

struct file *file_find_now(struct fid fid)
{
    bool made;
    struct shard *s = shard_of(fid);
    lock_take(&s->lock);
    struct file *f = lookup(s, fid);
    f = f && f->going ? NULL : find_or_make(s, fid, false, &made);
    lock_drop(&s->lock);
    return f;
}

struct file *file_find_used(struct fid fid)
{
    struct shard *s = shard_of(fid);
    lock_take(&s->lock);
    struct file *f = lookup(s, fid);
    if (f && f->going)
        f = NULL;
    else if (f)
        f->refs++;
    lock_drop(&s->lock);
    return f;
}

struct file *file_ref(struct file *f)
{
    struct shard *s = shard_of(f->fid);
    lock_take(&s->lock);
    f->refs++;
    lock_drop(&s->lock);
    return f;
}

bool file_drop(struct file *f)
{
    struct shard *s = shard_of(f->fid);
    lock_take(&s->lock);
    bool last = !--f->refs;
    f->going = last;
    lock_drop(&s->lock);
    if (last)
        tell_unused(f);
    return last;
}

void file_put(struct file *f)
{
    if (file_drop(f))
        take_down(f);
}

bool file_give_away(struct file *f, bool (*take)(struct file *f))
{
    struct shard *s = shard_of(f->fid);
    lock_take(&s->lock);
    bool taken = take(f);
    if (taken)
        pthread_cond_broadcast(&s->gone);
    lock_drop(&s->lock);
    return taken;
}

void file_forget(struct file *f)
{
    struct shard *s = shard_of(f->fid);
    lock_take(&s->lock);
    table_remove(s, f);
    pthread_cond_broadcast(&s->gone);
    lock_drop(&s->lock);
    file_free(f);
}
