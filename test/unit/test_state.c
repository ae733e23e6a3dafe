/* test_state.c - records and indexes, torn and damaged ones, and the disk format. */
#include "golden.h"
#include "store_help.h"
#include "suite.h"

#include <stddef.h>

#include "placement/store/cachedir.h"
#include "placement/store/state.h"
#include "placement/store/state_int.h"
#include "placement/store/state_table.h"

#define CHUNK (64 * KIB)

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
        ck_assert_int_eq(state_grow(kind, 1, SLAB_MIN_SIZE), 0);
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

static void rename_file(struct file_record *r, const char *path)
{
    slots(SLAB_FILES, state_path_slots(strlen(path)));
    state_unreserve(SLAB_FILES, state_path_slots(strlen(path)) - state_path_set(r, path));
}

/* Of a path in a slot of its own: that is what a power loss takes. */
static void tear_path(const struct file_record *r)
{
    ck_assert_uint_ne(path_where_slot(r->path_where), SLOT_NONE);
    tear(&path_slot(path_where_slot(r->path_where))->bytes[0]);
}

START_TEST(a_torn_path_is_the_one_before)
{
    struct state_report rep;
    char long_path[200], path[STATE_PATH_MAX + 1];
    memset(long_path, 'p', sizeof(long_path));
    long_path[sizeof(long_path) - 1] = '\0';
    struct file_record *once = make_file(1, "before"),
                       *thrice = make_file(2, "a/longer/first/path"),
                       *never = make_file(3, long_path);
    rename_file(once, "now");
    rename_file(thrice, "second");
    rename_file(thrice, "third");
    rename_file(thrice, "now");
    tear_path(once);
    tear_path(thrice);
    tear_path(never);
    reopen_state(&rep);
    ck_assert_uint_eq(rep.torn_paths, 3);
    state_path_get(state_file_find(fid_n(1)), path);
    ck_assert_str_eq(path, "before");
    state_path_get(state_file_find(fid_n(2)), path);
    ck_assert_str_eq(path, "third");
    ck_assert_uint_eq(state_path_get(state_file_find(fid_n(3)), path), 0);
    rename_file(state_file_find(fid_n(1)), "later");
    reopen_state(&rep);
    ck_assert_uint_eq(rep.torn_paths, 0);
    state_path_get(state_file_find(fid_n(1)), path);
    ck_assert_str_eq(path, "later");
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
    ck_assert_uint_eq(state.files.nfree, before - 1 - 4);
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
    AT(file_record, unsynced, 385);
    AT(file_record, whole, 386);
    AT(file_record, lent, 387);
    AT(file_record, trace, 392);
    AT(file_trace, len, 4);
    AT(file_trace, off, 8);
    AT(file_trace, v, 16);
    AT(file_trace, told, 40);
    AT(file_record, lender, 448);
    AT(file_record, path, 456);
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
    ck_assert_uint_eq(CACHE_FORMAT, 3);
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
    r->lent = 1;
    r->lender = 8;
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

int main(void)
{
    TCase *t = tcase_create("state");
    tcase_add_checked_fixture(t, setup_state, teardown_state);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, records_are_found_by_their_keys_however_they_come_and_go);
    tcase_add_test(t, a_torn_record_is_dropped_and_the_others_stay);
    tcase_add_test(t, a_torn_path_is_the_one_before);
    tcase_add_test(t, torn_chunks_and_chunks_without_a_file_are_dropped);
    tcase_add_test(t, lost_slots_of_paths_are_found_again);
    tcase_add_test(t, a_slab_that_is_none_is_put_aside);
    tcase_add_test(t, the_disk_format_is_as_documented);
    tcase_add_test(t, golden_records_are_read_and_written);
    return run_case("state", t);
}
