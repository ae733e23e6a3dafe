/* bring_look.c - what of a file is in this node's store. */
#include "placement/foresight/bring.h"

#include "placement/chunks/owner.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"

struct looking {
    const struct item_wanted *w;
    struct file *f; /* NULL: nothing of it is here */
    uint64_t end;   /* of what exists */
};

static uint64_t bytes_here(const struct looking *l, uint64_t off, uint64_t end)
{
    uint64_t miss, n, here = end - off;
    if (!l->f)
        return 0;
    while (off < end && store_missing(l->f, off, end - off, &miss, &n)) {
        here -= n;
        off = miss + n;
    }
    return here;
}

/* Of the chunks that this node owns: how many bytes there are, and how many are here. */
static void look_at_owned(const struct looking *l, uint64_t *there, uint64_t *here)
{
    uint64_t chunk = store_chunk_size();
    for (uint64_t off = l->w->off, end; off < l->end; off = end) {
        end = MIN(l->end, (off / chunk + 1) * chunk);
        if (!owner_is_here(l->w->fid, off / chunk))
            continue;
        *there += end - off;
        *here += bytes_here(l, off, end);
    }
}

struct item_brought bring_look(const struct item_wanted *w, bool owned, bool *same)
{
    struct looking l = {.w = w, .f = file_find(w->fid), .end = w->version.size};
    struct file_info info = {.size = 0};
    struct item_brought b = {.err = 0};
    if (l.f)
        store_info(l.f, &info);
    bool ours = info.dirty || info.claimed; /* its latest bytes are here */
    bool right = ours || (info.base_known && version_eq(&info.base, &w->version));
    if (ours)
        l.end = info.size;
    if (w->len)
        l.end = MIN(l.end, w->off + w->len);
    struct file *f = l.f;
    l.f = right ? f : NULL;
    if (l.end > w->off) {
        b.here = bytes_here(&l, w->off, l.end);
        b.wanted = l.end - w->off;
    }
    uint64_t owned_here = b.here;
    if (owned) {
        b.wanted = owned_here = 0;
        look_at_owned(&l, &b.wanted, &owned_here);
    }
    *same = right && !ours && !info.racy && owned_here == b.wanted;
    if (f)
        file_put(f);
    return b;
}
