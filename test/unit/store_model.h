/* store_model.h - random work on the store against a plain shadow copy and a PFS that does what it is
 * told.
 *
 * The file's bytes at any time are: valid pages from the data file, what is not valid below
 * base_end from the PFS, else zeros. They must be the shadow's; and after the last flush the PFS's
 * bytes must be the shadow's.
 *
 * EDDY_TEST_SEED=n repeats a run; EDDY_TEST_ROUNDS=n makes it longer.
 */
#ifndef EDDY_TEST_STORE_MODEL_H
#define EDDY_TEST_STORE_MODEL_H

#include "store_help.h"
#include "suite.h"

#include <pthread.h>

#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

#ifndef FILE_MAX
#define FILE_MAX (2 * MIB)
#define LIMIT    (3 * MIB)
#endif
#define CHUNK (64 * KIB)

/* In place of the C library's: what else the machine's disk has to write takes its time. */
int syncfs(int fd)
{
    (void)fd;
    return 0;
}

/* ---- the PFS ---- */

struct pfs {
    pthread_mutex_t mutex;
    uint8_t *bytes;
    struct version v; /* v.size: its size */
};

static inline void pfs_init(struct pfs *p)
{
    pthread_mutex_init(&p->mutex, NULL);
    p->bytes = calloc(1, FILE_MAX + PAGE);
    p->v = version_n(0, 1);
}

static inline void pfs_touch(struct pfs *p)
{
    p->v.mtime_ns++;
    p->v.ctime_ns++;
}

static inline void pfs_resize(struct pfs *p, uint64_t size)
{
    pthread_mutex_lock(&p->mutex);
    if (size < p->v.size)
        memset(p->bytes + size, 0, p->v.size - size);
    p->v.size = size;
    pfs_touch(p);
    pthread_mutex_unlock(&p->mutex);
}

static inline void pfs_put(struct pfs *p, const uint8_t *buf, size_t len, uint64_t off)
{
    pthread_mutex_lock(&p->mutex);
    memcpy(p->bytes + off, buf, len);
    if (off + len > p->v.size)
        p->v.size = off + len;
    pfs_touch(p);
    pthread_mutex_unlock(&p->mutex);
}

/* ---- random ---- */

struct rnd {
    uint64_t s;
};

static inline uint64_t next(struct rnd *r)
{
    r->s ^= r->s << 13;
    r->s ^= r->s >> 7;
    r->s ^= r->s << 17;
    return r->s;
}

static inline uint64_t below(struct rnd *r, uint64_t n)
{
    return n ? next(r) % n : 0;
}

/* Often near page and chunk borders. */
static inline uint64_t some_offset(struct rnd *r, uint64_t max)
{
    uint64_t x = below(r, max + 1);
    if (below(r, 3) == 0)
        x = x / PAGE * PAGE + below(r, 3) - 1;
    if (below(r, 6) == 0)
        x = x / CHUNK * CHUNK + below(r, 3) - 1;
    return x > max ? max : x;
}

static inline size_t some_length(struct rnd *r)
{
    switch (below(r, 4)) {
    case 0:
        return 1 + below(r, 20);
    case 1:
        return 1 + below(r, PAGE);
    case 2:
        return PAGE * (1 + below(r, 4));
    default:
        return 1 + below(r, 150000);
    }
}

/* A function: its arguments may draw numbers. */
static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);
    return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

/* ---- one file of the store over one of the PFS ---- */

struct model {
    struct file *f;
    struct pfs pfs;
    uint8_t *shadow;
    uint64_t size;
    /* Called in the middle of a flush, when bytes were copied and not yet said to be on the PFS. */
    void (*meanwhile)(struct model *m, struct rnd *r);
    void *arg;
    /* Bytes of a chunk from the PFS that come late. */
    uint8_t late[CHUNK];
    uint64_t late_index;
    struct version late_version;
    bool late_on_its_way;
};

/* The missing bytes come from the PFS as fetch.c and local.c bring them. */
static inline void fill_from_pfs(struct model *m, uint64_t off)
{
    uint8_t buf[CHUNK];
    struct file_info info;
    store_info(m->f, &info);
    uint64_t index = off / CHUNK, begin = index * CHUNK;
    if (begin >= info.base.size)
        return;
    size_t len = least(CHUNK, info.base.size - begin);
    pthread_mutex_lock(&m->pfs.mutex);
    memcpy(buf, m->pfs.bytes + begin, len);
    pthread_mutex_unlock(&m->pfs.mutex);
    int err = store_fill(m->f, &(struct clean_chunk){.index = index,
                                                     .version = info.base,
                                                     .buf = buf,
                                                     .len = len,
                                                     .hash = XXH3_64bits(buf, len),
                                                     .owned = next(&(struct rnd){off + 1}) & 1});
    ck_assert_msg(!err || err == -ESTALE || err == -ENOSPC, "store_fill: %s", strerror(-err));
}

/* A chunk is read from the PFS now and comes later, whatever happens between. */
static inline void late_fill(struct model *m, struct rnd *r)
{
    struct file_info info;
    store_info(m->f, &info);
    if (m->late_on_its_way) {
        size_t len = least(CHUNK, m->late_version.size - m->late_index * CHUNK);
        int err = store_fill(m->f, &(struct clean_chunk){.index = m->late_index,
                                                         .version = m->late_version,
                                                         .buf = m->late,
                                                         .len = len,
                                                         .hash = XXH3_64bits(m->late, len),
                                                         .owned = true});
        ck_assert(!err || err == -ESTALE || err == -ENOSPC);
        m->late_on_its_way = false;
    } else if (info.base.size) {
        m->late_version = info.base;
        m->late_index = below(r, info.base.size) / CHUNK;
        memcpy(m->late, m->pfs.bytes + m->late_index * CHUNK, CHUNK);
        m->late_on_its_way = true;
    }
}

/* Reads as local.c does; bytes that can not be kept are used from the PFS. */
static inline void read_model(struct model *m, uint8_t *buf, size_t len, uint64_t off)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = store_read(m->f, buf + done, len - done, off + done);
        ck_assert_int_ge(n, 0);
        done += (size_t)n;
        if (n)
            continue;
        uint64_t miss, miss_len;
        struct file_info info;
        store_info(m->f, &info);
        if (!store_missing(m->f, off + done, len - done, &miss, &miss_len) || miss != off + done)
            continue;
        if (below(&(struct rnd){off + 3}, 8)) {
            fill_from_pfs(m, miss);
            if (here(m->f, miss, 1))
                continue;
        }
        pthread_mutex_lock(&m->pfs.mutex);
        memcpy(buf + done, m->pfs.bytes + miss, miss_len);
        pthread_mutex_unlock(&m->pfs.mutex);
        done += miss_len;
    }
}

static inline void same_bytes(const uint8_t *have, const uint8_t *want, size_t len, uint64_t off,
                              const char *where)
{
    if (!memcmp(have, want, len))
        return;
    size_t i = 0;
    while (have[i] == want[i])
        i++;
    ck_abort_msg("%s: byte %llu (page %llu) is %u, should be %u", where,
                 (unsigned long long)(off + i), (unsigned long long)((off + i) / PAGE), have[i],
                 want[i]);
}

/* One pass as flush/copyout.c makes it.  fail: stops or fails somewhere.  Returns whether the file
 * is clean. */
static inline bool flush_model(struct model *m, struct rnd *r, bool fail)
{
    struct file_info info;
    struct snapshot *s = NULL;
    uint64_t from = 0;
    uint8_t *buf = malloc(FILE_MAX + PAGE);
    bool ok = true, clean = false;
    store_info(m->f, &info);
    if (!info.dirty) {
        free(buf);
        return true;
    }
    store_flush_begins(m->f);
    store_info(m->f, &info);
    for (;;) {
        int err = store_snapshot(m->f, from, PAGE + below(r, 500000), &s);
        ck_assert_int_eq(err, 0);
        if (s->cut != NO_CUT)
            pfs_resize(&m->pfs, s->cut);
        for (size_t i = 0; i < s->nextents && ok; i++) {
            struct extent *run = &s->extents[i];
            if (fail && below(r, 6) == 0) {
                ok = false;
                break;
            }
            memset(buf, 0, run->len);
            if (!run->hole)
                ck_assert_int_eq(store_pread(m->f, buf, run->len, run->off), 0);
            pfs_put(&m->pfs, buf, run->len, run->off);
            from = run->off + run->len;
        }
        if (m->meanwhile)
            m->meanwhile(m, r);
        if (!ok || s->last || !s->nextents)
            break;
        store_snapshot_done(s, true);
        s = NULL;
        if (m->meanwhile)
            m->meanwhile(m, r);
    }
    if (ok && m->pfs.v.size != s->size)
        pfs_resize(&m->pfs, s->size);
    pthread_mutex_lock(&m->pfs.mutex);
    pfs_touch(&m->pfs);
    struct version v = m->pfs.v;
    pthread_mutex_unlock(&m->pfs.mutex);
    store_snapshot_done(s, ok);
    if (m->meanwhile)
        m->meanwhile(m, r);
    if (ok)
        clean = store_flushed(m->f, &v, info.change, NULL);
    free(buf);
    return clean;
}

static inline int write_filled(struct model *m, const uint8_t *buf, size_t len, uint64_t off,
                               struct rnd *r)
{
    uint64_t fill;
    for (;;) {
        int err = store_write(m->f, buf, len, off, SPACE_CACHE, &fill);
        if (err == -ENODATA)
            fill_from_pfs(m, fill);
        else if (err == -ENOSPC && r)
            flush_model(m, r, false); /* write-through: makes room */
        else
            return err;
    }
}

/* ---- alone, with crashes ---- */

static inline void do_write(struct model *m, struct rnd *r)
{
    static uint8_t buf[200000];
    uint64_t off = some_offset(r, FILE_MAX - 1);
    size_t len = least(some_length(r), FILE_MAX - off);
    put_pattern(buf, len, off, next(r));
    int err = write_filled(m, buf, len, off, m->meanwhile ? r : NULL);
    if (err == -ENOSPC && !m->meanwhile)
        return; /* in the middle of a flush, which makes room when it ends */
    ck_assert_int_eq(err, 0);
    memcpy(m->shadow + off, buf, len);
    m->size = MAX(m->size, off + len);
}

static inline void do_append(struct model *m, struct rnd *r)
{
    static uint8_t buf[200000];
    size_t len = some_length(r);
    struct appended out;
    uint64_t fill;
    if (m->size + len > FILE_MAX)
        return;
    put_pattern(buf, len, m->size, next(r));
    int err;
    while ((err = store_append(m->f, buf, len, SPACE_CACHE, &out, &fill)))
        if (err == -ENODATA)
            fill_from_pfs(m, fill);
        else if (err == -ENOSPC && m->meanwhile)
            flush_model(m, r, false);
        else if (err == -ENOSPC)
            return;
        else
            ck_abort_msg("store_append: %s", strerror(-err));
    ck_assert_uint_eq(out.off, m->size);
    memcpy(m->shadow + out.off, buf, len);
    m->size += len;
}

static inline void do_truncate(struct model *m, struct rnd *r)
{
    uint64_t size = below(r, 3) ? some_offset(r, FILE_MAX) : some_offset(r, m->size), fill;
    ck_assert_int_eq(store_truncate(m->f, size, &fill), 0);
    if (size < m->size)
        memset(m->shadow + size, 0, m->size - size);
    m->size = size;
}

static inline void do_punch(struct model *m, struct rnd *r)
{
    uint64_t off = some_offset(r, FILE_MAX), len = some_length(r), fill;
    int err;
    while ((err = store_punch(m->f, off, len, SPACE_CACHE, &fill)) == -ENODATA)
        fill_from_pfs(m, fill);
    if (err == -ENOSPC)
        return;
    ck_assert_int_eq(err, 0);
    if (off < m->size)
        memset(m->shadow + off, 0, least(len, m->size - off));
}

static inline void do_read(struct model *m, struct rnd *r)
{
    static uint8_t buf[FILE_MAX];
    uint64_t off = some_offset(r, FILE_MAX);
    if (off >= m->size) {
        ck_assert_uint_eq(here(m->f, off, 10), 0);
        return;
    }
    size_t len = least(below(r, 4) ? some_length(r) : FILE_MAX, m->size - off);
    read_model(m, buf, len, off);
    same_bytes(buf, m->shadow + off, len, off, "read");
}

/* Another file's clean chunks push out what may go. */
static inline void do_evict(struct rnd *r)
{
    static uint8_t data[LIMIT];
    struct file *other = get_file(99, "other");
    struct version v = version_n(sizeof(data), 1 + below(r, 3));
    ck_assert_int_eq(store_set_version(other, &v, NULL), 0);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t index = below(r, sizeof(data) / CHUNK);
        int err = fill_chunk(other, index, &v, data, false);
        ck_assert(!err || err == -ENOSPC);
    }
    file_put(other);
}

/* Nobody is told; the next daemon finds it. */
static inline void do_reopen(struct model *m)
{
    struct file_info before, after;
    store_info(m->f, &before);
    file_put(m->f);
    store_close(false);
    open_store(LIMIT, CHUNK);
    m->f = get_file(1, "model");
    store_info(m->f, &after);
    ck_assert_uint_eq(after.size, before.size);
    ck_assert_uint_eq(after.dirty_bytes, before.dirty_bytes);
    ck_assert_uint_eq(after.cut, before.cut);
    ck_assert_uint_eq(after.base_end, before.base_end);
    ck_assert(after.dirty == before.dirty && after.mtime_ns == before.mtime_ns &&
              after.blocks == before.blocks);
}

/* The claim goes to another node, which writes, and comes back. */
static inline void do_give_away(struct model *m, struct rnd *r)
{
    static uint8_t buf[50000];
    while (!flush_model(m, r, false))
        ;
    same_bytes(m->pfs.bytes, m->shadow, FILE_MAX, 0, "PFS");
    struct version v = m->pfs.v;
    ck_assert(store_clear_claim(m->f, &v));
    if (below(r, 2)) {
        uint64_t off = some_offset(r, FILE_MAX - sizeof(buf));
        put_pattern(buf, sizeof(buf), off, next(r));
        pfs_put(&m->pfs, buf, sizeof(buf), off);
        memcpy(m->shadow + off, buf, sizeof(buf));
        m->size = m->pfs.v.size;
    }
    do_evict(r);
    if (below(r, 2))
        ck_assert_int_eq(store_set_version(m->f, &m->pfs.v, NULL), 0);
    v = m->pfs.v;
    store_set_claim(m->f, 2, next(r), &v);
    if (below(r, 4) == 0) { /* opened with O_TRUNC */
        uint64_t fill;
        ck_assert_int_eq(store_truncate(m->f, 0, &fill), 0);
        memset(m->shadow, 0, FILE_MAX);
        m->size = 0;
    }
}

/* What an application, another node's bytes and the want of room do while a flush runs. */
static inline void in_the_middle(struct model *m, struct rnd *r)
{
    m->meanwhile = NULL;
    for (uint64_t n = below(r, 4); n; n--)
        switch (below(r, 10)) {
        case 0:
        case 1:
        case 2:
            do_write(m, r);
            break;
        case 3:
            do_append(m, r);
            break;
        case 4:
            do_truncate(m, r);
            break;
        case 5:
            do_punch(m, r);
            break;
        case 6:
            do_evict(r);
            break;
        case 7:
            late_fill(m, r);
            break;
        default:
            do_read(m, r);
            break;
        }
    m->meanwhile = in_the_middle;
}

static inline void one_step(struct model *m, struct rnd *r)
{
    switch (below(r, 25)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        do_write(m, r);
        break;
    case 5:
    case 6:
        do_append(m, r);
        break;
    case 7:
    case 8:
        do_truncate(m, r);
        break;
    case 9:
    case 10:
        do_punch(m, r);
        break;
    case 11:
    case 12:
    case 13:
        flush_model(m, r, true);
        break;
    case 14:
        flush_model(m, r, false);
        break;
    case 15:
        do_evict(r);
        break;
    case 16:
        do_reopen(m);
        break;
    case 17:
        do_give_away(m, r);
        break;
    case 18:
        ck_assert_int_eq(store_sync(m->f), 0);
        break;
    case 19:
        late_fill(m, r);
        break;
    default:
        do_read(m, r);
        break;
    }
    struct file_info info;
    store_info(m->f, &info);
    ck_assert_uint_eq(info.size, m->size);
}

static inline void model_init(struct model *m)
{
    memset(m, 0, sizeof(*m));
    pfs_init(&m->pfs);
    m->shadow = calloc(1, FILE_MAX + PAGE);
    m->f = new_file(1, "model");
}

static inline void model_finish(struct model *m, struct rnd *r)
{
    m->meanwhile = NULL;
    uint8_t *buf = malloc(FILE_MAX);
    read_model(m, buf, m->size, 0);
    same_bytes(buf, m->shadow, m->size, 0, "at the end");
    while (!flush_model(m, r, false))
        ;
    ck_assert_uint_eq(m->pfs.v.size, m->size);
    same_bytes(m->pfs.bytes, m->shadow, FILE_MAX, 0, "PFS at the end");
    struct store_usage u;
    store_usage(&u);
    ck_assert_uint_eq(u.dirty, 0);
    store_clear_claim(m->f, &m->pfs.v);
    file_put(m->f);
    free(buf);
    free(m->shadow);
    free(m->pfs.bytes);
}

static inline void model_setup(void)
{
    dir_setup();
    open_store(LIMIT, CHUNK);
}

static inline void model_teardown(void)
{
    store_close(false);
    dir_teardown();
}

#endif
