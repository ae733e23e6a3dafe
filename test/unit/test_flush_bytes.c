/* test_flush_bytes.c - what the write-back makes of a file is what was done to it. */
#include "flush_env.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"

/* ---- what ---- */

START_TEST(one_byte_into_a_file)
{
    static const size_t sizes[] = {1,       1000,          4095,   4096, 4097, (1 << 20) - 1,
                                   1 << 20, (1 << 20) + 1, 3 << 20};
    start(NO_LULL);
    char *bytes = malloc(3 << 20);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const size_t n = sizes[i],
                     offs[] = {0, n / 2, n - 1, n > 4096 ? 4096 : 0, n > 4096 ? 4095 : 0};
        for (size_t k = 0; k < ARRAY_LEN(offs); k++) {
            for (size_t b = 0; b < n; b++)
                bytes[b] = (char)(b * 13 + (b >> 10));
            env_put("f", bytes, n, 0644);
            struct file *f = env_open("f", true);
            env_write(f, "!", 1, offs[k]);
            bytes[offs[k]] = '!';
            ck_assert_int_eq(flush_file(f), 0);
            env_expect("f", bytes, n);
            store_clear_claim(f, NULL);
            shut(f);
        }
    }
    free(bytes);
}
END_TEST

START_TEST(cut_and_extended)
{
    start(NO_LULL);
    fill_page(3);
    char want[20000];
    env_put("f", page, 20000, 0644);
    struct file *f = env_open("f", true);
    env_truncate(f, 5000); /* cut, extended: zeros between, not what was there */
    env_truncate(f, 15000);
    env_write(f, "end", 3, 14997);
    memset(want, 0, sizeof(want));
    memcpy(want, page, 5000);
    memcpy(want + 14997, "end", 3);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", want, 15000);
    env_truncate(f, 0);
    env_write(f, "new", 3, 0);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", "new", 3);
    env_truncate(f, 0);
    ck_assert_int_eq(flush_file(f), 0);
    env_expect("f", "", 0);
    env_truncate(f, 10000);
    ck_assert_int_eq(flush_file(f), 0);
    memset(want, 0, sizeof(want));
    env_expect("f", want, 10000);
    store_set_times(f, 77000000000);
    ck_assert_int_eq(flush_file(f), 0);
    struct stat st;
    stat(env_path("f"), &st);
    ck_assert_int_eq(st.st_mtim.tv_sec, 77);
    shut(f);
}
END_TEST

START_TEST(holes_stay_holes)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    env_write(f, "far", 3, 100 << 20);
    env_truncate(f, 200 << 20);
    ck_assert_int_eq(flush_file(f), 0);
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_int_eq(st.st_size, 200 << 20);
    ck_assert_int_le(st.st_blocks, 64);
    shut(f);
    fill_page(5);
    env_put("g", page, 1 << 20, 0644);
    f = env_open("g", true);
    env_punch(f, 64 << 10, 512 << 10);
    ck_assert_int_eq(flush_file(f), 0);
    memset(page + (64 << 10), 0, 512 << 10);
    env_expect("g", page, 1 << 20);
    ck_assert_int_eq(stat(env_path("g"), &st), 0);
    ck_assert_int_le(st.st_blocks * 512, (1 << 20) - (500 << 10));
    shut(f);
}
END_TEST

START_TEST(larger_than_a_batch)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    uint64_t before = counted(pfs_write_bytes);
    for (int i = 0; i < 150; i++) {
        memset(page, i, sizeof(page));
        env_write(f, page, sizeof(page), (uint64_t)i << 20);
    }
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(!dirty(f));
    ck_assert_uint_eq(counted(pfs_write_bytes) - before, 150u << 20);
    int fd = open(env_path("f"), O_RDONLY);
    for (int i = 0; i < 150; i++) {
        ck_assert_int_eq(read(fd, page, sizeof(page)), (ssize_t)sizeof(page));
        ck_assert((unsigned char)page[0] == i && memcmp(page, page + 1, sizeof(page) - 1) == 0);
    }
    close(fd);
    shut(f);
}
END_TEST

/* ---- against a model ---- */

#define MODEL (3u << 20)

static uint32_t rnd(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

struct model {
    char bytes[MODEL];
    size_t size;
    uint32_t state;
};

static void random_change(struct model *m, struct file *f)
{
    uint32_t what = rnd(&m->state) % 10;
    size_t off = rnd(&m->state) % (MODEL - 70000),
           n = 1 + rnd(&m->state) % (what == 0 ? 60000 : 6000);
    if (what < 6) {
        static char data[60001];
        memset(data, (int)(1 + rnd(&m->state) % 255), n);
        env_write(f, data, n, off);
        memcpy(m->bytes + off, data, n);
        m->size = MAX(m->size, off + n);
    } else if (what < 8) {
        size_t size = what == 6 ? off : MIN(m->size, off);
        env_truncate(f, size);
        if (size < m->size)
            memset(m->bytes + size, 0, m->size - size);
        m->size = size;
    } else if (m->size) {
        off %= m->size;
        n = MIN(n * 4, m->size - off);
        env_punch(f, off, n);
        memset(m->bytes + off, 0, n);
    }
}

static void model_run(uint32_t seed, int rounds, bool flush_often)
{
    struct model *m = calloc(1, sizeof(*m));
    m->state = seed;
    m->size = 1500000;
    for (size_t i = 0; i < m->size; i++)
        m->bytes[i] = (char)rnd(&m->state);
    env_put("f", m->bytes, m->size, 0644);
    struct file *f = env_open("f", true);
    for (int i = 0; i < rounds; i++) {
        random_change(m, f);
        if (flush_often && rnd(&m->state) % 8 == 0) {
            ck_assert_int_eq(flush_file(f), 0);
            env_expect("f", m->bytes, m->size);
        }
    }
    ck_assert_int_eq(flush_file(f), 0);
    ck_assert(!dirty(f));
    env_expect("f", m->bytes, m->size);
    store_clear_claim(f, NULL);
    shut(f);
    free(m);
}

START_TEST(random_changes_and_flushes)
{
    start(NO_LULL);
    for (uint32_t seed = 1; seed <= 6; seed++)
        model_run(seed, 300, true);
}
END_TEST

/* The flusher runs all the time, in the middle of every change. */
START_TEST(random_changes_while_it_flushes)
{
    start(0);
    for (uint32_t seed = 11; seed <= 16; seed++)
        model_run(seed, 600, false);
}
END_TEST

START_TEST(rewritten_while_it_is_flushed)
{
    start(0);
    enum { FILES = 30, ROUNDS = 20 };
    struct file *f[FILES];
    char name[16];
    create_files(f, FILES);
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < FILES; i++) {
            memset(page, 'A' + (i + r) % 26, 300000);
            env_write(f[i], page, 300000, 0);
        }
    ck_assert_int_eq(flush_all(NULL, NULL), 0);
    for (int i = 0; i < FILES; i++) {
        ck_assert(!dirty(f[i]));
        snprintf(name, sizeof(name), "f%d", i);
        memset(page, 'A' + (i + ROUNDS - 1) % 26, 300000);
        env_expect(name, page, 300000);
        shut(f[i]);
    }
}
END_TEST

static void *flush_it(void *f)
{
    ck_assert_int_eq(flush_file(f), 0);
    return NULL;
}

/* What was fsynced is cut off in the record on the disk first: a flush may end meanwhile. */
START_TEST(cut_while_a_flush_ends)
{
    start(NO_LULL);
    struct file *f = env_create("f", 0644);
    for (unsigned i = 0; i < 300; i++) {
        pthread_t thread;
        memset(page, (int)(1 + i % 255), 9000);
        env_write(f, page, 9000, 0);
        ck_assert_int_eq(store_sync(f), 0);
        ck_assert(!pthread_create(&thread, NULL, flush_it, f));
        usleep(i * 7 % 1500);
        env_truncate(f, 100 + i);
        pthread_join(thread, NULL);
        ck_assert_int_eq(flush_all(NULL, NULL), 0);
        ck_assert_msg(!dirty(f), "in round %u", i);
        env_expect("f", page, 100 + i);
    }
    shut(f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("flush_bytes");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 100);
    tcase_add_test(t, one_byte_into_a_file);
    tcase_add_test(t, cut_and_extended);
    tcase_add_test(t, holes_stay_holes);
    tcase_add_test(t, larger_than_a_batch);
    tcase_add_test(t, random_changes_and_flushes);
    tcase_add_test(t, random_changes_while_it_flushes);
    tcase_add_test(t, rewritten_while_it_is_flushed);
    tcase_add_test(t, cut_while_a_flush_ends);
    return run_case("flush_bytes", t);
}
