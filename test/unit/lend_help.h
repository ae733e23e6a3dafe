/* lend_help.h - a claimed file of which parts are lent, for the tests of store_lend.h. */
#ifndef EDDY_TEST_LEND_HELP_H
#define EDDY_TEST_LEND_HELP_H

#include "kernel_io_help.h"

#include "placement/store/state_table.h"
#include "placement/store/store_int.h"
#include "placement/store/store_lend.h"

#define UNIT  LOAN_UNIT
#define UNITS 8u
#define B     UINT64_C(0xb0b) /* borrowers */
#define C     UINT64_C(0xc0c)

static uint8_t *data; /* UNITS units, a pattern: the PFS's bytes */
static struct version base;

static inline void open_it(uint64_t chunk)
{
    dir_setup();
    open_store(64 * MIB, (uint32_t)chunk);
    data = malloc(UNITS * UNIT);
    put_pattern(data, UNITS * UNIT, 0, 3);
    base = version_n(UNITS * UNIT, 3);
}

static inline void setup(void)
{
    open_it(UNIT);
}

/* Four units in a chunk. */
static inline void setup_large(void)
{
    open_it(4 * UNIT);
}

static inline void teardown(void)
{
    free(data);
    store_close(false);
    dir_teardown();
}

/* The PFS has UNITS units of it; nothing is here. */
static inline struct file *claimed_file(uint64_t n)
{
    struct file *f = get_file(n, "x");
    ck_assert_int_eq(store_set_version(f, &base, NULL), 0);
    ck_assert_int_eq(store_set_claim(f, 1, n, &base), 0);
    return f;
}

static inline uint64_t lend_ok(struct file *f, uint64_t node, uint64_t first, uint64_t last)
{
    ck_assert_int_eq(store_lend(f, (struct lend_node){node, 1}, first, last), 0);
    return store_lend_epoch(f);
}

static inline int try_lend(struct file *f, uint64_t node, uint64_t unit)
{
    return store_lend(f, (struct lend_node){node, 1}, unit, unit);
}

static inline uint64_t lent_to(struct file *f, uint64_t unit)
{
    uint64_t until;
    return store_lent_to(f, unit, unit, &until);
}

static inline bool try_return(struct file *f, uint64_t node, uint64_t looks, const struct version *v)
{
    struct lent_back back = {.looks = looks, .v = *v, .mtime_ns = INT64_MIN, .began = LENT_ANY};
    uint64_t epoch;
    return store_lent_returned(f, node, &back, &epoch);
}

static inline void returned_ok(struct file *f, uint64_t node, const struct version *v)
{
    ck_assert(try_return(f, node, store_pfs_looks(f), v));
}

/* Node by node, as many as there are units; 0: nobody. */
static inline void owners_are(struct file *f, const uint64_t *want)
{
    for (uint64_t unit = 0; unit < UNITS; unit++)
        ck_assert_msg(lent_to(f, unit) == want[unit], "unit %llu is of %llx, not %llx",
                      (unsigned long long)unit, (unsigned long long)lent_to(f, unit),
                      (unsigned long long)want[unit]);
}

static inline void same_state(const struct file_info *a, const struct file_info *b)
{
    ck_assert_uint_eq(a->size, b->size);
    ck_assert_int_eq(a->mtime_ns, b->mtime_ns);
    ck_assert_int_eq(a->ctime_ns, b->ctime_ns);
    ck_assert_uint_eq(a->cut, b->cut);
    ck_assert_uint_eq(a->base_end, b->base_end);
    ck_assert_uint_eq(a->dirty_bytes, b->dirty_bytes);
    ck_assert_uint_eq(a->change, b->change);
    ck_assert(a->dirty == b->dirty);
}

static inline int try_kernel_io(struct file *f, bool write)
{
    int fd;
    unsigned life;
    int err = kernel_io_open(f, write, &fd, &life);
    if (!err) {
        close(fd);
        kernel_io_close(f, life, write);
    }
    return err;
}

static inline struct file *reopen(struct file *f, uint64_t chunk)
{
    struct fid fid = f->fid;
    file_put(f);
    store_close(false);
    open_store(64 * MIB, (uint32_t)chunk);
    ck_assert_int_eq(file_get(fid, NULL, &f), 0);
    return f;
}

/* The PFS has all of it, and is this long. */
static inline bool flush_to(struct file *f, uint64_t pfs_size)
{
    uint8_t *pfs = malloc(64 * UNIT);
    struct flush fl = begin_flush(f, pfs);
    fl.v.size = pfs_size;
    free(pfs);
    return store_flushed(f, &fl.v, fl.change, NULL);
}

#endif
