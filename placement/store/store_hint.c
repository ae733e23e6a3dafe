/* store_hint.c - tells eviction when chunks of a file are read next. */
#include "placement/store/store_hint.h"

#include "placement/store/pages.h"
#include "placement/store/store_int.h"

#define AT_ONCE 256 /* chunks, with the file's lock */

/* Of one part: false: it was the last one; else *index moves on. */
static bool hint_part(struct file *f, uint64_t *index, uint64_t last, enum eviction_time t, bool others)
{
    struct chunk_record *c = NULL;
    lock_take(&f->lock);
    for (unsigned n = 0; n < AT_ONCE; n++) {
        c = pages_next_chunk(f, *index);
        if (!c || c->index > last)
            break;
        if (!others || !(c->flags & CHUNK_OWNED))
            eviction_set_time(c, t);
        *index = c->index + 1;
    }
    bool more = c && c->index < last;
    lock_drop(&f->lock);
    return more;
}

static void hint(struct fid fid, uint64_t off, uint64_t len, enum eviction_time t, bool others)
{
    struct file *f = file_find(fid);
    if (!f)
        return;
    uint64_t index = off / store_chunk_size(), last = (off + len - 1) / store_chunk_size();
    while (hint_part(f, &index, last, t, others))
        ;
    file_put(f);
}

void store_hint(struct fid fid, uint64_t off, uint64_t len, enum eviction_time t)
{
    hint(fid, off, len, t, false);
}

void store_hint_others(struct fid fid, uint64_t off, uint64_t len, enum eviction_time t)
{
    hint(fid, off, len, t, true);
}

void store_hint_coming(struct file *f, uint64_t off, uint64_t len)
{
    lock_take(&f->lock);
    f->coming = off / store_chunk_size();
    f->coming_end = len ? (off + len - 1) / store_chunk_size() + 1 : 0;
    lock_drop(&f->lock);
}
