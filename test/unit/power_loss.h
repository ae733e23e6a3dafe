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
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"

#define CHUNK (64 * KIB)
#define LIMIT (8 * MIB)

static uint8_t data[200000];

/* ---- the disk's own copy of the chunks' records: what was synced, where a test wants to know ---- */

#define SLAB "chunks.000"
static uint8_t *disk;
static size_t disk_size;

static inline int open_slab(const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/slabs/%s", cache_dir, name);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* From here on only what is synced gets to it. */
static inline void disk_begins(void)
{
    int fd = open_slab(SLAB);
    disk_size = (size_t)lseek(fd, 0, SEEK_END);
    disk = malloc(disk_size);
    ck_assert_int_eq(pread(fd, disk, disk_size, 0), (ssize_t)disk_size);
    close(fd);
}

static inline void disk_comes_back(void)
{
    int fd = open_slab(SLAB);
    ck_assert_int_eq(pwrite(fd, disk, disk_size, 0), (ssize_t)disk_size);
    close(fd);
    free(disk);
    disk = NULL;
}

static inline void note_synced(const void *p, size_t len)
{
    char line[600];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps)) {
        uintptr_t from, to, off;
        if (strstr(line, SLAB) && sscanf(line, "%lx-%lx %*s %lx", &from, &to, &off) == 3 &&
            (uintptr_t)p >= from && (uintptr_t)p < to) {
            size_t at = (uintptr_t)p - from + off;
            memcpy(disk + at, p, at + len < disk_size ? len : disk_size - at);
        }
    }
    if (maps)
        fclose(maps);
}

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
    if (!r && disk)
        note_synced(p, len);
    return r;
}

/* ---- */

/* Which it does when it likes. */
static inline void kernel_writes(struct chunk_record *c)
{
    ck_assert_int_eq(slab_sync(c, chunk_slot_size(CHUNK)), 0);
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
    if (disk)
        disk_comes_back();
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
