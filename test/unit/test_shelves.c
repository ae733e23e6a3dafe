/* test_shelves.c - chunks in memory that others read one-sided: found, checked, and never taken for others. */
#include <check.h>
#include <pthread.h>

#include "placement/chunks/shelves.c"
#include "suite.h"

#define CHUNK  (64u << 10)
#define SELF   7
#define SHELF  8 /* so many shelves fit */
#define LEN    (SHELF * (CHUNK + 8192ul))

/* ---- the world around shelves.c: chunk.c needs a store, but two of its functions do not ---- */

uint64_t chunk_key_hash(const struct chunk_key *k)
{
    return k->fid.lo ^ k->index;
}

size_t chunk_key_len(const struct chunk_key *k)
{
    return MIN(k->version.size, CHUNK);
}

static uint8_t *memory;
static struct shelves *here;
static uint64_t bytes[CHUNK / 8], buf[CHUNK / 8];

static struct chunk_key key_n(uint64_t n)
{
    return (struct chunk_key){.fid = {n, n * 3}, .index = 0, .version = {CHUNK, 5, 6}};
}

/* The chunk's bytes follow from its number, and from its version's mtime. */
static void fill_for(const struct chunk_key *k, uint64_t *at)
{
    uint64_t word = k->fid.hi * 0x9e3779b97f4a7c15u ^ (uint64_t)k->version.mtime_ns << 40;
    for (size_t i = 0; i < CHUNK / 8; i++, word += 0x2545f4914f6cdd1du)
        at[i] = word;
}

static bool put_and_enter(struct chunk_key k)
{
    struct shelf_place place;
    struct chunk_key gone;
    bool had;
    uint64_t *at = malloc(CHUNK);
    fill_for(&k, at);
    bool is = shelves_put(here, &k, at, CHUNK, &place, &had, &gone) && shelves_enter(here, &k, data_hash(at, CHUNK), CHUNK, &place);
    free(at);
    return is;
}

/* ---- the reader ---- */

static unsigned gets;
static void (*between)(unsigned get); /* is called before each get */

/* As another process does: ThreadSanitizer is not to see that it races with the writer. */
__attribute__((no_sanitize_thread)) static void copy(void *to, const void *from, size_t len)
{
    const volatile uint64_t *f = from;
    uint64_t *t = to;
    for (size_t i = 0; i < len / 8; i++)
        t[i] = f[i];
}

static int get(void *arg, uint64_t off, void *to, size_t len)
{
    (void)arg;
    if (between)
        between(gets);
    gets++;
    if (off + len > LEN)
        return -EINVAL;
    copy(to, memory + off, len);
    return 0;
}

static int find_and_read(const struct chunk_key *k)
{
    struct shelves_shape shape;
    struct shelf_entry e;
    ck_assert(shelves_shape(LEN, CHUNK, &shape));
    int err = shelves_find(&shape, k, get, NULL, &e);
    return err ? err : shelves_read(&shape, &e, &e.place[0], get, NULL, buf);
}

static void setup(void)
{
    memory = calloc(1, LEN);
    here = shelves_new(memory, LEN, CHUNK, SELF);
    ck_assert_ptr_nonnull(here);
    gets = 0;
    between = NULL;
}

static void teardown(void)
{
    shelves_free(here);
    free(memory);
}

/* ---- one after the other ---- */

START_TEST(what_is_put_is_read)
{
    struct chunk_key k = key_n(1), other = k;
    ck_assert_int_eq(find_and_read(&k), -ENOENT);
    ck_assert(put_and_enter(k));
    ck_assert(!put_and_enter(k)); /* it is there */
    ck_assert_int_eq(find_and_read(&k), 0);
    fill_for(&k, bytes);
    ck_assert(!memcmp(buf, bytes, CHUNK));
    other.version.mtime_ns++;
    ck_assert_int_eq(find_and_read(&other), -ENOENT);
    other = k;
    other.version.ctime_ns++;
    ck_assert_int_eq(find_and_read(&other), -ENOENT);
    other = k;
    other.index++;
    ck_assert_int_eq(find_and_read(&other), -ENOENT);
    ck_assert_uint_eq(shelves_in_use(here), 1);
    ck_assert(shelves_drop(here, k.fid, k.index));
    ck_assert(!shelves_drop(here, k.fid, k.index));
    ck_assert_int_eq(find_and_read(&k), -ENOENT);
    ck_assert_uint_eq(shelves_in_use(here), 0);
}
END_TEST

/* The memory is bounded, and what is read stays longest. */
START_TEST(what_was_not_used_goes_first)
{
    unsigned there = 0;
    struct chunk_key used = key_n(1);
    ck_assert(put_and_enter(used));
    for (uint64_t n = 2; n < 50; n++) {
        shelves_used(here, &used);
        ck_assert(put_and_enter(key_n(n)));
        ck_assert_uint_le(shelves_in_use(here), shelves_shape_of(here)->nshelves);
    }
    ck_assert_uint_eq(shelves_in_use(here), shelves_shape_of(here)->nshelves);
    ck_assert_int_eq(find_and_read(&used), 0);
    for (uint64_t n = 1; n < 50; n++) {
        struct chunk_key k = key_n(n);
        there += !find_and_read(&k);
    }
    ck_assert_uint_eq(there, shelves_shape_of(here)->nshelves);
}
END_TEST

START_TEST(an_entry_has_other_nodes_places)
{
    struct chunk_key k = key_n(1), next = k;
    struct shelf_place there = {.node = 9, .token = 1, .shelf = 2};
    fill_for(&k, bytes);
    uint64_t hash = data_hash(bytes, CHUNK);
    ck_assert(!shelves_join(here, &k, hash, CHUNK, &there)); /* who else says so makes no entry */
    ck_assert_uint_eq(shelves_places(here, &k), 0);
    ck_assert(shelves_enter(here, &k, hash, CHUNK, &there));
    ck_assert(!shelves_join(here, &k, hash + 1, CHUNK, &(struct shelf_place){.node = 10}));
    ck_assert(!shelves_join(here, &(struct chunk_key){.fid = k.fid, .version = {CHUNK, 9, 9}}, hash, CHUNK, &there));
    ck_assert(shelves_join(here, &k, hash, CHUNK, &there));
    ck_assert_uint_eq(shelves_places(here, &k), 1);
    ck_assert(shelves_enter(here, &k, hash, CHUNK, &there)); /* again: the same place */
    ck_assert_uint_eq(shelves_places(here, &k), 1);
    ck_assert(!shelves_enter(here, &k, hash + 1, CHUNK, &(struct shelf_place){.node = 10}));
    for (uint64_t n = 10; n < 10 + SHELF_PLACES - 1; n++)
        ck_assert(shelves_enter(here, &k, hash, CHUNK, &(struct shelf_place){.node = n}));
    ck_assert(!shelves_enter(here, &k, hash, CHUNK, &(struct shelf_place){.node = 30}));
    shelves_leave(here, k.fid, k.index, 9);
    ck_assert_uint_eq(shelves_places(here, &k), SHELF_PLACES - 1);
    struct member ten = {.id = 10};
    struct view v = {.nmembers = 1, .members = &ten};
    shelves_keep_members(here, &v);
    ck_assert_uint_eq(shelves_places(here, &k), 1);
    next.version.mtime_ns++; /* another version has places of its own */
    ck_assert(shelves_enter(here, &next, hash, CHUNK, &there));
    ck_assert_uint_eq(shelves_places(here, &k), 0);
    ck_assert_uint_eq(shelves_places(here, &next), 1);
    shelves_strike(here, k.fid, k.index);
    ck_assert_uint_eq(shelves_places(here, &next), 0);
    shelves_keep_members(here, NULL);
}
END_TEST

START_TEST(entries_give_way_in_turn)
{
    unsigned there = 0;
    struct shelf_place place = {.node = 9, .token = 1};
    for (uint64_t n = 1; n < 1000; n++) {
        struct chunk_key k = key_n(n);
        ck_assert(shelves_enter(here, &k, n, CHUNK, &place));
        ck_assert_uint_eq(shelves_places(here, &k), 1);
    }
    for (uint64_t n = 1; n < 1000; n++) {
        struct chunk_key k = key_n(n);
        there += shelves_places(here, &k);
    }
    ck_assert_uint_eq(there, shelves_shape_of(here)->nbuckets * SHELF_WAYS);
}
END_TEST

START_TEST(memory_of_any_length_is_not_left)
{
    struct shelves_shape s;
    ck_assert(!shelves_shape(0, CHUNK, &s) && !shelves_shape(CHUNK, CHUNK, &s) && !shelves_shape(4095, 1, &s));
    for (uint64_t len = CHUNK; len < 40 * CHUNK; len += 1234)
        if (shelves_shape(len, CHUNK, &s)) {
            ck_assert_uint_le(shelves_shelf_at(&s, s.nshelves - 1) + sizeof(struct shelf_head) + CHUNK, len);
            ck_assert_uint_le(s.nbuckets * SHELF_WAYS * sizeof(struct shelf_entry), shelves_shelf_at(&s, 0));
        }
    ck_assert(shelves_shape(UINT64_C(1) << 50, 16 << 20, &s));
}
END_TEST

/* ---- a shelf or an entry that changes during a read ---- */

static unsigned change_at, changed;

/* All shelves are written again: before the given get. */
static void change(unsigned n)
{
    static uint64_t next = 100;
    if (n != change_at)
        return;
    for (unsigned i = 0; i < SHELF; i++)
        put_and_enter(key_n(next++));
    changed++;
}

START_TEST(a_shelf_that_is_written_between_two_gets_is_not_taken)
{
    unsigned refused[3] = {0};
    between = change;
    for (unsigned i = 0; i < REPEATS(10000); i++) {
        struct chunk_key k = key_n(1 + i % 50);
        change_at = UINT32_MAX;
        put_and_enter(k);
        change_at = gets + i % 3; /* before the entry, the head, the bytes */
        int err = find_and_read(&k);
        fill_for(&k, bytes);
        ck_assert_msg(err || !memcmp(buf, bytes, CHUNK), "other bytes were taken");
        refused[i % 3] += err != 0;
    }
    ck_assert_uint_ge(changed, REPEATS(10000) - 1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_ge(refused[i], REPEATS(10000) / 4);
}
END_TEST

static _Atomic bool ends;

static void *write_on(void *arg)
{
    uint64_t n = 0;
    (void)arg;
    while (!ends) {
        struct chunk_key k = key_n(1 + n % 20);
        k.version.mtime_ns = (int64_t)(n / 20 % 2);
        shelves_drop(here, k.fid, k.index);
        put_and_enter(k);
        n++;
    }
    return NULL;
}

/* The get copies while another thread writes: in which order, and what is torn, the processor decides. */
START_TEST(what_is_torn_is_never_taken)
{
    pthread_t writer;
    unsigned right = 0;
    ends = false;
    pthread_create(&writer, NULL, write_on, NULL);
    uint64_t end = boot_ms() + 60000;
    for (unsigned i = 0; (i < REPEATS(10000) || right < 100) && boot_ms() < end; i++) {
        struct chunk_key k = key_n(1 + i % 20);
        k.version.mtime_ns = i / 20 % 2;
        if (find_and_read(&k))
            continue;
        fill_for(&k, bytes);
        ck_assert_msg(!memcmp(buf, bytes, CHUNK), "other bytes were taken");
        right++;
    }
    ends = true;
    pthread_join(writer, NULL);
    ck_assert_uint_ge(right, 100);
}
END_TEST

/* ---- a node that lies ---- */

START_TEST(entries_that_lie_give_no_bytes)
{
    struct shelves_shape shape;
    struct shelf_entry e;
    struct chunk_key k = key_n(1);
    ck_assert(shelves_shape(LEN, CHUNK, &shape));
    put_and_enter(k);
    ck_assert_int_eq(shelves_find(&shape, &k, get, NULL, &e), 0);
    struct shelf_place right = e.place[0], p = right;
    p.shelf = shape.nshelves;
    ck_assert_int_eq(shelves_read(&shape, &e, &p, get, NULL, buf), -EINVAL);
    p.shelf = UINT32_MAX;
    ck_assert_int_eq(shelves_read(&shape, &e, &p, get, NULL, buf), -EINVAL);
    p = right;
    p.token++;
    ck_assert_int_eq(shelves_read(&shape, &e, &p, get, NULL, buf), -ENOENT);
    p.token = 0; /* an empty shelf's */
    p.shelf = (right.shelf + 1) % shape.nshelves;
    ck_assert_int_eq(shelves_read(&shape, &e, &p, get, NULL, buf), -ENOENT);
    e.len = CHUNK + 1;
    ck_assert_int_eq(shelves_read(&shape, &e, &right, get, NULL, buf), -EINVAL);
    e.len = CHUNK;
    e.hash++;
    ck_assert_int_eq(shelves_read(&shape, &e, &right, get, NULL, buf), -EBADMSG);
    /* each byte of an entry counts */
    for (size_t i = 0; i < sizeof(e); i++) {
        memory[shelves_bucket_at(&shape, &k) + i] ^= 1;
        ck_assert_int_eq(find_and_read(&k), -ENOENT);
        memory[shelves_bucket_at(&shape, &k) + i] ^= 1;
    }
    ck_assert_int_eq(find_and_read(&k), 0);
}
END_TEST

/* On one host the memory may be writable for it. */
START_TEST(entries_that_another_process_wrote_are_dropped_by_their_owner)
{
    struct shelves_shape shape;
    ck_assert(shelves_shape(LEN, CHUNK, &shape));
    for (int how = 0; how < 4; how++) {
        struct chunk_key k = key_n(1);
        struct shelf_place other = {.node = 42, .token = 7};
        put_and_enter(k);
        struct shelf_entry *e = (struct shelf_entry *)(void *)(memory + shelves_bucket_at(&shape, &k));
        for (unsigned i = 0; i < SHELF_WAYS; i++)
            if (e[i].check)
                e[i].nplaces = how == 3 ? SHELF_PLACES : 1000;
        if (how == 0)
            shelves_leave(here, k.fid, k.index, 42);
        else if (how == 1)
            shelves_join(here, &k, e->hash, CHUNK, &other);
        else
            shelves_keep_members(here, NULL);
        ck_assert_int_ne(find_and_read(&k), 0);
        shelves_drop(here, k.fid, k.index);
        shelves_strike(here, k.fid, k.index);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("shelves");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_is_put_is_read);
    tcase_add_test(t, what_was_not_used_goes_first);
    tcase_add_test(t, an_entry_has_other_nodes_places);
    tcase_add_test(t, entries_give_way_in_turn);
    tcase_add_test(t, memory_of_any_length_is_not_left);
    tcase_add_test(t, a_shelf_that_is_written_between_two_gets_is_not_taken);
    tcase_add_test(t, what_is_torn_is_never_taken);
    tcase_add_test(t, entries_that_lie_give_no_bytes);
    tcase_add_test(t, entries_that_another_process_wrote_are_dropped_by_their_owner);
    return run_case("shelves", t);
}
