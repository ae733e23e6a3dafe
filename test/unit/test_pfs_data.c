/* test_pfs_data.c - file data on the PFS: versions, descriptors, write-back; on a plain
 * directory. */
#include "pfs_env.h"
#include "refuse.h"
#include "suite.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_node.h"
#include "placement/pfs/pfs_write.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"

static struct statx before; /* what the PFS has before a run */
static void (*_Atomic after_look)(void); /* called once, before the caller has the answer */

/* In place of the C library's. */
int statx(int fd, const char *restrict path, int flags, unsigned mask, struct statx *restrict stx)
{
    void (*call)(void) = after_look ? atomic_exchange(&after_look, NULL) : NULL;
    int got = (int)syscall(SYS_statx, fd, path, flags, mask, stx);
    if (call)
        call();
    return got;
}

static void setup(void)
{
    env_make();
    env_open_store();
    env_open_pfs();
}

static void teardown(void)
{
    pfs_close();
    store_close(false);
    env_remove();
}

static char buf[1 << 20], pattern[3 << 20];

static void make_pattern(char seed)
{
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (char)(seed + i * 31 + (i >> 12));
}

static void shut(struct file *f)
{
    pfs_release(f);
    file_put(f);
}

static struct version version_on_pfs(const char *name)
{
    struct statx stx;
    ck_assert_int_eq(statx(AT_FDCWD, env_path(name), 0, PFS_STATX_MASK, &stx), 0);
    return version_of(&stx);
}

static struct fid fid_on_pfs(const char *name)
{
    struct statx stx;
    ck_assert_int_eq(statx(AT_FDCWD, env_path(name), 0, PFS_STATX_MASK, &stx), 0);
    return fid_of(&stx);
}

START_TEST(chunks_of_a_version)
{
    make_pattern(1);
    env_put("f", pattern, (2 << 20) + 100, 0644);
    struct file *f = env_open("f", false);
    struct version was = version_on_pfs("f");
    struct pfs_chunk_read r = {.index = 1, .version = was, .buf = buf};
    uint64_t counted_before = counted(pfs_read_bytes);
    ck_assert_int_eq(pfs_read_chunk(f, &r, NULL), 0);
    ck_assert_uint_eq(r.len, 1 << 20);
    ck_assert_mem_eq(buf, pattern + (1 << 20), 1 << 20);
    r.index = 2;
    ck_assert_int_eq(pfs_read_chunk(f, &r, NULL), 0);
    ck_assert_uint_eq(r.len, 100);
    ck_assert_mem_eq(buf, pattern + (2 << 20), 100);
    r.index = 3;
    ck_assert_int_eq(pfs_read_chunk(f, &r, NULL), 0);
    ck_assert_uint_eq(r.len, 0);
    ck_assert_uint_eq(counted(pfs_read_bytes) - counted_before, (1 << 20) + 100);
    env_put("f", pattern, 50, 0644); /* somebody else writes it */
    r.index = 0;
    ck_assert_int_eq(pfs_read_chunk(f, &r, NULL), -ESTALE);
    ck_assert(!version_eq(&r.version, &was));
    ck_assert_uint_eq(r.version.size, 50);
    ck_assert_int_eq(pfs_read_chunk(f, &r, NULL), 0);
    ck_assert_uint_eq(r.len, 50);
    shut(f);
}
END_TEST

START_TEST(chunks_by_fid_and_path)
{
    make_pattern(2);
    env_put("f", pattern, 1000, 0644);
    env_put("g", pattern, 2000, 0644);
    struct fid fid = fid_on_pfs("f");
    struct version was = version_on_pfs("f");
    struct pfs_chunk_read r = {.version = was, .buf = buf};
    ck_assert_int_eq(pfs_read_chunk_at(fid, "f", &r), 0);
    ck_assert_uint_eq(r.len, 1000);
    ck_assert_mem_eq(buf, pattern, 1000);
    ck_assert_int_eq(rename(env_path("f"), env_path("h")), 0);
    /* "not that file": the version is left as it was */
    struct version changed = was;
    changed.size++; /* not the one whose descriptor is kept */
    r.version = changed;
    ck_assert_int_eq(pfs_read_chunk_at(fid, "f", &r), -ESTALE);
    ck_assert(version_eq(&r.version, &changed));
    ck_assert_int_eq(pfs_read_chunk_at(fid, "g", &r), -ESTALE);
    ck_assert(version_eq(&r.version, &changed));
    ck_assert_int_eq(pfs_read_chunk_at(fid, "../pfs/h", &r), -ESTALE);
    ck_assert(version_eq(&r.version, &changed));
    /* that file, another version */
    ck_assert_int_eq(pfs_read_chunk_at(fid, "h", &r), -ESTALE);
    ck_assert_uint_eq(r.version.size, 1000);
    ck_assert_int_eq(pfs_read_chunk_at(fid, "h", &r), 0);
    ck_assert_int_eq(mkdir(env_path("d"), 0755), 0);
    ck_assert_int_eq(pfs_read_chunk_at(fid_on_pfs("d"), "d", &r), -ESTALE);
}
END_TEST

static unsigned open_fds(void)
{
    unsigned n = 0;
    struct stat st;
    for (int fd = 0; fd < 1024; fd++)
        n += fstat(fd, &st) == 0;
    return n;
}

START_TEST(readers_by_path_are_bounded)
{
    char name[16];
    unsigned before = open_fds();
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        env_put(name, name, 4, 0644);
        struct pfs_chunk_read r = {.version = version_on_pfs(name), .buf = buf};
        ck_assert_int_eq(pfs_read_chunk_at(fid_on_pfs(name), name, &r), 0);
        ck_assert_mem_eq(buf, name, 4);
    }
    ck_assert_uint_le(open_fds(), before + 64);
    pfs_data_stop();
    ck_assert_uint_eq(open_fds(), before);
}
END_TEST

/* What the writer has closed last. */
static struct {
    pthread_mutex_t lock;
    struct version version;
    char byte;
    bool end;
} closed = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *read_often(void *arg)
{
    const struct fid fid = *(struct fid *)arg;
    char *mine = malloc(1 << 20);
    for (;;) {
        pthread_mutex_lock(&closed.lock);
        struct pfs_chunk_read r = {.version = closed.version, .buf = mine};
        char byte = closed.byte;
        bool end = closed.end;
        pthread_mutex_unlock(&closed.lock);
        if (end)
            break;
        int err = pfs_read_chunk_at(fid, "f", &r);
        ck_assert(err == 0 || err == -ESTALE);
        if (!err)
            ck_assert(mine[0] == byte && memcmp(mine, mine + 1, r.len - 1) == 0);
    }
    free(mine);
    return NULL;
}

/* A version that somebody has closed is read whole or not at all, also while the next one is being
 * written. */
START_TEST(a_chunk_is_never_of_two_versions)
{
    static char bytes[64 << 10];
    pthread_t t[2];
    env_put("f", bytes, sizeof(bytes), 0644);
    closed.version = version_on_pfs("f");
    struct fid fid = fid_on_pfs("f");
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, read_often, &fid);
    int fd = open(env_path("f"), O_WRONLY);
    for (int i = 0; i < 60; i++) {
        while (real_ns() - version_on_pfs("f").ctime_ns <
               12000000) /* the next one is another version */
            usleep(1000);
        memset(bytes, 'A' + i % 26, sizeof(bytes));
        ck_assert_int_eq(pwrite(fd, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
        pthread_mutex_lock(&closed.lock);
        closed.version = version_on_pfs("f");
        closed.byte = bytes[0];
        pthread_mutex_unlock(&closed.lock);
    }
    close(fd);
    pthread_mutex_lock(&closed.lock);
    closed.end = true;
    pthread_mutex_unlock(&closed.lock);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}
END_TEST

START_TEST(a_writer_replaces_a_reader)
{
    env_put("f", "0123456789", 10, 0644);
    struct file *f = env_open("f", false);
    lock_take(&f->lock);
    int fd = pfs_of(f)->fd;
    ck_assert(!pfs_of(f)->writable);
    lock_drop(&f->lock);
    int borrowed;
    ck_assert_int_eq(pfs_borrow_fd(f, false, &borrowed), 0); /* a read under way */
    struct file *g = env_open("f", true);
    ck_assert_ptr_eq(f, g);
    ck_assert_int_eq(pfs_of(f)->fd, fd);
    ck_assert(pfs_of(f)->writable);
    ck_assert_int_eq(pread(borrowed, buf, 4, 0), 4);
    pfs_return_fd(f);
    ck_assert_int_eq(pwrite(pfs_of(f)->fd, "ab", 2, 0), 2);
    shut(g);
    ck_assert(pfs_has_descriptor(f)); /* one open is left */
    shut(f);
    env_expect("f", "ab23456789", 10);
}
END_TEST

START_TEST(closed_and_dirty_keeps_its_descriptor)
{
    struct file *f = env_create("f", 0644), *clean = env_create("clean", 0644);
    struct version v = version_on_pfs("clean");
    store_flushed(clean, &v, UINT64_MAX, NULL);
    env_write(f, "x", 1, 0);
    pfs_release(f);
    pfs_release(clean);
    ck_assert(pfs_has_descriptor(f));
    struct file_info info;
    store_info(clean, &info);
    ck_assert(pfs_has_descriptor(clean) == info.dirty);
    pfs_drop(f);
    ck_assert(!pfs_has_descriptor(f));
    file_put(f);
    file_put(clean);
}
END_TEST

START_TEST(kept_descriptors_have_a_budget)
{
    struct rlimit old, r;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    r = old;
    r.rlim_cur = 256; /* 64 of them */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
    enum { FILES = 100 };
    struct file *f[FILES];
    char name[16];
    unsigned kept = 0;
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        f[i] = env_create(name, 0644);
        env_write(f[i], "x", 1, 0);
        pfs_release(f[i]);
    }
    for (int i = 0; i < FILES; i++)
        kept += pfs_has_descriptor(f[i]);
    ck_assert_uint_eq(kept, 64);
    ck_assert(!pfs_has_descriptor(f[0])); /* the oldest went */
    ck_assert(pfs_has_descriptor(f[FILES - 1]));
    ck_assert_int_eq(pfs_write_begin(f[0], &before), 0); /* made anew by path */
    ck_assert_int_eq(pfs_write(f[0], "y", 1, 0), 0);
    pfs_write_abort(f[0]);
    env_expect("f0", "y", 1);
    for (int i = 0; i < FILES; i++) {
        pfs_drop(f[i]);
        file_put(f[i]);
    }
}
END_TEST

START_TEST(an_opened_file_counts_until_it_is_released)
{
    env_put("f", "abc", 3, 0644);
    struct file *f = env_open("f", false), *g = env_open("f", false);
    ck_assert_ptr_eq(f, g);
    ck_assert_uint_eq(pfs_of(f)->opens, 2);
    pfs_release(f);
    pfs_drop(f); /* not while it is open */
    ck_assert(pfs_has_descriptor(f));
    ck_assert_int_eq(unlink(env_path("f")), 0);
    struct statx stx;
    ck_assert_int_eq(pfs_file_stat(f, &stx), 0);
    ck_assert_uint_eq(stx.stx_nlink, 0);
    size_t got;
    ck_assert_int_eq(pfs_read(f, buf, 10, 1, &got), 0);
    ck_assert_uint_eq(got, 2);
    pfs_release(f);
    ck_assert(!pfs_has_descriptor(f));
    ck_assert_int_eq(pfs_file_stat(f, &stx), -ENOENT);
    file_put(f);
    file_put(g);
}
END_TEST

static struct file *removed;

static void remove_it(void)
{
    ck_assert_int_eq(unlink(env_path("f")), 0);
    file_set_unlinked(removed, true);
    store_set_deleted(removed);
}

/* Its bytes are nowhere else: it is not the new file with its number that one with a name would be. */
START_TEST(what_is_removed_while_it_is_opened_keeps_its_bytes)
{
    struct file *f = removed = env_create("f", 0644);
    struct statx stx;
    env_write(f, "abc", 3, 0);
    after_look = remove_it;
    ck_assert_int_eq(pfs_open_file(f, NULL, false, NULL, &stx), 0);
    ck_assert_ptr_null(after_look);
    ck_assert_uint_eq(stx.stx_nlink, 0);
    ck_assert_int_eq(store_read(f, buf, 3, 0), 3);
    ck_assert_mem_eq(buf, "abc", 3);
    pfs_release(f);
    shut(f);
}
END_TEST

START_TEST(the_wrong_file_is_never_opened)
{
    env_put("f", "one", 3, 0644);
    struct file *f = env_open("f", false);
    shut(f);
    env_put("other", "two", 3, 0644);
    struct fid fid = fid_on_pfs("f");
    ck_assert_int_eq(rename(env_path("other"), env_path("f")), 0);
    ck_assert_int_eq(file_get(fid, "f", &f), 0);
    struct statx stx;
    ck_assert_int_eq(pfs_file_stat(f, &stx), -ESTALE);
    ck_assert_int_eq(pfs_write_begin(f, &before), -ESTALE);
    size_t got;
    ck_assert_int_eq(pfs_read(f, buf, 3, 0, &got), -ESTALE);
    struct pfs_node *n = pfs_child_as(pfs_root(), "f", fid, NULL);
    ck_assert_int_eq(pfs_open_file(f, n, true, NULL, &stx), -ESTALE);
    ck_assert_uint_eq(pfs_of(f)->opens, 0);
    pfs_unref(n);
    file_put(f);
    env_expect("f", "two", 3);
}
END_TEST

/* A FIFO would be waited for, without end. */
START_TEST(what_is_no_file_any_more_is_not_opened)
{
    env_put("f", "one", 3, 0644);
    struct file *f = env_open("f", false);
    struct fid fid = f->fid;
    struct pfs_node *n = pfs_child_as(pfs_root(), "f", fid, NULL);
    struct statx stx;
    shut(f);
    ck_assert_int_eq(rename(env_path("f"), env_path("away")), 0);
    ck_assert_int_eq(mkfifo(env_path("f"), 0644), 0);
    ck_assert_int_eq(file_get(fid, "f", &f), 0);
    ck_assert_int_eq(pfs_open_file(f, n, false, NULL, &stx), -ESTALE);
    ck_assert_int_eq(unlink(env_path("f")), 0);
    ck_assert_int_eq(mkdir(env_path("f"), 0755), 0);
    ck_assert_int_eq(pfs_open_file(f, n, false, NULL, &stx), -ESTALE);
    ck_assert_uint_eq(pfs_of(f)->opens, 0);
    pfs_unref(n);
    file_put(f);
}
END_TEST

START_TEST(write_back_gives_size_and_times)
{
    env_put("f", "0123456789", 10, 0644);
    struct file *f = env_open("f", true);
    struct statx stx;
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_int_eq(pfs_write(f, "xy", 2, 4), 0);
    ck_assert_int_eq(pfs_truncate(f, 8), 0);
    ck_assert_int_eq(pfs_sync(f), 0);
    ck_assert_int_eq(pfs_write_end(f, 1234567890123456789, &stx), 0);
    struct version v = version_of(&stx);
    ck_assert_uint_eq(stx.stx_nlink, 1);
    ck_assert_int_eq(v.mtime_ns, 1234567890123456789);
    ck_assert_uint_eq(v.size, 8);
    struct version there = version_on_pfs("f");
    ck_assert(version_eq(&v, &there));
    env_expect("f", "0123xy67", 8);
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_int_eq(pfs_write_end(f, -1500000000, &stx), 0); /* 1969 */
    ck_assert_int_eq(version_on_pfs("f").mtime_ns, -1500000000);
    shut(f);
}
END_TEST

START_TEST(punching_stays_within_the_file)
{
    make_pattern(3);
    env_put("f", pattern, 100000, 0644);
    struct file *f = env_open("f", true);
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_int_eq(pfs_punch(f, 4096, 8192), 0);
    ck_assert_int_eq(pfs_punch(f, 98304, 1 << 20), 0);
    ck_assert_int_eq(pfs_punch(f, 1 << 20, 1 << 20), 0);
    pfs_write_abort(f);
    memset(pattern + 4096, 0, 8192);
    memset(pattern + 98304, 0, 100000 - 98304);
    env_expect("f", pattern, 100000);
    uint64_t at;
    ck_assert_int_eq(pfs_file_seek(f, 0, false, &at), 0);
    ck_assert_uint_eq(at, 0);
    ck_assert_int_eq(pfs_file_seek(f, 0, true, &at), 0);
    ck_assert(at == 4096 || at == 100000);
    shut(f);
}
END_TEST

START_TEST(punching_where_the_pfs_can_not)
{
    if (!refuse(SYS_fallocate, -1, EOPNOTSUPP))
        NOT_CHECKED("no seccomp here");
    make_pattern(3);
    int fd = open(env_path("f"), O_CREAT | O_WRONLY, 0644);
    ck_assert_int_eq(pwrite(fd, pattern, 100000, 0), 100000);
    ck_assert_int_eq(pwrite(fd, pattern, 100, 10 << 20), 100); /* a hole before it */
    close(fd);
    struct file *f = env_open("f", true);
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_int_eq(pfs_punch(f, 4096, 20 << 20), 0);
    pfs_write_abort(f);
    struct stat st;
    ck_assert_int_eq(stat(env_path("f"), &st), 0);
    ck_assert_int_eq(st.st_size, (10 << 20) + 100);
    ck_assert_int_le(st.st_blocks * 512, 200000); /* the hole was not written */
    char *got = malloc((size_t)st.st_size);
    fd = open(env_path("f"), O_RDONLY);
    ck_assert_int_eq(read(fd, got, (size_t)st.st_size), st.st_size);
    close(fd);
    ck_assert_mem_eq(got, pattern, 4096);
    ck_assert(got[4096] == 0 && memcmp(got + 4096, got + 4097, (size_t)st.st_size - 4097) == 0);
    free(got);
    shut(f);
}
END_TEST

START_TEST(an_unlinked_file_is_said_to_be)
{
    struct file *f = env_create("f", 0644);
    ck_assert_int_eq(unlink(env_path("f")), 0);
    ck_assert_int_eq(pfs_write_begin(f, &before), -EIDRM);
    pfs_release(f);
    pfs_drop(f);
    ck_assert_int_eq(pfs_write_begin(f, &before), -ENOENT);
    file_put(f);
}
END_TEST

/* Made as name, and known to be at path, where it was meanwhile. */
static struct file *file_once_at(const char *name, const char *path)
{
    struct file *f = env_create(name, 0600);
    pfs_release(f);
    pfs_drop(f);
    file_set_path(f, path);
    return f;
}

static void is_found_at(struct file *f, const char *wanted)
{
    struct statx stx;
    ck_assert_int_eq(pfs_find_near(f, &stx), 0);
    ck_assert(fid_eq(fid_of(&stx), f->fid));
    char *path = file_path(f);
    ck_assert_str_eq(path, wanted);
    free(path);
}

START_TEST(what_was_renamed_is_found_near)
{
    struct statx stx;
    for (const char *const *d = (const char *const[]){"a", "a/old", "a/old/c", "z", NULL}; *d; d++)
        ck_assert_int_eq(mkdir(env_path(*d), 0700), 0);
    struct file *f = file_once_at("f", "a/b/c/f");
    ck_assert_int_eq(pfs_find_near(f, &stx), -ENOENT);
    char *here = strdup(env_path("f"));
    ck_assert_int_eq(rename(here, env_path("a/old/c/f")), 0);
    is_found_at(f, "a/old/c/f"); /* a/b is a/old now */
    ck_assert_int_eq(symlink("old", env_path("a/b")), 0);
    file_set_path(f, "a/b/c/f");
    is_found_at(f, "a/old/c/f"); /* and the old name leads there */
    file_set_path(f, "a/old/c/g");
    is_found_at(f, "a/old/c/f"); /* in its directory */
    free(here);

    /* Of many that are nowhere not each is searched for; in its directory one is still. */
    struct file *gone = file_once_at("gone", "a/b/c/gone");
    for (unsigned n = 0; n < 64; n++)
        ck_assert_int_eq(pfs_find_near(gone, &stx), -ENOENT);
    file_set_path(f, "a/b/c/f");
    ck_assert_int_eq(pfs_find_near(f, &stx), -ENOENT);
    file_set_path(f, "a/old/c/g");
    is_found_at(f, "a/old/c/f");
    file_put(gone);
    file_put(f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pfs_data");
    TCase *t = add_case(s, "pfs_data", setup, teardown, 60);
    tcase_add_test(t, chunks_of_a_version);
    tcase_add_test(t, what_was_renamed_is_found_near);
    tcase_add_test(t, chunks_by_fid_and_path);
    tcase_add_test(t, readers_by_path_are_bounded);
    tcase_add_test(t, a_chunk_is_never_of_two_versions);
    tcase_add_test(t, a_writer_replaces_a_reader);
    tcase_add_test(t, closed_and_dirty_keeps_its_descriptor);
    tcase_add_test(t, kept_descriptors_have_a_budget);
    tcase_add_test(t, an_opened_file_counts_until_it_is_released);
    tcase_add_test(t, what_is_removed_while_it_is_opened_keeps_its_bytes);
    tcase_add_test(t, the_wrong_file_is_never_opened);
    tcase_add_test(t, what_is_no_file_any_more_is_not_opened);
    tcase_add_test(t, write_back_gives_size_and_times);
    tcase_add_test(t, punching_stays_within_the_file);
    tcase_add_test(t, punching_where_the_pfs_can_not);
    tcase_add_test(t, an_unlinked_file_is_said_to_be);
    return run_suite(s);
}
