/* test_store_model.c - random work on the store, one thing after the other, is never wrong: with evictions
 * all the time, the store closed and opened again without warning, flushes that stop or fail half-way.
 */
#include "store_model.h"

START_TEST(random_work_with_crashes_is_never_wrong)
{
    uint64_t seed = env_number("EDDY_TEST_SEED", random_u64() | 1),
             rounds = env_number("EDDY_TEST_ROUNDS", 6000);
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    struct rnd r = {seed};
    struct model m;
    model_init(&m);
    m.meanwhile = in_the_middle;
    for (uint64_t i = 0; i < rounds; i++)
        one_step(&m, &r);
    ck_assert_uint_gt(counted(evicted_bytes), 0);
    model_finish(&m, &r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("model");
    tcase_add_checked_fixture(t, model_setup, model_teardown);
    tcase_set_timeout(t, 0);
    tcase_add_test(t, random_work_with_crashes_is_never_wrong);
    return run_case("store model", t);
}
