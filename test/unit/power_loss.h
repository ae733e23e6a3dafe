/* power_loss.h - a store whose node loses its power, with a disk that has what was synced and what a
 * test puts there. */
#ifndef EDDY_TEST_POWER_LOSS_H
#define EDDY_TEST_POWER_LOSS_H

#include "store_help.h"
#include "suite.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "placement/store/pages.h"
#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/state_table.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

#define CHUNK (64 * KIB)
#define LIMIT (8 * MIB)

static uint8_t data[200000];

/* ---- the disk's own copy of the records: what was synced, where a test wants to know ---- */

#define SLAB "chunks.000"
static uint8_t *disk; /* of the chunks' records */
static size_t disk_size;
static uint8_t *files_disk; /* of the files' */
static size_t files_disk_size;

static inline int open_slab(const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/slabs/%s", cache_dir, name);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static inline uint8_t *copy_slab(const char *name, size_t *size)
{
    int fd = open_slab(name);
    *size = (size_t)lseek(fd, 0, SEEK_END);
    uint8_t *copy = malloc(*size);
    ck_assert_int_eq(pread(fd, copy, *size, 0), (ssize_t)*size);
    close(fd);
    return copy;
}

/* From here on only what is synced gets to it. */
static inline void disk_begins(void)
{
    disk = copy_slab(SLAB, &disk_size);
}

static inline void files_disk_begins(void)
{
    files_disk = copy_slab("files.000", &files_disk_size);
}

static inline void disk_comes_back(const char *name, uint8_t **copy, size_t size)
{
    if (!*copy)
        return;
    int fd = open_slab(name);
    ck_assert_int_eq(pwrite(fd, *copy, size, 0), (ssize_t)size);
    close(fd);
    free(*copy);
    *copy = NULL;
}

static inline void note_synced(const struct slab *slab, uint8_t *copy, size_t size,
                               const uint8_t *p, size_t len)
{
    if (!copy || p < slab->map || p >= slab->map + slab->bytes)
        return;
    size_t at = (size_t)(p - slab->map), end = at + len;
    memcpy(copy + at, p, (end < size ? end : size) - at);
}

/* ---- the disk's own copy of a data file ---- */

static uint8_t *data_disk; /* as it was when it was last synced; NULL: it is what it is */
static size_t data_disk_size;
static bool data_disk_begun;
static void (*while_synced)(void); /* called once, in the middle of that */
static int fdatasync_fails;        /* an errno, told once */

/* In place of the C library's.  What is stored while it runs does not get there. */
int fdatasync(int fd)
{
    struct stat st;
    void (*work)(void) = while_synced;
    ck_assert_int_eq(fstat(fd, &st), 0);
    while_synced = NULL;
    if (data_disk_begun && !fdatasync_fails) {
        free(data_disk);
        data_disk_size = (size_t)st.st_size;
        data_disk = malloc(data_disk_size + 1);
        ck_assert_int_eq(pread(fd, data_disk, data_disk_size, 0), st.st_size);
    }
    if (work)
        work();
    if (!fdatasync_fails)
        return 0;
    errno = fdatasync_fails;
    fdatasync_fails = 0;
    return -1;
}

static inline void data_disk_comes_back(void)
{
    char path[400];
    if (!data_disk_begun)
        return;
    snprintf(path, sizeof(path), "%s/data/%02x/%016llx%016llx", cache_dir, 2,
             (unsigned long long)fid_n(2).hi, (unsigned long long)fid_n(2).lo);
    int fd = open(path, O_WRONLY | O_TRUNC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, data_disk, data_disk_size, 0), (ssize_t)data_disk_size);
    close(fd);
    free(data_disk);
    data_disk = NULL;
    data_disk_size = 0;
    data_disk_begun = false;
}

/* ---- */

static bool files_fail; /* the slab of the files' records can not be written */

/* In place of the C library's. */
int msync(void *p, size_t len, int flags)
{
    const struct slab *slab = &state.files.slab[0];
    if (files_fail && (uint8_t *)p >= slab->map && (uint8_t *)p < slab->map + slab->bytes) {
        errno = EIO;
        return -1;
    }
    int r = (int)syscall(SYS_msync, p, len, flags);
    if (r)
        return r;
    note_synced(&state.chunks.slab[0], disk, disk_size, p, len);
    note_synced(slab, files_disk, files_disk_size, p, len);
    return 0;
}

/* ---- */

/* Which it does when it likes. */
static inline void kernel_writes(struct chunk_record *c)
{
    ck_assert_int_eq(state_sync(c, chunk_slot_size(CHUNK)), 0);
}

static inline void setup_store(void)
{
    dir_setup();
    open_store(LIMIT, CHUNK);
    put_pattern(data, sizeof(data), 0, 5);
}

static inline void teardown_store(void)
{
    store_close(false);
    dir_teardown();
}

/* The daemon is gone without a word and the node has booted since. */
static inline void power_loss(void)
{
    static const char *const names[] = {"files.000", SLAB};
    store_close(false);
    disk_comes_back(SLAB, &disk, disk_size);
    disk_comes_back("files.000", &files_disk, files_disk_size);
    data_disk_comes_back();
    for (unsigned i = 0; i < 2; i++) {
        int fd = open_slab(names[i]);
        ck_assert_int_eq(pwrite(fd, "another boot", 13, offsetof(struct slab_header, boot_id)), 13);
        close(fd);
    }
}

static inline void cached_file(uint64_t n)
{
    struct file *f = get_file(n, "clean");
    struct version v = version_n(sizeof(data), 3);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(fill_chunk(f, i, &v, data, true), 0);
    file_put(f);
}

static inline void data_path(struct fid fid, char path[300])
{
    snprintf(path, 300, "%s/data/%02x/%016llx%016llx", cache_dir, (unsigned)(fid.lo & 0xff),
             (unsigned long long)fid.hi, (unsigned long long)fid.lo);
}

static inline void flush_all_of(struct file *f, struct version *v)
{
    struct file_info info;
    struct snapshot *s;
    store_info(f, &info);
    store_flush_begins(f);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    store_snapshot_done(s, true);
    *v = version_n(info.size, 50);
    ck_assert(store_flushed(f, v, info.change, NULL));
}

static inline struct file *after_boot(uint64_t n)
{
    power_loss();
    open_store(LIMIT, CHUNK);
    struct file *f = file_find(fid_n(n));
    ck_assert_msg(f, "what was fsynced is in doubt");
    return f;
}

#endif
