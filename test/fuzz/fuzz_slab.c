/* fuzz_slab.c - any bytes in the slabs at start: torn records are dropped or repaired, and the
 * store works on.
 *
 * A store with a bit of everything in it is made once; each input changes its slabs, and then it is
 * opened, listed, read, written, flushed and closed.  The input: one byte of options, then patches
 * of (offset u24, kind and length u8, bytes). option 1: the checksums of what was changed are made
 * right again, so that the checks behind them are met option 2: as after a power loss;  option 4:
 * as after a clean end;  option 8: the chunk slab is cut short
 */
#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define CHUNK (64u << 10)
#define LIMIT (UINT64_C(4) << 20)
#define FILES 6

enum { OPT_CHECKS = 1, OPT_POWER_LOSS = 2, OPT_CLEAN = 4, OPT_SHORT = 8 };

static char dir[64];
static uint8_t *template[2]; /* files.000, chunks.000 */
static const char *const slab_file[2] = {"files.000", "chunks.000"};
static size_t slab_size[2];

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    abort();
}

static struct fid fid_n(uint64_t n)
{
    return (struct fid){n * UINT64_C(0x9e3779b97f4a7c15) + 1, n};
}

static void open_store(void)
{
    char err[512];
    struct store_config c = {.dir = dir, .size = LIMIT, .chunk_size = CHUNK};
    int e = store_open(&c, err, sizeof(err));
    if (e)
        fprintf(stderr, "store_open: %s\n", err);
    must(!e, "store_open");
}

/* ---- the template ---- */

static void slab_path(unsigned kind, char path[128])
{
    snprintf(path, 128, "%s/slabs/%s", dir, slab_file[kind]);
}

static void read_slab(unsigned kind)
{
    char path[128];
    struct stat st;
    slab_path(kind, path);
    int fd = open(path, O_RDONLY);
    must(fd >= 0 && !fstat(fd, &st), path);
    slab_size[kind] = (size_t)st.st_size;
    template[kind] = malloc(slab_size[kind]);
    must(read(fd, template[kind], slab_size[kind]) == (ssize_t)slab_size[kind], path);
    close(fd);
}

/* Clean, dirty, cut, punched, synced, deleted; short and long paths. */
static void make_files(void)
{
    static uint8_t bytes[3 * CHUNK];
    char path[3000];
    uint64_t fill;
    memset(path, 'p', sizeof(path) - 1);
    path[sizeof(path) - 1] = 0;
    memset(bytes, 7, sizeof(bytes));
    for (uint64_t n = 1; n <= FILES; n++) {
        struct file *f;
        struct version v = {sizeof(bytes) - 100, 1000000007 * (int64_t)n, 1000000009 * (int64_t)n};
        must(!file_get(fid_n(n), n == 3 ? path : "dir/short", &f), "file_get");
        must(!store_set_version(f, &v, NULL), "store_set_version");
        for (uint64_t i = 0; i < 3; i++) {
            struct clean_chunk c = {.index = i,
                                    .version = v,
                                    .buf = bytes,
                                    .len = i == 2 ? CHUNK - 100 : CHUNK,
                                    .hash = 1,
                                    .owned = n % 2,
                                    .racy = n == 5};
            must(!store_fill(f, &c), "store_fill");
        }
        if (n > 1)
            store_set_claim(f, 1, n, &v);
        if (n > 1 && n != 5)
            must(!store_write(f, bytes, 5000, n * 3000, SPACE_CACHE, &fill), "store_write");
        if (n == 3)
            must(!store_truncate(f, CHUNK + 77, &fill), "store_truncate");
        if (n == 4)
            must(!store_punch(f, 10000, 50000, SPACE_CACHE, &fill) && !store_sync(f),
                 "store_punch");
        file_put(f);
    }
}

/* As if the daemon died between unlink and the last close. */
static void delete_one(uint64_t n)
{
    for (size_t at = SLAB_PAGE; at + FILE_SLOT <= slab_size[0]; at += FILE_SLOT) {
        struct file_record *r = (struct file_record *)(template[0] + at);
        if (r->magic != FILE_MAGIC || !fid_eq(r->fid, fid_n(n)))
            continue;
        struct file_core *c = &r->core[r->core_now & 1];
        c->flags |= CORE_DELETED;
        c->check = core_check(c, r->fid);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    snprintf(dir, sizeof(dir), "%s/eddy-fuzz-slab.XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    must(mkdtemp(dir) != NULL, dir);
    setenv("TMPDIR", dir, 1);
    log_open("/dev/null", LOG_LEVEL_ERROR, "fuzz");
    open_store();
    make_files();
    store_close(false);
    read_slab(0);
    read_slab(1);
    delete_one(FILES);
    return 0;
}

/* ---- one input ---- */

static void patch(uint8_t *slab[2], const uint8_t *in, size_t n)
{
    while (n >= 4) {
        size_t off = in[0] | (size_t)in[1] << 8 | (size_t)in[2] << 16, len = in[3] & 0x7f;
        unsigned kind = in[3] >> 7;
        in += 4;
        n -= 4;
        len = MIN(len, n);
        off %= slab_size[kind] / 16; /* what is in use lies at the beginning */
        memcpy(slab[kind] + off, in, len);
        in += len;
        n -= len;
    }
}

static void mend_files(uint8_t *slab)
{
    for (size_t at = SLAB_PAGE; at + FILE_SLOT <= slab_size[0]; at += FILE_SLOT) {
        struct file_record *r = (struct file_record *)(slab + at);
        if (r->magic != FILE_MAGIC)
            continue;
        r->check = file_check(r->fid);
        for (unsigned i = 0; i < 2; i++)
            r->core[i].check = core_check(&r->core[i], r->fid);
        if (r->covered.check)
            r->covered.check = core_check(&r->covered, r->fid);
    }
}

static void mend_chunks(uint8_t *slab)
{
    size_t slot = chunk_slot_size(CHUNK), per_page = SLAB_PAGE / slot;
    for (size_t page = SLAB_PAGE; page + SLAB_PAGE <= slab_size[1]; page += SLAB_PAGE)
        for (size_t i = 0; i < per_page; i++) {
            struct chunk_record *c = (struct chunk_record *)(slab + page + i * slot);
            if (c->magic == CHUNK_MAGIC)
                c->check = chunk_check(c->fid, c->index);
        }
}

static void write_slab(unsigned kind, const uint8_t *bytes, size_t size)
{
    char path[128];
    slab_path(kind, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size, path);
    close(fd);
}

static void put_slabs(unsigned options, const uint8_t *in, size_t n)
{
    static uint8_t *slab[2];
    for (unsigned kind = 0; kind < 2; kind++) {
        if (!slab[kind])
            slab[kind] = malloc(slab_size[kind]);
        memcpy(slab[kind], template[kind], slab_size[kind]);
    }
    patch(slab, in, n);
    for (unsigned kind = 0; kind < 2; kind++) {
        struct slab_header *h = (struct slab_header *)slab[kind];
        if (options & OPT_POWER_LOSS)
            memset(h->boot_id, 'x', sizeof(h->boot_id) - 1);
        if (options & OPT_CLEAN)
            h->clean = 1;
    }
    if (options & OPT_CHECKS) {
        mend_files(slab[0]);
        mend_chunks(slab[1]);
    }
    for (unsigned kind = 0; kind < 2; kind++)
        write_slab(kind, slab[kind],
                   kind && (options & OPT_SHORT) ? slab_size[kind] / 2 : slab_size[kind]);
}

static void remove_slabs(void)
{
    static const char *const names[] = {"files.000",  "chunks.000",        "files.001",
                                        "chunks.001", "files.000.damaged", "chunks.000.damaged"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/slabs/%s", dir, names[i]);
        unlink(path);
    }
}

static int count_one(void *arg, struct fid fid, const char *path, uint64_t bytes, enum unflushed_why why)
{
    (void)fid;
    (void)bytes;
    (void)why;
    *(size_t *)arg += strlen(path);
    return 0;
}

/* Copy-out of what is dirty: it ends, and the file is clean then. */
static void flush(struct file *f)
{
    static uint8_t buf[CHUNK];
    struct file_info info;
    uint64_t from = 0;
    store_info(f, &info);
    store_flush_begins(f);
    for (unsigned i = 0;; i++) {
        struct snapshot *s;
        must(i < 1000, "a flush that does not end");
        int err = store_snapshot(f, from, CHUNK, &s);
        must(!err, "store_snapshot");
        for (size_t k = 0; k < s->nextents; k++) {
            must(s->extents[k].off + s->extents[k].len <= info.size, "a run beyond the end");
            if (!s->extents[k].hole)
                store_pread(f, buf, MIN(s->extents[k].len, sizeof(buf)), s->extents[k].off);
            from = s->extents[k].off + s->extents[k].len;
        }
        bool last = s->last || !s->nextents;
        store_snapshot_done(s, true);
        if (last)
            break;
    }
    struct version v = {info.size, 1, 2};
    must(store_flushed(f, &v, info.change, NULL), "not clean after its flush");
}

static void use_file(struct file *f)
{
    static uint8_t buf[CHUNK];
    uint64_t off, len, fill, hash;
    size_t got;
    struct file_info info;
    char *path = file_path(f);
    free(path);
    store_info(f, &info);
    store_read(f, buf, sizeof(buf), 0);
    store_missing(f, 0, UINT64_MAX, &off, &len);
    store_seek(f, 0, true, &off);
    store_seek(f, 0, false, &off);
    store_get_chunk(f, 0, &info.base, buf, &got, &hash);
    struct clean_chunk c = {
        .index = 1, .version = info.base, .buf = buf, .len = sizeof(buf), .owned = true};
    store_fill(f, &c);
    store_write(f, buf, 3000, 1000, SPACE_CACHE, &fill);
    store_truncate(f, CHUNK + 5, &fill);
    store_punch(f, 0, 5000, SPACE_CACHE, &fill);
    store_sync(f);
    store_info(f, &info);
    if (info.dirty)
        flush(f);
    store_clear_claim(f, NULL);
    file_set_path(f, "another/path");
}

static int use_claimed(void *arg, struct file *f)
{
    (void)arg;
    use_file(f);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t paths = 0;
    struct store_usage u;
    if (!size)
        return 0;
    remove_slabs();
    put_slabs(data[0], data + 1, size - 1);
    store_each_unflushed(dir, count_one, &paths);
    open_store();
    must(!store_each_claimed(use_claimed, NULL), "store_each_claimed");
    for (uint64_t n = 1; n <= FILES; n++) {
        struct file *f = file_find(fid_n(n));
        if (!f)
            continue;
        use_file(f);
        file_put(f);
    }
    store_each_suspect(count_one, &paths);
    store_usage(&u);
    must(!u.dirty, "dirty bytes are left over");
    must(u.used <= LIMIT, "more in use than the limit");
    store_close(false);
    open_store(); /* what was repaired is whole */
    store_close(true);
    return 0;
}
