/* test_piece.c - how large the writes of a flush are, and what a PFS says of the size it likes. */
#include "flush/piece.h"
#include "placement/pfs/pfs_file.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

START_TEST(a_multiple_of_the_unit_not_below_4_mib)
{
    static const struct {
        uint64_t unit, size;
    } rows[] = {
        {0, 4 * MIB},         {512, 4 * MIB},       {4 * KIB, 4 * MIB},  {MIB, 4 * MIB},
        {3 * MIB, 6 * MIB},   {4 * MIB, 4 * MIB},   {5 * MIB, 5 * MIB},  {8 * MIB, 8 * MIB},
        {16 * MIB, 16 * MIB}, {64 * MIB, 16 * MIB}, {17 * MIB, 4 * MIB}, {192 * KIB, 4224 * KIB},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t size = piece_size(rows[i].unit);
        ck_assert_uint_eq(size, rows[i].size);
        ck_assert_uint_le(size, PIECE_MAX);
    }
}
END_TEST

START_TEST(pieces_end_at_multiples)
{
    const uint64_t sizes[] = {4 * MIB, 6 * MIB, 4224 * KIB};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (uint64_t off = 12345, end = 50 * MIB, n = 0; off < end; n++) {
            uint64_t len = piece_len(sizes[i], off, end);
            ck_assert_uint_gt(len, 0);
            ck_assert_uint_le(len, sizes[i]);
            off += len;
            ck_assert(off == end || off % sizes[i] == 0);
            ck_assert_uint_lt(n, 14);
        }
    ck_assert_uint_eq(piece_len(4 * MIB, 100, 200), 100);
}
END_TEST

/* ---- Lustre ---- */

static uint8_t layout[512];

static void put(size_t at, uint32_t v)
{
    memcpy(layout + at, &v, sizeof(v));
}

static void put_plain(size_t at, uint32_t magic, uint32_t stripe)
{
    put(at, magic);
    put(at + 24, stripe);
}

START_TEST(stripes)
{
    put_plain(0, 0x0BD10BD0, MIB);
    ck_assert_uint_eq(pfs_lustre_stripe(layout, 32), MIB);
    put_plain(0, 0x0BD30BD0, 8 * MIB);
    ck_assert_uint_eq(pfs_lustre_stripe(layout, 48), 8 * MIB);
    for (size_t len = 0; len < 28; len++) /* cut off */
        ck_assert_uint_eq(pfs_lustre_stripe(layout, len), 0);
    put(0, 0x12345678);
    ck_assert_uint_eq(pfs_lustre_stripe(layout, 48), 0);
}
END_TEST

START_TEST(stripes_of_composite_layouts)
{
    memset(layout, 0, sizeof(layout));
    put(0, 0x0BD60BD0);
    put(12, 2u << 16); /* flags 0, two entries */
    put(32 + 24, 128);
    put(32 + 48 + 24, 192);
    put_plain(128, 0x0BD10BD0, MIB);
    put_plain(192, 0x0BD30BD0, 4 * MIB);
    ck_assert_uint_eq(pfs_lustre_stripe(layout, 240), 4 * MIB);
    put(12, 1u << 16);
    ck_assert_uint_eq(pfs_lustre_stripe(layout, 240), MIB);
    put(32 + 24, 4000000000u); /* outside */
    ck_assert_uint_eq(pfs_lustre_stripe(layout, 240), 0);
    put(12, 0xffffu << 16);
    for (size_t len = 0; len <= sizeof(layout); len++)
        pfs_lustre_stripe(layout, len); /* stays inside: a sanitizer looks */
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("piece");
    tcase_add_test(t, a_multiple_of_the_unit_not_below_4_mib);
    tcase_add_test(t, pieces_end_at_multiples);
    tcase_add_test(t, stripes);
    tcase_add_test(t, stripes_of_composite_layouts);
    return run_case("piece", t);
}
