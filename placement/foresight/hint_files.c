/* hint_files.c - the files that are hinted, by path and by fid; and what the store is to hear of them. */
#include "placement/foresight/hints_int.h"

#include <stdlib.h>
#include <string.h>

#include "transport/hash.h"

#define BUCKETS_MIN 1024u

/* Two tables of one size: it doubles when there are as many files as buckets. */
static struct {
    struct hinted **path, **fid;
    size_t buckets, n;
} files;

static struct {
    struct hint_news *v; /* a ring */
    size_t head, n, cap;
} news;

static size_t fid_bucket(struct fid fid)
{
    return (fid.lo ^ fid.hi) & (files.buckets - 1);
}

static void link_path(struct hinted *h)
{
    struct hinted **at = &files.path[h->hash & (files.buckets - 1)];
    h->path_next = *at;
    *at = h;
}

static void link_fid(struct hinted *h)
{
    if (fid_is_zero(h->fid))
        return;
    struct hinted **at = &files.fid[fid_bucket(h->fid)];
    h->fid_next = *at;
    *at = h;
}

static void unlink_fid(struct hinted *h)
{
    if (fid_is_zero(h->fid))
        return;
    struct hinted **at = &files.fid[fid_bucket(h->fid)];
    while (*at != h)
        at = &(*at)->fid_next;
    *at = h->fid_next;
}

static void grow(void)
{
    struct hinted **old = files.path;
    size_t n = files.buckets;
    files.buckets = n ? 2 * n : BUCKETS_MIN;
    free(files.fid);
    files.path = xcalloc(files.buckets, sizeof(struct hinted *));
    files.fid = xcalloc(files.buckets, sizeof(struct hinted *));
    for (size_t i = 0; i < n; i++)
        for (struct hinted *h = old[i], *next; h; h = next) {
            next = h->path_next;
            link_path(h);
            link_fid(h);
        }
    free(old);
}

static struct hinted *find(const char *path, size_t len, uint64_t hash)
{
    struct hinted *h = files.buckets ? files.path[hash & (files.buckets - 1)] : NULL;
    while (h && (h->hash != hash || strncmp(h->path, path, len) || h->path[len]))
        h = h->path_next;
    return h;
}

struct hinted *hints_by_path(const char *path)
{
    size_t len = strlen(path);
    return find(path, len, data_hash(path, len));
}

struct hinted *hints_by_fid(struct fid fid)
{
    struct hinted *h = files.buckets ? files.fid[fid_bucket(fid)] : NULL;
    while (h && !fid_eq(h->fid, fid))
        h = h->fid_next;
    return h;
}

void hints_set_fid(struct hinted *h, struct fid fid)
{
    if (fid_eq(h->fid, fid))
        return;
    unlink_fid(h);
    h->fid = fid;
    h->readers = 0; /* they have the former file */
    link_fid(h);
}

struct hinted *hint_file_get(const char *path, size_t len)
{
    uint64_t hash = data_hash(path, len);
    struct hinted *h = find(path, len, hash);
    if (!h) {
        if (files.n == files.buckets)
            grow();
        h = xcalloc(1, sizeof(*h) + len + 1);
        memcpy(h->path, path, len);
        h->hash = hash;
        link_path(h);
        files.n++;
    }
    h->refs++;
    return h;
}

void hint_file_put(struct hinted *h)
{
    if (--h->refs)
        return;
    struct hinted **at = &files.path[h->hash & (files.buckets - 1)];
    while (*at != h)
        at = &(*at)->path_next;
    *at = h->path_next;
    unlink_fid(h);
    files.n--;
    free(h);
}

/* ---- news ---- */

static void news_grow(void)
{
    size_t cap = news.cap ? 2 * news.cap : 64;
    struct hint_news *v = xcalloc(cap, sizeof(*v));
    for (size_t i = 0; i < news.n; i++)
        v[i] = news.v[(news.head + i) % news.cap];
    free(news.v);
    news.v = v;
    news.cap = cap;
    news.head = 0;
}

/* Does another target of the file, one that the store keeps, have bytes of this one?  Of very many targets only the
 * first are looked at: then a chunk may leave too early. */
static bool is_kept_for_another(const struct target *t)
{
    unsigned looked = 0;
    uint64_t end = t->len ? t->off + t->len : UINT64_MAX;
    for (const struct target *o = t->file->targets; o && looked++ < 256; o = o->file_next)
        if (o != t && o->hinted && o->first != NO_ENTRY && o->off < end &&
            (!o->len || o->off + o->len > t->off))
            return true;
    return false;
}

void hints_tell(struct target *t, int time)
{
    bool known = !fid_is_zero(t->file->fid);
    t->hinted = known && time == NEWS_HINTED;
    if (!known || (!t->hinted && is_kept_for_another(t)))
        return;
    if (news.n == news.cap)
        news_grow();
    news.v[(news.head + news.n++) % news.cap] = (struct hint_news){
        t->file->fid, t->off, t->len ? t->len : (uint64_t)INT64_MAX - t->off, time};
}

bool hints_next_news(struct hint_news *out)
{
    if (!news.n)
        return false;
    *out = news.v[news.head];
    news.head = (news.head + 1) % news.cap;
    news.n--;
    return true;
}

void hint_files_end(void)
{
    free(files.path);
    free(files.fid);
    free(news.v);
    memset(&files, 0, sizeof(files));
    memset(&news, 0, sizeof(news));
}
