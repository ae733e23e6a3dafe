/* test_kernel_io_flush.c - flushing files that the kernel's writers change at any time: what changed is
 * found and copied, once, and what changes meanwhile is copied again.
 */
#include "kernel_io_help.h"

#include "placement/store/datafile.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

/* begin_flush, while somebody stores a byte (and bytes[at] is that): after the mark, before the copy. */
static struct flush copy_beside(struct file *f, uint8_t *pfs, int fd, uint64_t at)
{
    struct flush fl = {.v = version_n(0, 9)};
    struct snapshot *s;
    ck_assert_int_eq(kernel_io_mark(f, NULL, NULL), 0);
    store_flush_begins(f);
    bytes[at] ^= 0x55;
    put(fd, bytes + at, 1, at);
    struct file_info info = info_of(f);
    fl.change = info.change;
    ck_assert_int_eq(store_snapshot(f, 0, 64 * MIB, &s), 0);
    fl.v.size = s->size;
    fl.v.mtime_ns = s->mtime_ns;
    for (size_t i = 0; i < s->nextents; i++) {
        const struct extent *r = &s->extents[i];
        /* its hash must be one of the very bytes that the PFS gets */
        ck_assert_ptr_null(store_view(f, r->len, r->off));
        ck_assert_int_eq(store_pread(f, pfs + r->off, r->len, r->off), 0);
        kernel_io_copied(f, pfs + r->off, r->len, r->off, s->size);
        fl.bytes += r->len;
    }
    store_snapshot_done(s, true);
    return fl;
}

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
    ck_assert_msg(info_of(f).kernel_io, "clean for good beside an open writer");
    ck_assert(!store_clear_claim(f, NULL));
    close(fd);
    kernel_io_close(f, life, true);
    ck_assert(!info_of(f).kernel_io);
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

/* Else a daemon that died in the run would take the file on the PFS for somebody else's: as its bytes are not the last ones
 * here, or as it was changed after the note (flush/made.c). */
START_TEST(a_note_of_a_run_is_neither_early_nor_a_grain_later_than_what_the_kernel_writes_after_it)
{
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    store_flush_begins(f);
    for (int n = 0; n < 50; n++) {
        put(fd, bytes, 1, 0);
        int64_t before = real_ns();
        store_flush_changes(f, 0, PAGE);
        put(fd, bytes, 1, 0);
        struct file_info info = info_of(f);
        ck_assert_int_ge(info.trace.v.ctime_ns, before);
        ck_assert_int_gt(info.ctime_ns, info.trace.v.ctime_ns - STORE_GRAIN_NS);
    }
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

/* The next snapshot of the same flush begins with the cut. */
START_TEST(what_was_copied_and_is_cut_off_in_the_same_flush_is_copied_again)
{
    uint8_t pfs[SIZE];
    uint64_t unused, cut = CHUNK + CHUNK / 2;
    struct snapshot *s;
    struct file *f = new_file(1, "log");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_WRONLY);
    put(fd, bytes, SIZE, 0);
    struct flush fl = copy_beside(f, pfs, fd, 9);
    ck_assert_int_eq(store_truncate(f, cut, &unused), 0);
    put(fd, bytes + cut, SIZE - cut, cut); /* the same again */
    ck_assert_int_eq(store_snapshot(f, 0, 64 * MIB, &s), 0);
    ck_assert_uint_eq(s->cut, cut);
    memset(pfs + cut, 0, SIZE - cut);
    for (size_t i = 0; i < s->nextents; i++)
        ck_assert_int_eq(store_pread(f, pfs + s->extents[i].off, s->extents[i].len, s->extents[i].off), 0);
    store_snapshot_done(s, true);
    ck_assert(!store_flushed(f, &fl.v, fl.change, NULL));
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

/* The kernel's writers know of no limit; what they have stored takes records to be flushed. */
START_TEST(a_file_beyond_the_caches_limit_is_marked)
{
    struct file *f = new_file(1, "long");
    unsigned life = open_pass(f, true);
    int fd = open_backing(f, O_RDWR);
    for (uint64_t off = 0; off < 80 * MIB; off += SIZE) /* the limit is 64 */
        put(fd, bytes, SIZE, off);
    for (uint64_t off = 80 * MIB; off < 1024 * MIB; off += CHUNK)
        put(fd, bytes, 1, off); /* records for more chunks than one slab has */
    sample();
    ck_assert_uint_gt(info_of(f).dirty_bytes, 64 * MIB);
    ck_assert_int_eq(kernel_io_mark(f, NULL, NULL), 0);
    ck_assert_uint_ge(info_of(f).dirty_bytes, 80 * MIB + 944 * MIB / CHUNK * PAGE);
    struct store_usage u;
    store_usage(&u);
    ck_assert_uint_eq(u.chunks, 1024 * MIB / CHUNK);
    end_writing(f, life, fd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernel_io_flush");
    tcase_add_checked_fixture(t, pass_setup, pass_teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_the_kernel_stores_is_found_flushed_and_clean_when_nobody_is_left);
    tcase_add_test(t, only_chunks_that_changed_are_copied_again);
    tcase_add_test(t, a_store_during_the_copy_is_copied_again);
    tcase_add_test(t, a_note_of_a_run_is_neither_early_nor_a_grain_later_than_what_the_kernel_writes_after_it);
    tcase_add_test(t, beside_a_writer_each_chunk_is_copied_once);
    tcase_add_test(t, a_store_before_the_copy_of_its_chunk_is_known_to_be_copied);
    tcase_add_test(t, what_was_copied_and_cut_off_is_copied_again);
    tcase_add_test(t, what_was_copied_and_is_cut_off_in_the_same_flush_is_copied_again);
    tcase_add_test(t, a_truncation_during_the_copy_is_copied_again);
    tcase_add_test(t, a_file_beyond_the_caches_limit_is_marked);
    return run_case("kernel_io_flush", t);
}
