/* test_message.c - every message there and back, cut at every length, and byte for byte as it was.
 *
 * All of it is made from the tables in message.h: a new message is tested when it is there.  Its
 * golden file test/golden/NAME.bin is written with
 *
 *     EDDY_GOLDEN_WRITE=1 build/test/unit_message
 *
 * and belongs to the change that adds the message.  An existing golden file changes only with the
 * major version.
 */
#include "transport/message.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "golden.h"
#include "message_fill.h"
#include "suite.h"

/* ---- bytes ---- */

static void poke(void *buf, size_t at, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)buf)[at + i] = (uint8_t)(v >> (8 * i));
}

static uint64_t peek(const void *buf, size_t at, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)((const uint8_t *)buf)[at + i] << (8 * i);
    return v;
}

static void encode(const struct msg *m, void **buf, size_t *len)
{
    ck_assert_int_eq(msg_encode(m, buf, len), 0);
    ck_assert_uint_eq(*len, MSG_HEAD_SIZE + peek(*buf, 12, 4));
}

/* Decodes from a copy of exactly this length, so that a tool that checks memory sees one byte too
 * many. */
static int decode_exact(const void *buf, size_t len, struct msg **m)
{
    void *copy = malloc(len ? len : 1);
    memcpy(copy, buf, len);
    int err = msg_decode(copy, len, m, NULL);
    free(copy);
    return err;
}

static void survives_the_wire(enum msg_type type)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct fill f = {.state = seed * MSG_TYPES + (uint64_t)type};
        struct msg *m = filled(&f, type), *back;
        void *buf;
        size_t len;
        encode(m, &buf, &len);
        ck_assert_int_eq(decode_exact(buf, len, &back), 0);
        assert_same(m, back);
        msg_free(back);
        free(buf);
        free_filled(&f, m);
    }
}

static void is_refused_if_it_is_cut_anywhere(enum msg_type type)
{
    struct fill f = {.state = (uint64_t)type};
    struct msg *m = filled(&f, type), *back;
    void *buf;
    size_t len;
    encode(m, &buf, &len);
    for (size_t cut = 0; cut < len; cut++) {
        ck_assert_int_eq(decode_exact(buf, cut, &back), -EPROTO);
        if (cut < MSG_HEAD_SIZE)
            continue;
        poke(buf, 12, cut - MSG_HEAD_SIZE, 4); /* and when the head says so */
        ck_assert_int_eq(decode_exact(buf, cut, &back), -EPROTO);
        poke(buf, 12, len - MSG_HEAD_SIZE, 4);
    }
    free(buf);
    free_filled(&f, m);
}

static void is_read_with_a_longer_body(enum msg_type type)
{
    struct fill f = {.state = (uint64_t)type};
    struct msg *m = filled(&f, type), *back;
    void *buf;
    size_t len;
    encode(m, &buf, &len);
    buf = xrealloc(buf, len + 9);
    memset((char *)buf + len, 0xff, 9);
    poke(buf, 12, len + 9 - MSG_HEAD_SIZE, 4);
    poke(buf, 4, MSG_VERSION + 1, 2); /* a newer minor version */
    ck_assert_int_eq(decode_exact(buf, len + 9, &back), 0);
    back->head.version = MSG_VERSION;
    assert_same(m, back);
    msg_free(back);
    free(buf);
    free_filled(&f, m);
}

/* One byte at a time: never a crash, and what is accepted can be sent again. */
static void is_refused_or_another_with_a_wrong_byte(enum msg_type type)
{
    struct fill f = {.state = (uint64_t)type};
    struct msg *m = filled(&f, type), *back;
    void *buf;
    size_t len;
    encode(m, &buf, &len);
    for (size_t at = 0; at < len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            ((uint8_t *)buf)[at] ^= (uint8_t)(1u << bit);
            int err = decode_exact(buf, len, &back);
            if (!err) {
                void *again;
                size_t again_len;
                ck_assert_int_eq(msg_encode(back, &again, &again_len), 0);
                free(again);
                msg_free(back);
            } else {
                ck_assert(err == -EPROTO || err == -ENOTSUP);
            }
            ((uint8_t *)buf)[at] ^= (uint8_t)(1u << bit);
        }
    free(buf);
    free_filled(&f, m);
}

static void is_byte_for_byte_as_it_was(enum msg_type type)
{
    struct fill f = {.state = (uint64_t)type};
    struct msg *m = filled(&f, type), *back;
    static uint8_t before[65536];
    void *buf;
    size_t len;
    encode(m, &buf, &len);
    size_t before_len = golden(msg_name(type), buf, len, before, sizeof(before));
    ck_assert_msg(before_len == len && !memcmp(before, buf, len),
                  "%s differs: the wire format changed", msg_name(type));
    ck_assert_int_eq(decode_exact(before, before_len, &back), 0);
    assert_same(m, back);
    msg_free(back);
    free(buf);
    free_filled(&f, m);
}

/* A check is a process. One for each type is enough: with five of each, most of the time went into beginning them. */
START_TEST(every_message_is_written_and_read)
{
    enum msg_type type = (enum msg_type)_i;
    survives_the_wire(type);
    is_refused_if_it_is_cut_anywhere(type);
    is_read_with_a_longer_body(type);
    is_refused_or_another_with_a_wrong_byte(type);
    is_byte_for_byte_as_it_was(type);
}
END_TEST

START_TEST(head_is_laid_out_as_documented)
{
    struct msg *m = msg_new(MSG_NOTE);
    m->head.flags = MSG_F_WANTS;
    m->head.view = 0x0102030405060708;
    m->head.sender = 2;
    m->head.incarnation = 3;
    m->head.token = 4;
    m->head.request = 5;
    m->head.deadline_ms = 6;
    m->head.status = -7;
    m->head.data_len = 8;
    m->note.newest = 9;
    void *buf;
    size_t len;
    encode(m, &buf, &len);
    ck_assert_uint_eq(len, 80);
    ck_assert_mem_eq(buf, "EDDY", 4);
    ck_assert_uint_eq(peek(buf, 4, 2), 0x0903);
    ck_assert_uint_eq(peek(buf, 6, 2), MSG_NOTE);
    ck_assert_uint_eq(peek(buf, 8, 4), 2);
    ck_assert_uint_eq(peek(buf, 12, 4), 8);
    ck_assert_uint_eq(peek(buf, 16, 8), 0x0102030405060708);
    ck_assert_uint_eq(peek(buf, 24, 8), 2);
    ck_assert_uint_eq(peek(buf, 32, 8), 3);
    ck_assert_uint_eq(peek(buf, 40, 8), 4);
    ck_assert_uint_eq(peek(buf, 48, 8), 5);
    ck_assert_uint_eq(peek(buf, 56, 4), 6);
    ck_assert_uint_eq(peek(buf, 60, 4), (uint32_t)-7);
    ck_assert_uint_eq(peek(buf, 64, 8), 8);
    ck_assert_uint_eq(peek(buf, 72, 8), 9);
    free(buf);
    msg_free(m);
}
END_TEST

/* The encoded NOTE with one field of the head changed. */
static int decode_head_with(size_t at, uint64_t v, size_t n, struct msg_head *head)
{
    struct msg *m = msg_new(MSG_NOTE);
    void *buf;
    size_t len;
    encode(m, &buf, &len);
    msg_free(m);
    poke(buf, at, v, n);
    int err = msg_decode_head(buf, len, head);
    free(buf);
    return err;
}

START_TEST(head_is_checked)
{
    struct msg_head h;
    ck_assert_int_eq(decode_head_with(0, MSG_MAGIC, 4, &h), 0);
    ck_assert_int_eq(decode_head_with(0, MSG_MAGIC + 1, 4, &h), -EPROTO);
    ck_assert_int_eq(decode_head_with(4, (MSG_MAJOR << 8) + 200, 2, &h), 0);
    ck_assert_uint_eq(h.version, (MSG_MAJOR << 8) + 200);
    ck_assert_int_eq(decode_head_with(4, (MSG_MAJOR + 1) << 8, 2, &h), -EPROTO);
    ck_assert_int_eq(decode_head_with(4, (MSG_MAJOR - 1) << 8, 2, &h), -EPROTO);
    ck_assert_int_eq(decode_head_with(12, MSG_BODY_MAX, 4, &h), 0);
    ck_assert_int_eq(decode_head_with(12, MSG_BODY_MAX + 1, 4, &h), -EPROTO);
    ck_assert_int_eq(decode_head_with(64, MSG_DATA_MAX, 8, &h), 0);
    ck_assert_int_eq(decode_head_with(64, MSG_DATA_MAX + 1, 8, &h), -EPROTO);
    ck_assert_int_eq(decode_head_with(64, UINT64_MAX, 8, &h), -EPROTO);
}
END_TEST

START_TEST(unknown_type_is_told_from_a_malformed_message)
{
    struct msg *m = msg_new(MSG_NOTE), *back = NULL;
    struct msg_head head = {0};
    void *buf;
    size_t len;
    m->head.request = 77;
    encode(m, &buf, &len);
    poke(buf, 6, MSG_TYPES, 2);
    ck_assert_int_eq(msg_decode(buf, len, &back, &head), -ENOTSUP);
    ck_assert_uint_eq(head.request, 77);
    ck_assert_uint_eq(head.type, MSG_TYPES);
    poke(buf, 6, 0, 2);
    ck_assert_int_eq(msg_decode(buf, len, &back, NULL), -ENOTSUP);
    ck_assert_ptr_null(back);
    m->head.type = MSG_TYPES;
    void *none;
    ck_assert_int_eq(msg_encode(m, &none, &len), -EINVAL);
    free(buf);
    msg_free(m);
}
END_TEST

START_TEST(list_that_says_more_than_it_holds_is_refused)
{
    static const size_t at = MSG_HEAD_SIZE + 1; /* of the count: after `look` */
    static const uint32_t counts[] = {3,          0x10000000, 0x10000001,
                                      0x7fffffff, 0x80000000, 0xffffffff};
    struct item_fid_item fids[2] = {{{1, 2}}, {{3, 4}}};
    struct msg *m = msg_new(MSG_ASK), *back;
    m->ask.fids.n = 2;
    m->ask.fids.v = fids;
    void *buf;
    size_t len;
    encode(m, &buf, &len);
    ck_assert_uint_eq(peek(buf, at, 4), 2);
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        poke(buf, at, counts[i], 4);
        ck_assert_int_eq(decode_exact(buf, len, &back), -EPROTO);
    }
    poke(buf, at, 1, 4); /* fewer: the rest is a longer body */
    ck_assert_int_eq(decode_exact(buf, len, &back), 0);
    ck_assert_uint_eq(back->ask.fids.n, 1);
    ck_assert_uint_eq(back->ask.fids.v[0].fid.lo, 2);
    msg_free(back);
    free(buf);
    msg_free(m);
}
END_TEST

static int encode_path(const char *path, struct msg **back)
{
    struct msg *m = msg_new(MSG_FETCH);
    m->fetch.path = path;
    void *buf;
    size_t len;
    int err = msg_encode(m, &buf, &len);
    msg_free(m);
    if (err)
        return err;
    err = decode_exact(buf, len, back);
    free(buf);
    return err;
}

START_TEST(paths_have_a_bound_and_no_nul)
{
    static char path[MSG_PATH_MAX + 2];
    struct msg *back;
    memset(path, 'p', MSG_PATH_MAX);
    ck_assert_int_eq(encode_path(path, &back), 0);
    ck_assert_str_eq(back->fetch.path, path);
    msg_free(back);
    path[MSG_PATH_MAX] = 'p';
    ck_assert_int_eq(encode_path(path, &back), -EINVAL);
    ck_assert_int_eq(encode_path(NULL, &back), 0);
    ck_assert_str_eq(back->fetch.path, "");
    msg_free(back);

    struct msg *m = msg_new(MSG_FETCH);
    m->fetch.path = "abc";
    void *buf;
    size_t len;
    encode(m, &buf, &len);
    ((char *)buf)[len - 2] = 0;
    ck_assert_int_eq(decode_exact(buf, len, &back), -EPROTO);

    size_t at = len - 5; /* where the path's length is */
    ck_assert_uint_eq(peek(buf, at, 2), 3);
    buf = xrealloc(buf, at + 2 + MSG_PATH_MAX + 1);
    memset((char *)buf + at + 2, 'p', MSG_PATH_MAX + 1);
    poke(buf, at, MSG_PATH_MAX + 1, 2);
    poke(buf, 12, at + 2 + MSG_PATH_MAX + 1 - MSG_HEAD_SIZE, 4);
    ck_assert_int_eq(decode_exact(buf, at + 2 + MSG_PATH_MAX + 1, &back), -EPROTO);
    free(buf);
    msg_free(m);
}
END_TEST

START_TEST(what_is_too_large_is_not_sent)
{
    struct msg *m = msg_new(MSG_WHERE);
    void *buf;
    size_t len;
    m->where.fids.n = MSG_BODY_MAX / 16;
    m->where.fids.v = xcalloc(m->where.fids.n, sizeof(*m->where.fids.v));
    ck_assert_int_eq(msg_encode(m, &buf, &len), -EMSGSIZE);
    m->where.fids.n--;
    ck_assert_int_eq(msg_encode(m, &buf, &len), 0);
    struct msg *back;
    ck_assert_int_eq(msg_decode(buf, len, &back, NULL), 0);
    ck_assert_uint_eq(back->where.fids.n, MSG_BODY_MAX / 16 - 1);
    msg_free(back);
    free(buf);
    m->head.data_len = (uint64_t)MSG_DATA_MAX + 1;
    ck_assert_int_eq(msg_encode(m, &buf, &len), -EMSGSIZE);
    free(m->where.fids.v);
    m->head.data_len = 0;
    m->where.fids.v = NULL;
    ck_assert_int_eq(msg_encode(m, &buf, &len), -EINVAL);
    msg_free(m);
}
END_TEST

START_TEST(names_come_from_the_table)
{
    ck_assert_str_eq(msg_name(MSG_PING), "PING");
    ck_assert_str_eq(msg_name(MSG_ADOPTED_OK), "ADOPTED_OK");
    ck_assert_str_eq(msg_name(MSG_ERROR), "ERROR");
    ck_assert_str_eq(msg_name(MSG_NONE), "?");
    ck_assert_str_eq(msg_name(MSG_TYPES), "?");
    ck_assert_str_eq(msg_name(65535), "?");
}
END_TEST

static int freed;

static void free_data(void *arg, void *data)
{
    ck_assert_ptr_eq(arg, &freed);
    free(data);
    freed++;
}

START_TEST(data_is_freed_by_its_owner)
{
    struct msg *m = msg_new(MSG_CHUNK);
    m->data = malloc(10);
    m->free_data = free_data;
    m->free_arg = &freed;
    msg_free(m);
    ck_assert_int_eq(freed, 1);
    m = msg_new(MSG_CHUNK);
    char here[4];
    m->data = here; /* not ours to free */
    msg_free(m);
    msg_free(NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("message");
    TCase *each = tcase_create("each");
    tcase_set_timeout(each, 60);
    tcase_add_loop_test(each, every_message_is_written_and_read, 1, MSG_TYPES);
    suite_add_tcase(s, each);
    TCase *t = tcase_create("message");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, head_is_laid_out_as_documented);
    tcase_add_test(t, head_is_checked);
    tcase_add_test(t, unknown_type_is_told_from_a_malformed_message);
    tcase_add_test(t, list_that_says_more_than_it_holds_is_refused);
    tcase_add_test(t, paths_have_a_bound_and_no_nul);
    tcase_add_test(t, what_is_too_large_is_not_sent);
    tcase_add_test(t, names_come_from_the_table);
    tcase_add_test(t, data_is_freed_by_its_owner);
    suite_add_tcase(s, t);
    return run_suite(s);
}
