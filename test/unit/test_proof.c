/* test_proof.c - while a proof is under way, and after it has failed, who may have what is in the
 * store? */
#include "store_help.h"
#include "suite.h"

#include "placement/chunks/proof.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "transport/loop.h"

static struct file *f;
static struct version v, newer;

static void setup(void)
{
    dir_setup();
    open_store(16384 * MIB, 64 * KIB);
    v = version_n(1 * MIB, 2);
    newer = version_n(1 * MIB, 3);
    f = get_file(1, "x");
    ck_assert_int_eq(store_set_version(f, &v, NULL), 0);
}

static void teardown(void)
{
    file_put(f);
    store_close(false);
    dir_teardown();
}

/* A call that begins now and takes bytes of the store's base at once. */
static int ask(void)
{
    struct proofs then = proofs_now(f);
    struct file_info info;
    store_info(f, &info);
    return proofs_stand(f, &then, &info.base, false);
}

START_TEST(who_comes_while_a_proof_is_under_way_waits_for_it)
{
    struct unproven a, b;
    struct proofs before = proofs_now(f);
    ck_assert_int_eq(ask(), 0);
    proof_begin(f, &a);
    ck_assert_int_eq(ask(), -EAGAIN);
    ck_assert_int_eq(proofs_stand(f, &before, &v, false), 0);
    struct proofs during = proofs_now(f);
    proof_begin(f, &b);
    proof_end(f, &a, &v, 0);
    ck_assert_int_eq(proofs_stand(f, &during, &v, true), 0);
    ck_assert_int_eq(ask(), -EAGAIN);
    proof_end(f, &b, &v, 0);
    ck_assert_int_eq(ask(), 0);
}
END_TEST

static void *end_later(void *u)
{
    proof_end(f, u, &v, -ESTALE);
    return NULL;
}

START_TEST(who_waits_is_told_when_it_fails)
{
    struct unproven a;
    pthread_t t;
    proof_begin(f, &a);
    struct proofs then = proofs_now(f);
    ck_assert_int_eq(pthread_create(&t, NULL, end_later, &a), 0);
    ck_assert_int_eq(proofs_stand(f, &then, &v, true), -ESTALE);
    pthread_join(t, NULL);
}
END_TEST

/* So long that the PFS must hang. */
static void make_old(struct unproven *u)
{
    u->ms -= 3000;
}

START_TEST(a_pfs_that_hangs_stops_nobody_and_other_proofs_are_waited_for)
{
    struct unproven a, b, c;
    proof_begin(f, &a);
    make_old(&a);
    ck_assert_int_eq(ask(), 0);
    proof_begin(f, &b);
    ck_assert_int_eq(ask(), -EAGAIN);
    make_old(&b);
    struct proofs then = proofs_now(f);
    proof_begin(f, &c);
    ck_assert_int_eq(proofs_stand(f, &then, &v, false), 0);
    proof_end(f, &b, &v, 0);
    proof_end(f, &c, &v, 0);
    ck_assert_int_eq(ask(), 0);
    proof_end(f, &a, &v, 0);
}
END_TEST

static void fail_one(const struct version *of, int err)
{
    struct unproven u;
    proof_begin(f, &u);
    proof_end(f, &u, of, err);
}

/* Also where the look itself failed: then nothing is known. */
START_TEST(what_is_in_doubt_is_not_given_until_somebody_has_looked)
{
    const int errs[] = {-ESTALE, -EIO, -ENOENT};
    for (size_t i = 0; i < ARRAY_LEN(errs); i++) {
        uint64_t early = proofs_before_look(f);
        fail_one(&v, errs[i]);
        ck_assert_int_eq(ask(), -ESTALE);
        proofs_looked(f, early); /* it began before */
        ck_assert_int_eq(ask(), -ESTALE);
        uint64_t late = proofs_before_look(f);
        proofs_looked(f, late);
        ck_assert_int_eq(ask(), 0);
        ck_assert(!proofs_now(f).any);
    }
}
END_TEST

START_TEST(bytes_of_a_version_that_is_no_more_the_stores_are_not_given)
{
    struct unproven a;
    proof_begin(f, &a);
    struct proofs then = proofs_now(f);
    uint64_t before = proofs_before_look(f);
    proof_end(f, &a, &newer, 0);
    ck_assert_int_eq(store_set_version(f, &newer, NULL), 0);
    proofs_looked(f, before);
    ck_assert_int_eq(proofs_stand(f, &then, &v, true), -ESTALE);
    ck_assert_int_eq(ask(), 0);
}
END_TEST

START_TEST(an_older_proof_that_fails_late_does_not_hide_the_newer_ones_failure)
{
    ck_assert_int_eq(store_set_version(f, &newer, NULL), 0);
    fail_one(&newer, -ESTALE);
    fail_one(&v, -ESTALE);
    ck_assert_int_eq(ask(), -ESTALE);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, who_comes_while_a_proof_is_under_way_waits_for_it);
    tcase_add_test(t, who_waits_is_told_when_it_fails);
    tcase_add_test(t, a_pfs_that_hangs_stops_nobody_and_other_proofs_are_waited_for);
    tcase_add_test(t, what_is_in_doubt_is_not_given_until_somebody_has_looked);
    tcase_add_test(t, bytes_of_a_version_that_is_no_more_the_stores_are_not_given);
    tcase_add_test(t, an_older_proof_that_fails_late_does_not_hide_the_newer_ones_failure);
    return run_case("proof", t);
}
