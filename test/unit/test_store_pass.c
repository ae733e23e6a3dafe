/* test_store_pass.c - files that the kernel reads and writes: here by descriptors and mappings of
 * the data file, as the kernel's are. */
#include "store_help.h"
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "placement/datafile.h"

#define CHUNK (64 * KIB)
#define SIZE  (4 * CHUNK)

static uint8_t *bytes; /* SIZE, a pattern */

static void setup(void)
{
    dir_setup();
    open_store(64 * MIB, CHUNK);
    bytes = malloc(SIZE);
    put_pattern(bytes, SIZE, 0, 3);
}

static void teardown(void)
{
    free(bytes);
    store_close(false);
    dir_teardown();
}

/* What the kernel does when the open was answered. */
static int open_backing(struct file *f, int flags)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/data/%02x/%016llx%016llx", cache_dir,
             (unsigned)(f->fid.lo & 0xff), (unsigned long long)f->fid.hi,
             (unsigned long long)f->fid.lo);
    int fd = open(path, flags | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    return fd;
}

static unsigned open_pass(struct file *f, bool write)
{
    int fd;
    unsigned life;
    int err = store_pass_open(f, write, &fd, &life);
    ck_assert_msg(!err, "store_pass_open: %s", strerror(-err));
    close(fd);
    return life;
}

static void put(int fd, const void *buf, size_t len, uint64_t off)
{
    ck_assert_int_eq(pwrite(fd, buf, len, (off_t)off), (ssize_t)len);
}

struct flush {
    uint64_t change, bytes;
    struct version v;
};

/* The copy-out up to the moment when the PFS has the bytes. */
static struct flush begin_flush(struct file *f, uint8_t *pfs)
{
    struct flush fl = {.v = version_n(0, 9)};
    struct snapshot *s;
    ck_assert_int_eq(store_pass_mark(f, NULL, NULL), 0);
    store_flush_begins(f);
    struct file_info info = info_of(f);
    fl.change = info.change;
    fl.v.size = info.size;
    fl.v.mtime_ns = info.mtime_ns;
    if (store_snapshot(f, 0, 64 * MIB, &s))
        return fl;
    for (size_t i = 0; i < s->nruns; i++) {
        if (s->runs[i].hole)
            memset(pfs + s->runs[i].off, 0, s->runs[i].len);
        else
            ck_assert_int_eq(store_pread(f, pfs + s->runs[i].off, s->runs[i].len, s->runs[i].off),
                             0);
        fl.bytes += s->runs[i].len;
    }
    store_snapshot_done(s, true);
    return fl;
}

/* The same while somebody stores a byte (and bytes[at] is that): after the mark, before the copy. */
static struct flush copy_beside(struct file *f, uint8_t *pfs, int fd, uint64_t at)
{
    struct flush fl = {.v = version_n(0, 9)};
    struct snapshot *s;
    ck_assert_int_eq(store_pass_mark(f, NULL, NULL), 0);
    store_flush_begins(f);
    bytes[at] ^= 0x55;
    put(fd, bytes + at, 1, at);
    struct file_info info = info_of(f);
    fl.change = info.change;
    ck_assert_int_eq(store_snapshot(f, 0, 64 * MIB, &s), 0);
    fl.v.size = s->size;
    fl.v.mtime_ns = s->mtime_ns;
    for (size_t i = 0; i < s->nruns; i++) {
        const struct run *r = &s->runs[i];
        /* its hash must be one of the very bytes that the PFS gets */
        ck_assert_ptr_null(store_view(f, r->len, r->off));
        ck_assert_int_eq(store_pread(f, pfs + r->off, r->len, r->off), 0);
        store_pass_copied(f, pfs + r->off, r->len, r->off, s->size);
        fl.bytes += r->len;
    }
    store_snapshot_done(s, true);
    return fl;
}

static bool flush(struct file *f, uint8_t *pfs)
{
    struct flush fl = begin_flush(f, pfs);
    return store_flushed(f, &fl.v, fl.change, NULL);
}

static void no_news(struct file *f)
{
    (void)f;
}

/* The sampler's turn: true if somebody may still store into something. */
static bool sample(void)
{
    return store_pass_sample(no_news, no_news) > 0;
}

static void end_writing(struct file *f, unsigned life, int fd)
{
    close(fd);
    store_pass_close(f, life, true);
    sample();
    file_put(f);
}

static struct file *whole_file(uint64_t n, const struct version *v)
{
    struct file *f = get_file(n, "whole");
    ck_assert_int_eq(store_set_version(f, v, NULL), 0);
    for (unsigned i = 0; i < SIZE / CHUNK; i++)
        ck_assert_int_eq(fill_chunk(f, i, v, bytes, true), 0);
    return f;
}

START_TEST(only_whole_files_are_given_to_the_kernel)
{
    struct version v = version_n(SIZE, 5);
    struct file *f = get_file(1, "a");
    int fd;
    unsigned life;
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    ck_assert_int_eq(store_pass_open(f, false, &fd, &life), -ENODATA);
    ck_assert_int_eq(fill_chunk(f, 0, &v, bytes, true), 0);
    ck_assert_int_eq(store_pass_open(f, false, &fd, &life), -ENODATA);
    for (unsigned i = 1; i < SIZE / CHUNK; i++)
        ck_assert_int_eq(fill_chunk(f, i, &v, bytes, true), 0);
    life = open_pass(f, false);
    ck_assert_uint_eq(store_pass_pinned(), SIZE);
    ck_assert(!info_of(f).pass);
    store_pass_close(f, life, false);
    ck_assert_uint_eq(store_pass_pinned(), 0);
    file_put(f);
}
END_TEST

/* A lull begins at the last store, however late it is seen. */
START_TEST(it_is_known_when_the_kernel_stored_last)
{
    struct file *f = new_file(1, "log");
    ck_assert_uint_eq(store_pass_age_ms(f), 0);
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    uint64_t began = boot_ms();
    put(fd, bytes, PAGE, 0);
    usleep(300000);
    sample();
    uint64_t age = store_pass_age_ms(f);
    ck_assert_uint_ge(age, 290);
    ck_assert_uint_le(age, boot_ms() - began + 20); /* the file system's clock is that coarse */
    end_writing(f, life, fd);
}
END_TEST

START_TEST(what_the_kernel_stores_is_found_flushed_and_clean_when_nobody_is_left)
{
    uint8_t pfs[SIZE] = {0};
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    ck_assert(!info_of(f).dirty);
    put(fd, bytes, SIZE, 0);
    ck_assert_uint_eq(info_of(f).size, SIZE);
    ck_assert(info_of(f).dirty);
    read_is(f, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    ck_assert(!info_of(f).dirty);
    ck_assert_msg(info_of(f).pass, "clean for good beside an open writer");
    ck_assert(!store_clear_claim(f, NULL));
    close(fd);
    store_pass_close(f, life, true);
    ck_assert(!info_of(f).pass);
    ck_assert(!sample());
    ck_assert(store_clear_claim(f, NULL));
    file_put(f);
}
END_TEST

START_TEST(only_chunks_that_changed_are_copied_again)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    put(fd, "!", 1, CHUNK + 17);
    ck_assert(info_of(f).dirty);
    struct flush fl = begin_flush(f, pfs);
    ck_assert_uint_eq(fl.bytes, CHUNK);
    ck_assert(store_flushed(f, &fl.v, fl.change, NULL));
    bytes[CHUNK + 17] = '!';
    ck_assert_mem_eq(pfs, bytes, SIZE);
    end_writing(f, life, fd);
}
END_TEST

/* The bytes that were hashed need not be those that were copied. */
START_TEST(a_store_during_the_copy_is_copied_again)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    struct flush fl = begin_flush(f, pfs);
    put(fd, "??", 2, 5);
    put(fd, bytes + 5, 2, 5); /* even if it is what was hashed */
    pfs[5] = 'x';             /* and not what was copied */
    ck_assert(!store_flushed(f, &fl.v, fl.change, NULL));
    ck_assert(info_of(f).dirty);
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    end_writing(f, life, fd);
}
END_TEST

/* What is copied while somebody writes is compared the next time, not copied again. */
START_TEST(beside_a_writer_each_chunk_is_copied_once)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE - 100, 0);
    struct flush fl = copy_beside(f, pfs, fd, 3 * CHUNK + 17);
    ck_assert_uint_eq(fl.bytes, SIZE - 100);
    ck_assert(!store_flushed(f, &fl.v, fl.change, NULL));
    put(fd, bytes + SIZE - 100, 100, SIZE - 100);
    put(fd, "??", 2, 5);
    memcpy(bytes + 5, "??", 2);
    fl = begin_flush(f, pfs);
    ck_assert_uint_eq(fl.bytes, 2 * CHUNK);
    ck_assert(store_flushed(f, &fl.v, fl.change, NULL));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    end_writing(f, life, fd);
}
END_TEST

/* What the PFS was given counts, not what was found before that, or after. */
START_TEST(a_store_before_the_copy_of_its_chunk_is_known_to_be_copied)
{
    uint8_t pfs[SIZE], was[CHUNK];
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    memcpy(was, bytes, CHUNK);
    struct flush fl = copy_beside(f, pfs, fd, 9); /* chunk 0: marked, changed, copied */
    ck_assert_uint_ne(pfs[9], was[9]);
    ck_assert(!store_flushed(f, &fl.v, fl.change, NULL));
    put(fd, was, CHUNK, 0); /* as it was marked, and not as the PFS has it */
    bytes[9] = was[9];
    fl = begin_flush(f, pfs);
    ck_assert_uint_eq(fl.bytes, CHUNK);
    ck_assert(store_flushed(f, &fl.v, fl.change, NULL));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    end_writing(f, life, fd);
}
END_TEST

START_TEST(what_was_copied_and_cut_off_is_copied_again)
{
    uint8_t pfs[SIZE];
    uint64_t unused;
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    struct flush fl = copy_beside(f, pfs, fd, 9);
    ck_assert_int_eq(store_truncate(f, CHUNK, &unused), 0);
    put(fd, bytes + CHUNK, SIZE - CHUNK, CHUNK); /* the same again */
    ck_assert(!store_flushed(f, &fl.v, fl.change, NULL));
    memset(pfs + CHUNK, 0, SIZE - CHUNK); /* what the cut does, which comes first */
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    end_writing(f, life, fd);
}
END_TEST

START_TEST(a_truncation_during_the_copy_is_copied_again)
{
    uint8_t pfs[SIZE];
    uint64_t unused;
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    struct flush fl = begin_flush(f, pfs);
    ck_assert_int_eq(store_truncate(f, 0, &unused), 0);
    put(fd, bytes, CHUNK, 0);
    ck_assert(!store_flushed(f, &fl.v, fl.change, NULL));
    ck_assert_uint_eq(info_of(f).size, CHUNK);
    memset(pfs, 0, sizeof(pfs));
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, CHUNK);
    end_writing(f, life, fd);
}
END_TEST

START_TEST(a_mapping_that_outlives_its_close_keeps_the_file_unfinished)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "mapped");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    put(fd, bytes, SIZE, 0);
    uint8_t *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    close(fd);
    store_pass_close(f, life, true);
    ck_assert(flush(f, pfs));
    ck_assert(sample());
    ck_assert(info_of(f).pass);
    for (unsigned n = 0; n < 3; n++) {
        map[n * CHUNK + 100] = bytes[n * CHUNK + 100] = 'm';
        ck_assert(info_of(f).dirty);
        ck_assert(flush(f, pfs));
        ck_assert_mem_eq(pfs, bytes, SIZE);
    }
    munmap(map, SIZE);
    ck_assert(!sample());
    ck_assert(!info_of(f).pass && !info_of(f).dirty);
    file_put(f);
}
END_TEST

/* A write whose time stamps are moved when it begins, and whose bytes come after the flush has read
 * them. */
static void put_late(struct file *f, int fd, const void *buf, size_t len, uint64_t off)
{
    struct stat st;
    put(fd, buf, len, off);
    ck_assert_int_eq(fstat(fd, &st), 0);
    f->pass.seen.mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    f->pass.seen.ctime_ns = st.st_ctim.tv_sec * INT64_C(1000000000) + st.st_ctim.tv_nsec;
}

START_TEST(a_direct_write_that_a_flush_has_missed_is_found_at_the_close)
{
    uint8_t pfs[SIZE] = {0};
    struct file *f = new_file(1, "direct");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    store_pass_direct(f);
    put(fd, bytes, SIZE, 0);
    flush(f, pfs);
    ck_assert_mem_eq(pfs, bytes, SIZE);
    ck_assert(!info_of(f).dirty);
    put_late(f, fd, "late", 4, CHUNK);
    memcpy(bytes + CHUNK, "late", 4);
    ck_assert(!info_of(f).dirty); /* nothing shows it */
    close(fd);
    store_pass_close(f, life, true);
    ck_assert(info_of(f).dirty);
    struct flush fl = begin_flush(f, pfs);
    ck_assert_uint_eq(fl.bytes, CHUNK); /* of the others the hash is the same */
    ck_assert(store_flushed(f, &fl.v, fl.change, NULL));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    ck_assert(!info_of(f).dirty && !info_of(f).pass);
    sample();
    file_put(f);
}
END_TEST

START_TEST(who_has_an_older_version_open_or_mapped_keeps_it)
{
    struct version v = version_n(SIZE, 5), w = version_n(SIZE, 6);
    struct file *f = whole_file(1, &v);
    unsigned life = open_pass(f, false);
    int fd = open_backing(f, O_RDONLY);
    uint8_t *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0), got[SIZE];
    ck_assert_ptr_ne(map, MAP_FAILED);
    ck_assert_int_eq(store_set_version(f, &w, NULL), 0);
    ck_assert_uint_ne(f->pass.life, life);
    ck_assert_int_eq(pread(fd, got, SIZE, 0), SIZE);
    ck_assert_mem_eq(got, bytes, SIZE);
    uint64_t off, len;
    ck_assert(store_missing(f, 0, SIZE, &off, &len));
    close(fd);
    store_pass_close(f, life, false);
    ck_assert_mem_eq(map, bytes, SIZE);
    ck_assert_uint_eq(store_pass_pinned(), 0);
    munmap(map, SIZE);
    file_put(f);
}
END_TEST

static bool is_missing(struct file *f)
{
    uint64_t off, len;
    return store_missing(f, 0, SIZE, &off, &len);
}

/* Fills the store with other files until something of f is gone; false: it never is. */
static bool pressure_evicts(struct file *f)
{
    struct version v = version_n(SIZE, 7);
    for (uint64_t n = 100; n < 700 && !is_missing(f); n++)
        file_put(whole_file(n, &v));
    return is_missing(f);
}

START_TEST(what_is_open_or_mapped_is_not_evicted)
{
    struct version v = version_n(SIZE, 5);
    struct file *f = whole_file(1, &v);
    unsigned life = open_pass(f, false);
    int fd = open_backing(f, O_RDONLY);
    uint8_t *map = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    close(fd);
    ck_assert(!pressure_evicts(f));
    store_pass_close(f, life, false);
    ck_assert_msg(!pressure_evicts(f), "evicted under a mapping");
    ck_assert_mem_eq(map, bytes, SIZE);
    munmap(map, SIZE);
    ck_assert(pressure_evicts(f));
    file_put(f);
}
END_TEST

/* Its bits say that the chunk is clean; the data file does not. */
START_TEST(what_was_stored_since_the_last_flush_is_not_evicted)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    put(fd, "new", 3, CHUNK);
    memcpy(bytes + CHUNK, "new", 3);
    close(fd);
    store_pass_close(f, life, true);
    struct version v = version_n(SIZE, 7);
    for (uint64_t n = 100; n < 700; n++)
        file_put(whole_file(n, &v));
    read_is(f, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    sample();
    file_put(f);
}
END_TEST

/* fallocate beside a writer that the kernel serves, who is farther on already. */
START_TEST(fallocate_never_shortens)
{
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    ck_assert_int_eq(store_allocate(f, 0, CHUNK, false), 0);
    read_is(f, bytes, SIZE, 0);
    ck_assert_int_eq(store_allocate(f, SIZE, CHUNK, false), 0);
    ck_assert_uint_eq(info_of(f).size, SIZE + CHUNK);
    read_is(f, bytes, SIZE, 0);
    end_writing(f, life, fd);
}
END_TEST

START_TEST(what_is_stored_after_the_daemons_death_is_found)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "survivor");
    open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, CHUNK, 0);
    store_pass_forget();
    file_put(f);
    store_close(false);
    put(fd, bytes + CHUNK, SIZE - CHUNK, CHUNK);
    open_store(64 * MIB, CHUNK);
    f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(info_of(f).size, SIZE);
    ck_assert(info_of(f).dirty && info_of(f).pass);
    read_is(f, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    ck_assert_msg(sample(), "finished beside a descriptor that can write");
    put(fd, "later", 5, 0);
    ck_assert(info_of(f).dirty);
    close(fd);
    ck_assert(flush(f, pfs));
    ck_assert(!memcmp(pfs, "later", 5));
    ck_assert(!sample() && !info_of(f).pass);
    file_put(f);
}
END_TEST

/* Carried writes and appends of other nodes beside the kernel's writer. */
START_TEST(our_own_changes_and_the_kernels_go_together)
{
    uint64_t at, unused;
    struct file *f = new_file(1, "both");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    put(fd, "kernel", 6, 0);
    ck_assert_int_eq(store_append(f, "ours", 4, &at, &unused), 0);
    ck_assert_uint_eq(at, 6);
    put(fd, "K", 1, 0);
    write_ok(f, "O", 1, 6);
    read_is(f, "KernelOurs", 10, 0);
    ck_assert_int_eq(store_punch(f, 1, 2, &unused), 0);
    read_is(f, "K\0\0nelOurs", 10, 0);
    ck_assert_int_eq(store_truncate(f, 3 * CHUNK, &unused), 0);
    struct stat st;
    ck_assert(!fstat(fd, &st) && (uint64_t)st.st_size == 3 * CHUNK);
    end_writing(f, life, fd);
}
END_TEST

START_TEST(closed_files_are_not_looked_at_until_somebody_can_store_again)
{
    uint8_t pfs[SIZE] = {0};
    struct file *f = new_file(1, "many");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    put(fd, bytes, SIZE, 0);
    void *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(map != MAP_FAILED);
    close(fd);
    store_pass_close(f, life, true);
    sample(); /* finds what was stored */
    ck_assert_msg(sample(), "not looked at beside a mapping");
    munmap(map, SIZE);
    ck_assert_msg(!sample(), "looked at, and nobody can store");
    ck_assert(info_of(f).dirty);

    life = open_pass(f, true);
    fd = open_backing(f, O_WRONLY);
    ck_assert(sample());
    put(fd, "new", 3, 0);
    memcpy(bytes, "new", 3);
    read_is(f, bytes, SIZE, 0);
    close(fd);
    store_pass_close(f, life, true);
    ck_assert_msg(f->pass.closed && !f->pass.prev, "what the close proved is left to the sampler");
    ck_assert(!sample());
    ck_assert(flush(f, pfs));
    ck_assert_mem_eq(pfs, bytes, SIZE);
    ck_assert(!info_of(f).dirty);
    sample();
    file_put(f);
}
END_TEST

/* The proof that nobody can store may fail for a moment: who closes is not gone at once. */
START_TEST(a_flushed_file_is_clean_once_its_last_writer_has_really_gone)
{
    uint8_t pfs[SIZE] = {0};
    struct file *f = new_file(1, "late");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR), late = open_backing(f, O_RDWR);
    put(fd, bytes, SIZE, 0);
    ck_assert(flush(f, pfs));
    close(fd);
    store_pass_close(f, life, true);
    ck_assert_msg(sample(), "not looked at, with a writer left");
    ck_assert(info_of(f).pass);
    close(late);
    sample();
    ck_assert(!info_of(f).pass);

    life = open_pass(f, true);
    fd = open_backing(f, O_RDWR);
    put(fd, "new", 3, 0);
    memcpy(bytes, "new", 3);
    close(fd);
    store_pass_close(f, life, true);
    ck_assert_msg(!f->pass.prev, "looked at, and nobody can store");
    struct flush fl = begin_flush(f, pfs);
    sample();
    ck_assert_msg(!f->pass.prev, "looked at during its flush");
    late = open_backing(f, O_RDWR);
    ck_assert(store_flushed(f, &fl.v, fl.change, NULL));
    ck_assert_msg(sample(), "not looked at after a flush that could not prove it");
    close(late);
    sample();
    ck_assert(!info_of(f).pass);
    ck_assert_mem_eq(pfs, bytes, SIZE);
    file_put(f);
}
END_TEST

static uint8_t *mapped;
static _Atomic bool over;

static void *store_into_it(void *arg)
{
    (void)arg;
    for (uint8_t n = 0; !over; n++)
        for (uint64_t at = 0; at < CHUNK; at += PAGE)
            *(volatile uint8_t *)(mapped + at) = n;
    return NULL;
}

/* O_DIRECT writes beside stores until the kernel tells of a collision.  False: it does not. */
static bool collide(struct file *f)
{
    pthread_t thread;
    int direct = open_backing(f, O_RDWR | O_DIRECT), told = open_backing(f, O_RDWR);
    uint8_t *page = aligned_alloc(PAGE, CHUNK);
    bool did = false;
    memset(page, 7, CHUNK);
    mapped = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, told, 0);
    ck_assert_ptr_ne(mapped, MAP_FAILED);
    over = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, store_into_it, NULL), 0);
    for (unsigned i = 0; i < 20000 && !did; i++) {
        put(direct, page, CHUNK, 0);
        did = i % 50 == 0 && fdatasync(told) < 0 && errno == EIO;
    }
    over = true;
    pthread_join(thread, NULL);
    munmap(mapped, CHUNK);
    free(page);
    close(direct);
    close(told);
    return did;
}

START_TEST(writes_that_collide_with_stores_are_flushed)
{
    uint8_t pfs[SIZE];
    struct file *f = new_file(1, "f");
    int fd;
    write_ok(f, bytes, SIZE, 0);
    unsigned life = open_pass(f, true);
    store_pass_direct(f);
    ck_assert_int_eq(datafile_get(f, false, &fd), 0); /* the kernel tells who has it open already */
    bool did = collide(f);
    flush(f, pfs);
    ck_assert_int_eq(pread(fd, bytes, SIZE, 0), SIZE);
    datafile_put(f);
    store_pass_close(f, life, true);
    file_put(f);
    if (!did)
        NOT_CHECKED("this kernel tells of no collision");
    ck_assert_mem_eq(pfs, bytes, SIZE);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("store_pass");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, only_whole_files_are_given_to_the_kernel);
    tcase_add_test(t, it_is_known_when_the_kernel_stored_last);
    tcase_add_test(t, what_the_kernel_stores_is_found_flushed_and_clean_when_nobody_is_left);
    tcase_add_test(t, only_chunks_that_changed_are_copied_again);
    tcase_add_test(t, a_store_during_the_copy_is_copied_again);
    tcase_add_test(t, beside_a_writer_each_chunk_is_copied_once);
    tcase_add_test(t, a_store_before_the_copy_of_its_chunk_is_known_to_be_copied);
    tcase_add_test(t, what_was_copied_and_cut_off_is_copied_again);
    tcase_add_test(t, a_truncation_during_the_copy_is_copied_again);
    tcase_add_test(t, a_mapping_that_outlives_its_close_keeps_the_file_unfinished);
    tcase_add_test(t, a_direct_write_that_a_flush_has_missed_is_found_at_the_close);
    tcase_add_test(t, who_has_an_older_version_open_or_mapped_keeps_it);
    tcase_add_test(t, what_is_open_or_mapped_is_not_evicted);
    tcase_add_test(t, what_was_stored_since_the_last_flush_is_not_evicted);
    tcase_add_test(t, fallocate_never_shortens);
    tcase_add_test(t, what_is_stored_after_the_daemons_death_is_found);
    tcase_add_test(t, our_own_changes_and_the_kernels_go_together);
    tcase_add_test(t, closed_files_are_not_looked_at_until_somebody_can_store_again);
    tcase_add_test(t, a_flushed_file_is_clean_once_its_last_writer_has_really_gone);
    tcase_add_test(t, writes_that_collide_with_stores_are_flushed);
    return run_case("store_pass", t);
}
