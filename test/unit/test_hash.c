/* test_hash.c - the checksum of data is XXH3-64, whichever instructions compute it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "transport/hash.h"

#include "suite.h"

START_TEST(known_values)
{
    ck_assert_uint_eq(data_hash("", 0), 0x2d06800538d394c2u);
    ck_assert_uint_eq(data_hash("eddyfs", 6), XXH3_64bits("eddyfs", 6));
}
END_TEST

START_TEST(it_is_what_the_plain_function_says)
{
    enum { MAX = 70000 };
    uint8_t *buf = malloc(MAX + 64);
    for (size_t i = 0; i < MAX + 64; i++)
        buf[i] = (uint8_t)(i * 131 ^ i >> 7);
    for (size_t len = 1; len <= MAX; len += 1 + len / 3)
        for (size_t at = 0; at < 64; at += 21)
            ck_assert_uint_eq(data_hash(buf + at, len), XXH3_64bits(buf + at, len));
    free(buf);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("hash");
    tcase_add_test(t, known_values);
    tcase_add_test(t, it_is_what_the_plain_function_says);
    return run_case("hash", t);
}
