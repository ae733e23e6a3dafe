/* store_help.h - a store in a temporary directory, for the store's tests. */
#ifndef EDDY_TEST_STORE_HELP_H
#define EDDY_TEST_STORE_HELP_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "placement/store/store_hit.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static char test_dir[64];  /* removed by dir_teardown */
static char cache_dir[80]; /* test_dir/cache */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void dir_setup(void)
{
    snprintf(test_dir, sizeof(test_dir), "/tmp/eddy-test-store.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test_dir));
    snprintf(cache_dir, sizeof(cache_dir), "%s/cache", test_dir);
    log_open(NULL, LOG_LEVEL_ERROR, "test");
}

static inline void dir_teardown(void)
{
    remove_tree(test_dir);
}

static inline int try_open(uint64_t size, uint32_t chunk, char *err, size_t errlen)
{
    struct store_config c = {.dir = cache_dir, .size = size, .chunk_size = chunk};
    err[0] = 0;
    return store_open(&c, err, errlen);
}

static inline void open_store(uint64_t size, uint32_t chunk)
{
    char err[512];
    int e = try_open(size, chunk, err, sizeof(err));
    ck_assert_msg(!e, "store_open: %s (%s)", strerror(-e), err);
}

static inline struct fid fid_n(uint64_t n)
{
    return (struct fid){(n * UINT64_C(0x9e3779b97f4a7c15) + 1) & ~FID_LOAN, n};
}

static inline struct file *get_file(uint64_t n, const char *path)
{
    struct file *f;
    ck_assert_int_eq(file_get(fid_n(n), path, &f), 0);
    return f;
}

static inline struct version version_n(uint64_t size, int64_t n)
{
    return (struct version){size, 1000000001 * n, 1000000003 * n};
}

/* A file that this node has just created: nothing of it is on the PFS. */
static inline struct file *new_file(uint64_t n, const char *path)
{
    struct file *f = get_file(n, path);
    struct version v = version_n(0, 1);
    ck_assert_int_eq(store_set_claim(f, 1, n, &v), 0);
    return f;
}

static inline void put_pattern(uint8_t *buf, size_t len, uint64_t off, uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = (uint8_t)(((off + i) * 31 + seed * 7 + ((off + i) >> 8) * (seed + 3)) |
                           1); /* never 0 */
}

static inline void write_ok(struct file *f, const void *buf, size_t len, uint64_t off)
{
    uint64_t fill = 0;
    int err = store_write(f, buf, len, off, SPACE_CACHE, &fill);
    ck_assert_msg(!err, "store_write at %llu: %s", (unsigned long long)off, strerror(-err));
}

/* How many bytes from off on are here. */
static inline size_t here(struct file *f, uint64_t off, size_t len)
{
    struct store_hit hit;
    size_t n = store_read_begin(f, off, len, &hit);
    if (n)
        store_read_end(&hit);
    return n;
}

/* Everything from off on that should be readable is, and is this. */
static inline void read_is(struct file *f, const void *want, size_t len, uint64_t off)
{
    uint8_t *buf = malloc(len + 1);
    ck_assert_int_eq(store_read(f, buf, len, off), (ssize_t)len);
    for (size_t i = 0; i < len; i++)
        if (buf[i] != ((const uint8_t *)want)[i])
            ck_abort_msg("byte %llu is %u, should be %u", (unsigned long long)(off + i), buf[i],
                         ((const uint8_t *)want)[i]);
    free(buf);
}

static inline struct file_info info_of(struct file *f)
{
    struct file_info i;
    store_info(f, &i);
    return i;
}

static inline int fill_chunk(struct file *f, uint64_t index, const struct version *v,
                             const uint8_t *data, bool owned)
{
    uint64_t chunk = store_chunk_size();
    size_t len = (size_t)(v->size - index * chunk < chunk ? v->size - index * chunk : chunk);
    return store_fill(f, &(struct clean_chunk){.index = index,
                                               .version = *v,
                                               .buf = data + index * chunk,
                                               .len = len,
                                               .hash = XXH3_64bits(data + index * chunk, len),
                                               .owned = owned});
}

/* What was unflushed: how many files, and the last of them. */
struct seen {
    unsigned n;
    char path[200];
    uint64_t bytes;
    bool suspect;
};

static inline int see(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    struct seen *s = arg;
    (void)fid;
    s->n++;
    snprintf(s->path, sizeof(s->path), "%s", path);
    s->bytes = bytes;
    s->suspect = why == UNFLUSHED_SUSPECT;
    return 0;
}

#endif
