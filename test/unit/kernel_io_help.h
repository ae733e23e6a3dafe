/* kernel_io_help.h - files that the kernel reads and writes: here by descriptors and mappings of the
 * data file, as the kernel's are.
 */
#ifndef EDDY_TEST_STORE_PASS_HELP_H
#define EDDY_TEST_STORE_PASS_HELP_H

#include "placement/store/kernel_io.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "store_help.h"
#include "suite.h"

#define CHUNK (64 * KIB)
#define SIZE  (4 * CHUNK)

static uint8_t *bytes; /* SIZE, a pattern */

static inline void pass_setup(void)
{
    dir_setup();
    open_store(64 * MIB, CHUNK);
    bytes = malloc(SIZE);
    put_pattern(bytes, SIZE, 0, 3);
}

static inline void pass_teardown(void)
{
    free(bytes);
    store_close(false);
    dir_teardown();
}

/* What the kernel does when the open was answered. */
static inline int open_backing(struct file *f, int flags)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/data/%02x/%016llx%016llx", cache_dir,
             (unsigned)(f->fid.lo & 0xff), (unsigned long long)f->fid.hi,
             (unsigned long long)f->fid.lo);
    int fd = open(path, flags | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    return fd;
}

static inline unsigned open_pass(struct file *f, bool write)
{
    int fd;
    unsigned life;
    int err = kernel_io_open(f, write, &fd, &life);
    ck_assert_msg(!err, "kernel_io_open: %s", strerror(-err));
    close(fd);
    return life;
}

static inline void put(int fd, const void *buf, size_t len, uint64_t off)
{
    ck_assert_int_eq(pwrite(fd, buf, len, (off_t)off), (ssize_t)len);
}

struct flush {
    uint64_t change, bytes;
    struct version v;
};

/* The copy-out up to the moment when the PFS has the bytes. */
static inline struct flush begin_flush(struct file *f, uint8_t *pfs)
{
    struct flush fl = {.v = version_n(0, 9)};
    struct snapshot *s;
    ck_assert_int_eq(kernel_io_mark(f, NULL, NULL), 0);
    store_flush_begins(f);
    struct file_info info = info_of(f);
    fl.change = info.change;
    fl.v.size = info.size;
    fl.v.mtime_ns = info.mtime_ns;
    if (store_snapshot(f, 0, 64 * MIB, &s))
        return fl;
    for (size_t i = 0; i < s->nextents; i++) {
        if (s->extents[i].hole)
            memset(pfs + s->extents[i].off, 0, s->extents[i].len);
        else
            ck_assert_int_eq(store_pread(f, pfs + s->extents[i].off, s->extents[i].len, s->extents[i].off),
                             0);
        fl.bytes += s->extents[i].len;
    }
    store_snapshot_done(s, true);
    return fl;
}

static inline bool flush(struct file *f, uint8_t *pfs)
{
    struct flush fl = begin_flush(f, pfs);
    return store_flushed(f, &fl.v, fl.change, NULL);
}

static inline void no_news(struct file *f)
{
    (void)f;
}

/* The sampler's turn: true if somebody may still store into something. */
static inline bool sample(void)
{
    return kernel_io_sample(no_news, no_news) > 0;
}

static inline void end_writing(struct file *f, unsigned life, int fd)
{
    close(fd);
    kernel_io_close(f, life, true);
    sample();
    file_put(f);
}

#endif
