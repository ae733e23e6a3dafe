/* shadow_pages.c - which pages of a shadow are as this node knows them: of each a hash (shadow_stores.c tells what for).  All
 * with the shadow's lock.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "placement/store/shadow_int.h"
#include "placement/store/store_int.h"
#include "transport/hash.h"

uint64_t shadow_page_hash(const char *page, size_t len)
{
    static const char zeros[PAGE];
    char whole[PAGE];
    if (len < PAGE) {
        memcpy(whole, page, len);
        memcpy(whole + len, zeros, PAGE - len);
        page = whole;
    }
    uint64_t hash = data_hash(page, PAGE);
    return hash ? hash : 1;
}

static uint64_t hash_now(const struct shadow *s, uint64_t page)
{
    char buf[PAGE];
    ssize_t n = pread(s->fd, buf, PAGE, (off_t)(page * PAGE));
    return n < 0 ? 0 : shadow_page_hash(buf, (size_t)n);
}

static uint64_t pages_now(const struct shadow *s)
{
    struct stat st;
    return fstat(s->fd, &st) ? s->stores.pages : ((uint64_t)st.st_size + PAGE - 1) / PAGE;
}

/* As many as the shadow has pages; new ones are those of zeros. */
static void fit(struct shadow *s)
{
    struct shadow_stores *t = &s->stores;
    uint64_t pages = pages_now(s), zero = shadow_page_hash("", 0);
    t->hashes = xrealloc(t->hashes, (pages + 1) * sizeof(*t->hashes));
    for (uint64_t p = t->pages; p < pages; p++)
        t->hashes[p] = zero;
    t->pages = pages;
}

void shadow_pages_before(struct shadow *s, uint64_t off, uint64_t len)
{
    struct shadow_stores *t = &s->stores;
    if (!t->hashes)
        return;
    /* the last page may be changed by another length */
    uint64_t last = t->pages ? t->pages - 1 : 0;
    t->from = MIN(off / PAGE, last);
    t->until = MAX((off + MAX(len, 1u) - 1) / PAGE, last) + 1;
    if (len && off + len <= last * PAGE) {
        t->from = off / PAGE;
        t->until = (off + len - 1) / PAGE + 1;
    }
    for (uint64_t p = t->from; p < MIN(t->until, t->pages); p++)
        if (t->hashes[p] && t->hashes[p] != hash_now(s, p))
            t->hashes[p] = 0;
}

void shadow_pages_after(struct shadow *s)
{
    struct shadow_stores *t = &s->stores;
    if (!t->hashes)
        return;
    fit(s);
    for (uint64_t p = t->from; p < MIN(t->until, t->pages); p++)
        if (t->hashes[p])
            t->hashes[p] = hash_now(s, p);
    t->seen_all = false;
}

bool shadow_pages_stored(const struct shadow *s, uint64_t off)
{
    return off / PAGE < s->stores.pages && !s->stores.hashes[off / PAGE];
}

bool shadow_pages_are_known(const struct shadow *s, const char *buf, size_t len, uint64_t off)
{
    const struct shadow_stores *t = &s->stores;
    struct stat st;
    if (off % PAGE || off / PAGE >= t->pages || fstat(s->fd, &st))
        return false;
    bool whole = len == PAGE || off + len == (uint64_t)st.st_size;
    return whole && t->hashes[off / PAGE] == shadow_page_hash(buf, len);
}

void shadow_pages_begin(struct shadow *s)
{
    struct shadow_stores *t = &s->stores;
    if (t->hashes)
        return;
    fit(s);
    for (uint64_t p = 0; p < t->pages; p++)
        t->hashes[p] = hash_now(s, p);
}
