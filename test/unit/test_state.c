/* test_state.c - records and indexes, torn and damaged ones, the disk format, and what a power loss
 * leaves. */
#include "store_help.h"
#include "golden.h"
#include "suite.h"

#include <stddef.h>

#include "placement/cachedir.h"
#include "placement/state_int.h"

#define CHUNK (64 * KIB)
#define LIMIT (8 * MIB)

static int slabs_fd;

static void setup_state(void)
{
    struct state_report rep;
    dir_setup();
    ck_assert_int_eq(mkdir(cache_dir, 0700), 0);
    slabs_fd = open(cache_dir, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(slabs_fd, 0);
    ck_assert_int_eq(state_open(slabs_fd, CHUNK, "this boot", &rep), 0);
    ck_assert_int_eq(state_start(), 0);
}

static void reopen_state(struct state_report *rep)
{
    ck_assert_int_eq(state_close(false), 0);
    ck_assert_int_eq(state_open(slabs_fd, CHUNK, "this boot", rep), 0);
}

static void teardown_state(void)
{
    state_close(false);
    close(slabs_fd);
    dir_teardown();
}

static void slots(enum slab_kind kind, uint32_t n)
{
    while (!state_reserve(kind, n))
        ck_assert_int_eq(state_grow(kind, SLAB_MIN_SIZE), 0);
}

/* ---- indexes ---- */

#define MANY 3000

START_TEST(records_are_found_by_their_keys_however_they_come_and_go)
{
    static struct file_record *file[MANY];
    static unsigned chunks[MANY];
    struct state_report rep;
    uint64_t seed = random_u64() | 1;
    printf("seed %llu\n", (unsigned long long)seed);
    for (unsigned round = 0; round < 60000; round++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        unsigned i = (unsigned)(seed % MANY), index = (unsigned)(seed >> 40) % 4;
        struct fid fid = {i % 7, i + 1}; /* close to each other */
        ck_assert_ptr_eq(state_file_find(fid), file[i]);
        if (!file[i]) {
            slots(SLAB_FILES, 1);
            file[i] = state_file_new(fid);
            chunks[i] = 0;
            continue;
        }
        struct chunk_record *c = state_chunk_find(fid, index);
        ck_assert((c != NULL) == (chunks[i] >> index & 1));
        if (c) {
            ck_assert(c->index == index && fid_eq(c->fid, fid));
            state_chunk_free(file[i], c);
            chunks[i] &= ~(1u << index);
        } else if (seed >> 60 && (chunks[i] || seed >> 61)) {
            slots(SLAB_CHUNKS, 1);
            state_chunk_new(file[i], index);
            chunks[i] |= 1u << index;
        } else if (!chunks[i]) {
            state_file_free(file[i]);
            file[i] = NULL;
        }
    }
    reopen_state(&rep);
    ck_assert_uint_eq(rep.torn_files + rep.torn_chunks + rep.torn_paths + rep.damaged_slabs, 0);
    for (unsigned i = 0; i < MANY; i++) {
        struct file_record *r = state_file_find((struct fid){i % 7, i + 1});
        ck_assert((r != NULL) == (file[i] != NULL));
        unsigned seen = 0;
        struct chunk_record *c;
        for (uint32_t no = r ? r->first_chunk : SLOT_NONE; (c = state_chunk_at(no));
             no = c->file_next)
            seen |= 1u << c->index;
        ck_assert_uint_eq(seen, file[i] ? chunks[i] : 0);
    }
}
END_TEST

/* ---- torn records ---- */

static struct file_record *make_file(uint64_t n, const char *path)
{
    slots(SLAB_FILES, 1 + state_path_slots(strlen(path)));
    struct file_record *r = state_file_new(fid_n(n));
    uint32_t used = state_path_set(r, path);
    state_unreserve(SLAB_FILES, state_path_slots(strlen(path)) - used);
    struct file_core *c = core_change(r);
    c->size = 1000 * n;
    core_commit(r);
    return r;
}

static void tear(void *at)
{
    *(uint8_t *)at ^= 0x40;
}

START_TEST(a_torn_record_is_dropped_and_the_others_stay)
{
    struct state_report rep;
    struct file_record *r[5];
    char path[STATE_PATH_MAX + 1];
    for (unsigned i = 0; i < 5; i++)
        r[i] = make_file(i + 1, "some/path");
    tear(&r[0]->fid.lo);
    tear(&r[1]->core[r[1]->core_now].size);
    tear(&r[2]->path[3]);
    r[3]->covered = *core_of(r[3]);
    core_change(r[3])->size = 77;
    core_commit(r[3]);
    tear(&r[3]->core[r[3]->core_now].base_end);
    reopen_state(&rep);
    ck_assert_uint_eq(rep.torn_files, 2);
    ck_assert_uint_eq(rep.torn_paths, 1);
    ck_assert_ptr_null(state_file_find(fid_n(1)));
    ck_assert_ptr_null(state_file_find(fid_n(2)));
    struct file_record *named = state_file_find(fid_n(3)), *older = state_file_find(fid_n(4)),
                       *whole = state_file_find(fid_n(5));
    ck_assert(named && older && whole);
    ck_assert_uint_eq(state_path_get(named, path), 0);
    ck_assert_uint_eq(core_of(older)->size, 4000); /* as fsynced */
    ck_assert_uint_eq(core_of(whole)->size, 5000);
    state_path_get(whole, path);
    ck_assert_str_eq(path, "some/path");
}
END_TEST

START_TEST(torn_chunks_and_chunks_without_a_file_are_dropped)
{
    struct state_report rep;
    struct file_record *a = make_file(1, "a"), *b = make_file(2, "b");
    slots(SLAB_CHUNKS, 6);
    struct chunk_record *c0 = state_chunk_new(a, 0), *c1 = state_chunk_new(a, 1),
                        *c2 = state_chunk_new(a, 2);
    struct chunk_record *twin = state_chunk_new(b, 9), *far = state_chunk_new(b, 10);
    state_chunk_new(b, 11);
    tear(&c1->index);
    c0->fid = fid_n(77);
    c0->check = chunk_check(c0->fid, c0->index);
    twin->fid = a->fid;
    twin->index = 2;
    twin->check = c2->check;
    far->index = UINT64_MAX / 2;
    far->check = chunk_check(far->fid, far->index);
    reopen_state(&rep);
    ck_assert_uint_eq(rep.torn_chunks, 2);
    ck_assert_uint_eq(rep.stray_chunks, 2);
    ck_assert_uint_eq(state_chunks(), 2);
    ck_assert_ptr_nonnull(state_chunk_find(fid_n(1), 2));
    ck_assert_ptr_nonnull(state_chunk_find(fid_n(2), 11));
}
END_TEST

START_TEST(lost_slots_of_paths_are_found_again)
{
    struct state_report rep;
    char path[2001];
    memset(path, 'p', 2000);
    path[2000] = 0;
    uint32_t before;
    slots(SLAB_FILES, 1);
    state_unreserve(SLAB_FILES, 1);
    before = state.files.nfree;
    struct file_record *r = make_file(1, path);
    ck_assert_uint_eq(state.files.nfree, before - 1 - 5);
    r->magic = 0; /* died in between */
    reopen_state(&rep);
    ck_assert_uint_eq(state.files.nfree, before);
}
END_TEST

START_TEST(a_slab_that_is_none_is_put_aside)
{
    struct state_report rep;
    make_file(1, "x");
    tear(state.files.slab[0].map);
    reopen_state(&rep);
    ck_assert_uint_eq(rep.damaged_slabs, 1);
    ck_assert_int_eq(faccessat(slabs_fd, "files.000.damaged", F_OK, 0), 0);
    ck_assert_int_ne(faccessat(slabs_fd, "files.000", F_OK, 0), 0);
    ck_assert_ptr_null(state_file_find(fid_n(1)));
    make_file(1, "x"); /* and life goes on */
    reopen_state(&rep);
    ck_assert_uint_eq(rep.damaged_slabs, 0);
    ck_assert_ptr_nonnull(state_file_find(fid_n(1)));
}
END_TEST

/* ---- the format on disk ---- */

START_TEST(the_disk_format_is_as_documented)
{
#define AT(type, field, where) ck_assert_uint_eq(offsetof(struct type, field), where)
    AT(slab_header, version, 8);
    AT(slab_header, kind, 12);
    AT(slab_header, slot_size, 16);
    AT(slab_header, chunk_size, 20);
    AT(slab_header, bytes, 24);
    AT(slab_header, clean, 32);
    AT(slab_header, boot_id, 40);
    AT(file_record, check, 4);
    AT(file_record, fid, 8);
    AT(file_record, path_where, 24);
    AT(file_record, core_now, 32);
    AT(file_record, data_made, 36);
    AT(file_record, core, 40);
    AT(file_record, covered, 232);
    AT(file_record, self, 328);
    AT(file_record, path, 392);
    AT(file_core, base_end, 8);
    AT(file_core, cut, 16);
    AT(file_core, base, 24);
    AT(file_core, mtime_ns, 48);
    AT(file_core, ctime_ns, 56);
    AT(file_core, claim_inc, 64);
    AT(file_core, claim_number, 72);
    AT(file_core, flags, 80);
    AT(file_core, raised_mode, 84);
    AT(file_core, check, 88);
    AT(path_record, next, 4);
    AT(path_record, used, 8);
    AT(path_record, bytes, 24);
    AT(chunk_record, flags, 4);
    AT(chunk_record, fid, 8);
    AT(chunk_record, index, 24);
    AT(chunk_record, hash, 32);
    AT(chunk_record, check, 40);
    AT(chunk_record, bits, 64);
    ck_assert_uint_eq(chunk_slot_size(64 << 10), 128);
    ck_assert_uint_eq(chunk_slot_size(1 << 20), 192);
    ck_assert_uint_eq(chunk_slot_size(16 << 20), 2112);
    ck_assert_uint_eq(CACHE_FORMAT, 1);
}
END_TEST

/* Records that an earlier eddyfs wrote are read, and the same records are written today. */
START_TEST(golden_records_are_read_and_written)
{
    static uint8_t file[FILE_SLOT], piece[FILE_SLOT], chunk[128];
    struct state_report rep;
    char path[STATE_PATH_MAX + 1], got[STATE_PATH_MAX + 1];
    memset(path, 'l', 300);
    path[300] = 0;
    struct file_record *r = make_file(7, path);
    struct file_core *c = core_change(r);
    *c = (struct file_core){.size = 70000,
                            .base_end = 65000,
                            .cut = 66000,
                            .base = {69000, 1111, 2222},
                            .mtime_ns = 3333,
                            .ctime_ns = 4444,
                            .claim_inc = 5,
                            .claim_number = 6,
                            .flags = CORE_BASE | CORE_CLAIMED | CORE_DIRTY,
                            .raised_mode = 0444};
    core_commit(r);
    r->covered = *core_of(r);
    slots(SLAB_CHUNKS, 1);
    struct chunk_record *k = state_chunk_new(r, 1);
    k->flags = CHUNK_OWNED | CHUNK_HASH;
    k->hash = 0x0123456789abcdef;
    k->bits[BITS_VALID] = 3;
    k->bits[BITS_DIRTY] = 2;
    k->bits[BITS_COVERED] = 2;
    k->bits[BITS_ZERO] = 1;
    struct path_record *p = slab_at(&state.files, path_where_slot(r->path_where));
    ck_assert_uint_eq(golden("store_file", r, sizeof(file), file, sizeof(file)), sizeof(file));
    ck_assert_uint_eq(golden("store_path", p, sizeof(piece), piece, sizeof(piece)), sizeof(piece));
    ck_assert_uint_eq(golden("store_chunk", k, sizeof(chunk), chunk, sizeof(chunk)), sizeof(chunk));
    ck_assert_mem_eq(file, r, sizeof(file));
    ck_assert_mem_eq(piece, p, sizeof(piece));
    ck_assert_mem_eq(chunk, k, sizeof(chunk));
    memcpy(r, file, sizeof(file));
    memcpy(p, piece, sizeof(piece));
    memcpy(k, chunk, sizeof(chunk));
    reopen_state(&rep);
    ck_assert_uint_eq(rep.torn_files + rep.torn_paths + rep.torn_chunks, 0);
    r = state_file_find(fid_n(7));
    ck_assert(r && core_of(r)->cut == 66000 && core_of(r)->base.ctime_ns == 2222);
    state_path_get(r, got);
    ck_assert_str_eq(got, path);
    k = state_chunk_find(fid_n(7), 1);
    ck_assert(k && k->hash == 0x0123456789abcdef && k->bits[BITS_VALID] == 3);
}
END_TEST

/* ---- power loss ---- */

static uint8_t data[200000];

static void setup_store(void)
{
    dir_setup();
    open_store(LIMIT, CHUNK);
    put_pattern(data, sizeof(data), 0, 5);
}

static void teardown_store(void)
{
    store_close(false);
    dir_teardown();
}

/* The daemon is gone without a word and the node has booted since. */
static void power_loss(void)
{
    static const char *const names[] = {"files.000", "chunks.000"};
    store_close(false);
    for (unsigned i = 0; i < 2; i++) {
        char path[200];
        snprintf(path, sizeof(path), "%s/slabs/%s", cache_dir, names[i]);
        int fd = open(path, O_RDWR);
        ck_assert_int_eq(pwrite(fd, "another boot", 13, offsetof(struct slab_header, boot_id)), 13);
        close(fd);
    }
}

static void cached_file(uint64_t n)
{
    struct file *f = get_file(n, "clean");
    struct version v = version_n(sizeof(data), 3);
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(fill_chunk(f, i, &v, data, true), 0);
    file_put(f);
}

START_TEST(after_a_clean_end_and_a_boot_all_is_trusted)
{
    cached_file(1);
    store_close(true);
    open_store(LIMIT, CHUNK);
    store_close(true);
    power_loss();
    open_store(LIMIT, CHUNK);
    struct file *f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, sizeof(data), 0);
    file_put(f);
}
END_TEST

START_TEST(a_truncation_keeps_what_was_fsynced_of_the_rest)
{
    uint64_t fill;
    struct file_info info;
    struct file *f = new_file(1, "cut");
    write_ok(f, data, 150000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_int_eq(store_truncate(f, 70000, &fill), 0);
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    store_info(f, &info);
    ck_assert(info.dirty);
    ck_assert_uint_eq(info.size, 70000);
    read_is(f, data, 70000, 0);
    file_put(f);
}
END_TEST

/* As if the page with its record had not been written yet, and those of its chunks had. */
static void forget_record(struct fid fid)
{
    char path[200];
    struct file_record r;
    snprintf(path, sizeof(path), "%s/slabs/files.000", cache_dir);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    for (off_t at = 4096; pread(fd, &r, sizeof(r), at) == sizeof(r); at += FILE_SLOT)
        if (r.magic == FILE_MAGIC && fid_eq(r.fid, fid))
            ck_assert_int_eq(pwrite(fd, &(uint32_t){0}, 4, at), 4);
    close(fd);
}

START_TEST(records_of_another_age_put_no_other_file_in_doubt)
{
    struct file *f = new_file(1, "fsynced"), *g = new_file(2, "young");
    write_ok(f, data, 150000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    write_ok(g, data, 150000, 0);
    file_put(f);
    file_put(g);
    power_loss();
    forget_record(fid_n(2));
    open_store(LIMIT, CHUNK);
    ck_assert_ptr_null(file_find(fid_n(2)));
    f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, 150000, 0);
    file_put(f);
}
END_TEST

static void data_path(struct fid fid, char path[300])
{
    snprintf(path, 300, "%s/data/%02x/%016llx%016llx", cache_dir, (unsigned)(fid.lo & 0xff),
             (unsigned long long)fid.hi, (unsigned long long)fid.lo);
}

/* What the kernel stored after the fsync was flushed, but had not got to the cache's disk. */
START_TEST(what_the_kernel_stored_after_an_fsync_comes_back_as_no_zeros)
{
    char path[300];
    int backing;
    unsigned life;
    struct file_info info;
    struct file *f = new_file(1, "served by the kernel");
    ck_assert_int_eq(store_pass_open(f, true, &backing, &life), 0);
    close(backing);
    data_path(fid_n(1), path);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, data, 100000, 0), 100000);
    ck_assert_int_eq(store_sync(f), 0);
    ck_assert_int_eq(pwrite(fd, data, 150000, 0), 150000);
    ck_assert_int_eq(store_pass_mark(f, NULL, NULL), 0);
    store_flush_begins(f);
    struct version v = version_n(150000, 9);
    ck_assert_msg(!store_flushed(f, &v, 0), "a flush that missed something is clean");
    store_pass_forget();
    file_put(f);
    power_loss();
    ck_assert_int_eq(ftruncate(fd, 100000), 0);
    close(fd);
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(1));
    ck_assert_ptr_nonnull(f);
    store_info(f, &info);
    ck_assert_uint_eq(info.size, 100000);
    read_is(f, data, 100000, 0);
    file_put(f);
}
END_TEST

START_TEST(clean_pages_do_not_survive_a_power_loss)
{
    cached_file(1);
    power_loss();
    open_store(LIMIT, CHUNK);
    ck_assert_ptr_null(file_find(fid_n(1)));
    struct store_usage u;
    store_usage(&u);
    ck_assert_uint_eq(u.chunks, 0);
    char path[200];
    snprintf(path, sizeof(path), "%s/data/01/%016llx%016llx", cache_dir,
             (unsigned long long)fid_n(1).hi, (unsigned long long)fid_n(1).lo);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(what_fsync_covered_survives_a_power_loss_and_is_flushed)
{
    struct file *f = new_file(2, "dir/synced");
    struct seen s = {0};
    write_ok(f, data, 100000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    file_put(f);
    power_loss();
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), 0);
    ck_assert(s.n == 1 && !s.suspect && !strcmp(s.path, "dir/synced"));
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
    read_is(f, data, 100000, 0);
    struct snapshot *snap;
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &snap), 0);
    ck_assert_uint_eq(snap->bytes, 100000);
    store_snapshot_done(snap, false);
    file_put(f);
}
END_TEST

START_TEST(what_was_appended_after_the_fsync_is_lost_and_the_rest_is_as_fsynced)
{
    struct file_info info;
    uint8_t zeros[4096] = {0};
    struct file *f = new_file(2, "log");
    write_ok(f, data, 50000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    write_ok(f, data + 50000, 70000, 50000);
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    f = file_find(fid_n(2));
    ck_assert_ptr_nonnull(f);
    store_info(f, &info);
    ck_assert_uint_eq(info.size, 50000);
    ck_assert(info.dirty);
    read_is(f, data, 50000, 0);
    uint64_t fill;
    ck_assert_int_eq(store_truncate(f, 54096, &fill), 0);
    read_is(f, zeros, 4096, 50000); /* nothing of it shows up again */
    file_put(f);
}
END_TEST

START_TEST(what_no_fsync_covered_is_set_aside_and_named)
{
    struct seen s = {0};
    struct file *f = new_file(2, "dir/un\nsynced");
    write_ok(f, data, 5000, 0);
    file_put(f);
    power_loss();
    ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), 0);
    ck_assert(s.n == 1 && s.suspect);
    for (unsigned i = 0; i < 2; i++) {
        open_store(LIMIT, CHUNK);
        ck_assert_ptr_null(file_find(fid_n(2)));
        s.n = 0;
        ck_assert_int_eq(store_each_suspect(see, &s), 0);
        ck_assert_uint_eq(s.n, 1);
        ck_assert(s.suspect && s.bytes == 8192);
        ck_assert_str_eq(s.path, "dir/un\nsynced");
        store_close(true);
        s.n = 0;
        ck_assert_int_eq(store_each_unflushed(cache_dir, see, &s), 0);
        ck_assert_uint_eq(s.n, 1);
    }
    char path[200];
    uint8_t have[5000];
    snprintf(path, sizeof(path), "%s/suspect/%016llx%016llx", cache_dir,
             (unsigned long long)fid_n(2).hi, (unsigned long long)fid_n(2).lo);
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(read(fd, have, sizeof(have)), sizeof(have));
    ck_assert_mem_eq(have, data, sizeof(have));
    close(fd);
    open_store(LIMIT, CHUNK);
    f = new_file(2, "dir/un\nsynced"); /* its fid is free for what the PFS has */
    write_ok(f, data, 10, 0);
    read_is(f, data, 10, 0);
    file_put(f);
}
END_TEST

static void flush_all_of(struct file *f, struct version *v)
{
    struct file_info info;
    struct snapshot *s;
    store_info(f, &info);
    store_flush_begins(f);
    ck_assert_int_eq(store_snapshot(f, 0, MIB, &s), 0);
    store_snapshot_done(s, true);
    *v = version_n(info.size, 50);
    ck_assert(store_flushed(f, v, info.change));
}

START_TEST(what_was_flushed_and_given_back_does_not_come_back)
{
    struct version v;
    struct seen s = {0};
    struct file *f = new_file(2, "x");
    write_ok(f, data, 5000, 0);
    ck_assert_int_eq(store_sync(f), 0);
    flush_all_of(f, &v);
    ck_assert(store_clear_claim(f, &v));
    file_put(f);
    power_loss();
    open_store(LIMIT, CHUNK);
    ck_assert_int_eq(store_each_claimed(NULL, NULL), 0);
    ck_assert_int_eq(store_each_suspect(see, &s), 0);
    ck_assert_uint_eq(s.n, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("state");
    TCase *t = tcase_create("records");
    tcase_add_checked_fixture(t, setup_state, teardown_state);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, records_are_found_by_their_keys_however_they_come_and_go);
    tcase_add_test(t, a_torn_record_is_dropped_and_the_others_stay);
    tcase_add_test(t, torn_chunks_and_chunks_without_a_file_are_dropped);
    tcase_add_test(t, lost_slots_of_paths_are_found_again);
    tcase_add_test(t, a_slab_that_is_none_is_put_aside);
    tcase_add_test(t, the_disk_format_is_as_documented);
    tcase_add_test(t, golden_records_are_read_and_written);
    suite_add_tcase(s, t);
    t = tcase_create("power loss");
    tcase_add_checked_fixture(t, setup_store, teardown_store);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, after_a_clean_end_and_a_boot_all_is_trusted);
    tcase_add_test(t, clean_pages_do_not_survive_a_power_loss);
    tcase_add_test(t, a_truncation_keeps_what_was_fsynced_of_the_rest);
    tcase_add_test(t, records_of_another_age_put_no_other_file_in_doubt);
    tcase_add_test(t, what_the_kernel_stored_after_an_fsync_comes_back_as_no_zeros);
    tcase_add_test(t, what_fsync_covered_survives_a_power_loss_and_is_flushed);
    tcase_add_test(t, what_was_appended_after_the_fsync_is_lost_and_the_rest_is_as_fsynced);
    tcase_add_test(t, what_no_fsync_covered_is_set_aside_and_named);
    tcase_add_test(t, what_was_flushed_and_given_back_does_not_come_back);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
