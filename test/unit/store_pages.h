/* store_pages.h - a store of 64 KiB chunks for each test, and the flush's copy of a file. */
#ifndef EDDY_TEST_STORE_PAGES_H
#define EDDY_TEST_STORE_PAGES_H

#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "store_help.h"
#include "suite.h"

static inline void setup(void)
{
    dir_setup();
    open_store(64 * MIB, 64 * KIB);
}

static inline void teardown(void)
{
    store_close(false);
    dir_teardown();
}

/* The whole file as the flush would copy it, with the cut done; frees nothing of the model. Returns
 * the size. */
static inline uint64_t flush_into(struct file *f, uint8_t *pfs, uint64_t *pfs_size,
                                  struct version *v)
{
    uint64_t change = info_of(f).change, from = 0;
    store_flush_begins(f);
    for (bool last = false; !last;) {
        struct snapshot *s;
        int err = store_snapshot(f, from, MIB, &s);
        if (err == -ENODATA)
            break;
        ck_assert_int_eq(err, 0);
        if (s->cut != NO_CUT && s->cut < *pfs_size) {
            memset(pfs + s->cut, 0, *pfs_size - s->cut);
            *pfs_size = s->cut;
        }
        for (size_t i = 0; i < s->nextents; i++) {
            struct extent *r = &s->extents[i];
            if (r->hole)
                memset(pfs + r->off, 0, r->len);
            else
                ck_assert_int_eq(store_pread(f, pfs + r->off, r->len, r->off), 0);
            *pfs_size = MAX(*pfs_size, r->off + r->len);
            from = r->off + r->len;
        }
        *pfs_size = MAX(*pfs_size, s->size);
        last = s->last || !s->nextents;
        store_snapshot_done(s, true);
    }
    v->size = *pfs_size;
    v->mtime_ns += 7;
    v->ctime_ns += 9;
    ck_assert(store_flushed(f, v, change, NULL));
    return *pfs_size;
}

#endif
