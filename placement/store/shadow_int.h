/* shadow_int.h - what the files of shadow.h share.  Each uses those behind it:
 *
 *     shadow_copy.c    the store leaves a data file in use, and goes on with a copy
 *     shadow_stores.c  what processes store into it by mappings
 *     shadow.c         the shadow, and the changes that it gets
 *     shadow_pages.c   which of its pages are as this node knows them
 */
#ifndef EDDY_PLACEMENT_STORE_SHADOW_INT_H
#define EDDY_PLACEMENT_STORE_SHADOW_INT_H

#include <time.h>

#include "placement/store/shadow.h"
#include "transport/lock.h"

struct shadow_stores {
    /* Of each page, as it is known; 0: it is not, since it was stored into, and so it has a hash other than this.  NULL: nobody
     * stores into the shadow. */
    uint64_t *hashes;
    uint64_t pages;       /* how many there are */
    uint64_t from, until; /* pages that are being changed: shadow_pages_before */
    struct timespec seen; /* the data file's ctime when its pages were compared last ... */
    bool seen_all;        /* ... which shows each store since */
    bool taking;          /* one thread takes what was stored */
    pthread_cond_t taken;
};

struct shadow {
    _Atomic unsigned refs;
    int fd;
    unsigned life;    /* of the data file (kernel_io_open) */
    unsigned opens;   /* f->lock: of it */
    struct lock lock; /* RANK_LEAF: of one write */
    uint64_t changes; /* shadow_write and its like; that lock */
    bool known;       /* f->lock: it has the bytes of `version` */
    struct version version;
    bool followed;    /* f->lock: it has had them; what this node has changed since, or was told of, it has, too */
    uint64_t claimant, begun; /* f->lock: so far it has all changes of this claim (struct location); 0: of none */
    struct shadow_stores stores; /* `lock` */
};

/* ---- shadow.c ---- */
struct shadow *shadow_get(struct file *f); /* referenced; NULL: there is none */

/* ---- shadow_pages.c: with s->lock ---- */
/* Of a page, of which len bytes are in the file; zeros follow.  Never 0. */
uint64_t shadow_page_hash(const char *page, size_t len);
void shadow_pages_begin(struct shadow *s); /* from now on it is known what they have */
/* Around a change of [off, off + len), which may also change the shadow's length: what was stored into these pages before
 * stays known as such. */
void shadow_pages_before(struct shadow *s, uint64_t off, uint64_t len);
void shadow_pages_after(struct shadow *s);
/* Has the page at off been stored into?  Between these two. */
bool shadow_pages_stored(const struct shadow *s, uint64_t off);
/* Are these the bytes of a whole page, as it is known?  Then the shadow has them, or what was stored since. */
bool shadow_pages_are_known(const struct shadow *s, const char *buf, size_t len, uint64_t off);

#endif
