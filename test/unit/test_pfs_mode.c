/* test_pfs_mode.c - files on the PFS that an ordinary user may not open as they are: what refuses,
 * and the modes that write-back raises and gives back. */
#include "pfs_env.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_file.h"
#include "placement/pfs/pfs_names.h"
#include "placement/pfs/pfs_node.h"
#include "placement/pfs/pfs_write.h"
#include "placement/store/store_copyout.h"
#include "placement/store/store_open.h"
#include "suite.h"

static struct statx before; /* what the PFS has before a run */

static void setup(void)
{
    env_make();
    env_be_user();
    env_open_store();
    env_open_pfs();
}

static void teardown(void)
{
    pfs_close();
    store_close(false);
    env_remove();
}

static void shut(struct file *f)
{
    pfs_release(f);
    file_put(f);
}

START_TEST(what_another_file_refuses_is_not_told)
{
    env_put("f", "one", 3, 0644);
    env_put("other", "two", 3, 0);
    struct file *f = env_open("f", false);
    struct fid fid = f->fid;
    struct pfs_node *n = pfs_child_as(pfs_root(), "f", fid, NULL);
    struct statx stx;
    shut(f);
    ck_assert_int_eq(file_get(fid, "f", &f), 0);
    ck_assert_int_eq(chmod(env_path("f"), 0), 0);
    ck_assert_int_eq(pfs_open_file(f, n, false, NULL, &stx), -EACCES);
    ck_assert_int_eq(rename(env_path("other"), env_path("f")), 0);
    ck_assert_int_eq(pfs_open_file(f, n, false, NULL, &stx), -ESTALE);
    ck_assert_uint_eq(pfs_of(f)->opens, 0);
    pfs_unref(n);
    file_put(f);
}
END_TEST

/* ---- modes; as an ordinary user, who the permissions bind ---- */

static struct file *closed_file(const char *name, mode_t mode)
{
    struct file *f = env_create(name, mode);
    env_write(f, "x", 1, 0);
    pfs_release(f);
    pfs_drop(f); /* beyond the budget: no descriptor is left */
    return f;
}

static mode_t mode_seen(const char *name)
{
    struct statx stx;
    ck_assert_int_eq(pfs_lookup(pfs_root(), name, &stx), 0);
    return stx.stx_mode & 07777;
}

static void end_write(struct file *f)
{
    struct statx stx;
    ck_assert_int_eq(pfs_write_end(f, 1000000000, &stx), 0);
}

START_TEST(a_file_that_its_owner_may_not_write)
{
    struct file *f = closed_file("f", 0444);
    uint32_t mode;
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_uint_eq(env_mode("f"), 0644);
    ck_assert(store_raised_mode(f, &mode));
    ck_assert_uint_eq(mode, 0444);
    ck_assert_uint_eq(mode_seen("f"), 0444); /* nobody here sees the difference */
    ck_assert_int_eq(pfs_write(f, "flushed", 7, 0), 0);
    end_write(f);
    ck_assert_uint_eq(env_mode("f"), 0444);
    ck_assert(!store_raised_mode(f, &mode));
    env_expect("f", "flushed", 7);
    pfs_drop(f);
    file_put(f);
}
END_TEST

START_TEST(not_even_readable_is_written_back)
{
    struct file *f = closed_file("f", 0);
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_int_eq(pfs_write(f, "abc", 3, 0), 0);
    end_write(f);
    ck_assert_uint_eq(env_mode("f"), 0);
    pfs_drop(f);
    file_put(f);
}
END_TEST

static void chmod_by_name(const char *name, mode_t mode)
{
    struct statx stx;
    ck_assert_int_eq(pfs_lookup(pfs_root(), name, &stx), 0);
    struct pfs_node *n = pfs_child_as(pfs_root(), name, fid_of(&stx), NULL);
    ck_assert_int_eq(pfs_chmod(n, mode, NULL), 0);
    pfs_unref(n);
}

START_TEST(the_applications_chmod_during_write_back_holds)
{
    static const mode_t to[] = {0400, 0644, 0755, 0444, 0};
    struct file *f = closed_file("f", 0444);
    uint32_t mode;
    for (size_t i = 0; i < ARRAY_LEN(to); i++) {
        chmod_by_name("f", 0444);
        pfs_drop(f);
        ck_assert_int_eq(pfs_write_begin(f, &before), 0);
        ck_assert_uint_eq(env_mode("f"), 0644);
        chmod_by_name("f", to[i]); /* 0644 is what the flush itself has set */
        ck_assert(!store_raised_mode(f, &mode));
        ck_assert_uint_eq(mode_seen("f"), to[i]);
        ck_assert_int_eq(pfs_write(f, "abc", 3, 0), 0);
        end_write(f);
        ck_assert_uint_eq(env_mode("f"), to[i]);
    }
    pfs_drop(f);
    file_put(f);
}
END_TEST

START_TEST(setuid_survives_the_flush)
{
    struct file *f = closed_file("f", 0755);
    chmod_by_name("f", 06755); /* after the last write: meant to stay */
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_int_eq(pfs_write(f, "abc", 3, 0), 0); /* the kernel strips it */
    end_write(f);
    ck_assert_uint_eq(env_mode("f") & 06000, 06000);
    /* stripped by the application's own write while the flush runs: stays stripped */
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_int_eq(pfs_strip_suid(f, S_ISUID | S_ISGID), 0);
    ck_assert_int_eq(pfs_write(f, "abd", 3, 0), 0);
    end_write(f);
    ck_assert_uint_eq(env_mode("f"), 0755);
    pfs_drop(f);
    file_put(f);
}
END_TEST

START_TEST(stripping_takes_the_bits_that_it_is_told)
{
    env_put("f", "x", 1, 06745);
    env_put("g", "x", 1, 06775);
    struct file *f = env_open("f", true), *g = env_open("g", true);
    ck_assert_int_eq(pfs_strip_suid(f, S_ISUID), 0);
    ck_assert_int_eq(pfs_strip_suid(g, S_ISUID | S_ISGID), 0);
    ck_assert_uint_eq(env_mode("f"), 02745);
    ck_assert_uint_eq(env_mode("g"), 0775);
    shut(f);
    shut(g);
}
END_TEST

START_TEST(a_dead_daemons_raised_mode_is_given_back)
{
    struct file *f = closed_file("f", 0444);
    ck_assert_int_eq(chmod(env_path("f"), 0644), 0);
    store_set_raised_mode(f, 0444);
    ck_assert_int_eq(pfs_restore_mode(f), 0);
    ck_assert_uint_eq(env_mode("f"), 0444);
    uint32_t mode;
    ck_assert(!store_raised_mode(f, &mode));
    /* or by the next flush, when it could not be given back at the start */
    ck_assert_int_eq(chmod(env_path("f"), 0644), 0);
    store_set_raised_mode(f, 0444);
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_uint_eq(mode_seen("f"), 0444);
    end_write(f);
    ck_assert_uint_eq(env_mode("f"), 0444);
    ck_assert(!store_raised_mode(f, &mode));
    /* not if somebody has set another one meanwhile */
    ck_assert_int_eq(chmod(env_path("f"), 0600), 0);
    store_set_raised_mode(f, 0444);
    ck_assert_int_eq(pfs_restore_mode(f), 0);
    ck_assert_uint_eq(env_mode("f"), 0600);
    pfs_drop(f);
    file_put(f);
}
END_TEST

/* chmod is the owner's; who writes it makes setuid and setgid go. */
START_TEST(somebody_elses_setuid_goes_with_the_bytes)
{
    if (getuid() != 0)
        NOT_CHECKED("needs root");
    ck_assert_int_eq(seteuid(0), 0);
    env_put("theirs", "0123", 4, 06777);
    ck_assert_int_eq(seteuid(NOBODY), 0);
    struct file *f = env_open("theirs", true);
    ck_assert_int_eq(pfs_strip_suid(f, S_ISUID | S_ISGID), 0); /* the application writes */
    ck_assert_uint_eq(env_mode("theirs"), 06777);
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_int_eq(pfs_write(f, "x", 1, 0), 0);
    end_write(f);
    ck_assert_uint_eq(env_mode("theirs"), 0777);
    shut(f);
}
END_TEST

START_TEST(somebody_elses_file)
{
    if (getuid() != 0)
        NOT_CHECKED("needs root");
    ck_assert_int_eq(seteuid(0), 0);
    env_put("theirs", "0123", 4, 0666);
    env_put("locked", "0123", 4, 0444);
    ck_assert_int_eq(seteuid(NOBODY), 0);
    struct file *f = env_open("theirs", true);
    struct statx stx;
    ck_assert_int_eq(pfs_write_begin(f, &before), 0);
    ck_assert_int_eq(pfs_write(f, "x", 1, 0), 0);
    /* its times may not be set: no error */
    ck_assert_int_eq(pfs_write_end(f, 1000000000, &stx), 0);
    ck_assert_int_ne(version_of(&stx).mtime_ns, 1000000000);
    shut(f);
    f = env_open("locked", false);
    ck_assert_int_eq(pfs_write_begin(f, &before), -EACCES);
    ck_assert_uint_eq(env_mode("locked"), 0444);
    shut(f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pfs_mode");
    TCase *t = add_case(s, "pfs_mode", setup, teardown, 60);
    tcase_add_test(t, what_another_file_refuses_is_not_told);
    tcase_add_test(t, a_file_that_its_owner_may_not_write);
    tcase_add_test(t, not_even_readable_is_written_back);
    tcase_add_test(t, the_applications_chmod_during_write_back_holds);
    tcase_add_test(t, setuid_survives_the_flush);
    tcase_add_test(t, stripping_takes_the_bits_that_it_is_told);
    tcase_add_test(t, a_dead_daemons_raised_mode_is_given_back);
    tcase_add_test(t, somebody_elses_setuid_goes_with_the_bytes);
    tcase_add_test(t, somebody_elses_file);
    return run_suite(s);
}
