/* hint_files.c - the files that are hinted, by path and by fid; and what the store is to hear of them. */
#include "placement/foresight/hint_files.h"
#include "placement/foresight/far.h"
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

static void news_add(const struct hint_news *n)
{
    if (news.n == news.cap)
        news_grow();
    news.v[(news.head + news.n++) % news.cap] = *n;
}

/* ---- the tables ---- */

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

void hint_file_left(struct hinted *h, int time)
{
    bool kept = false;
    for (struct target *t = h->targets; t; t = t->file_next) {
        kept |= t->hinted;
        t->hinted = false;
        far_note(t);
    }
    if (kept)
        news_add(&(struct hint_news){h->fid, 0, INT64_MAX, time, false});
}

static void look_away(struct hinted *h)
{
    if (h->looked_at)
        news_add(&(struct hint_news){.fid = h->fid, .time = NEWS_NOT_LOOKED_AT});
    h->looked_at = false;
}

void hint_file_unadmitted(struct hinted *h)
{
    if (!--h->admitted)
        look_away(h);
}

void hints_set_fid(struct hinted *h, struct fid fid)
{
    if (fid_eq(h->fid, fid))
        return;
    hint_file_left(h, NEWS_UNKNOWN);
    look_away(h);
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

/* ---- what the store is to hear ---- */

#define LOOKED_AT 256 /* of very many targets only the first: then a chunk may leave too early */

static uint64_t end_of(const struct target *t)
{
    return t->len ? t->off + t->len : UINT64_MAX;
}

/* The next target of those from `o` on that the store keeps and that has bytes of [off, end). */
static const struct target *next_kept(const struct target *o, unsigned *looked, uint64_t off, uint64_t end)
{
    for (; o && (*looked)++ < LOOKED_AT; o = o->file_next)
        if (o->hinted && o->first != NO_ENTRY && o->off < end && end_of(o) > off)
            return o;
    return NULL;
}

static bool is_kept_whole(const struct target *t)
{
    unsigned looked = 0;
    const struct target *o = t->file->targets;
    for (; (o = next_kept(o, &looked, t->off, end_of(t))); o = o->file_next)
        if (o->off <= t->off && end_of(o) >= end_of(t))
            return true;
    return false;
}

static void news_of(const struct target *t, int time)
{
    uint64_t len = t->len ? t->len : (uint64_t)INT64_MAX - t->off;
    news_add(&(struct hint_news){t->file->fid, t->off, len, time, true});
}

bool hints_keep(struct fid fid, uint64_t off, uint64_t end)
{
    unsigned looked = 0;
    const struct hinted *h = hints_by_fid(fid);
    return h && next_kept(h->targets, &looked, off, end);
}

/* What others have of it stays. */
void hints_tell(struct target *t, int time)
{
    bool known = !fid_is_zero(t->file->fid);
    t->hinted = known && time == NEWS_HINTED;
    far_note(t);
    if (!known || (!t->hinted && is_kept_whole(t)))
        return;
    news_of(t, time);
    unsigned looked = 0;
    const struct target *o = t->hinted ? NULL : t->file->targets;
    for (; (o = next_kept(o, &looked, t->off, end_of(t))); o = o->file_next)
        news_of(o, NEWS_HINTED);
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
