/* message_fill.h - messages of every type with fields of pseudo-random values, and whether two are the
 * same field by field; made from the table of messages. */
#ifndef EDDY_TEST_MESSAGE_FILL_H
#define EDDY_TEST_MESSAGE_FILL_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base.h"
#include "transport/message.h"

/* ---- filling with pseudo-random values: the same for the same seed on every machine ---- */

struct fill {
    uint64_t state;
    char *strings[64]; /* freed by message_free_filled */
    unsigned nstrings;
    void *lists[16];
    unsigned nlists;
};

static inline uint64_t fill_next(struct fill *f) /* splitmix64 */
{
    uint64_t z = f->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline void fill_u8(struct fill *f, uint8_t *v)
{
    *v = (uint8_t)fill_next(f);
}

static inline void fill_u32(struct fill *f, uint32_t *v)
{
    *v = (uint32_t)fill_next(f);
}

static inline void fill_u64(struct fill *f, uint64_t *v)
{
    *v = fill_next(f);
}

static inline void fill_i64(struct fill *f, int64_t *v)
{
    *v = (int64_t)fill_next(f);
}

static inline void fill_fid(struct fill *f, struct fid *v)
{
    fill_u64(f, &v->hi);
    fill_u64(f, &v->lo);
}

static inline void fill_version(struct fill *f, struct version *v)
{
    fill_u64(f, &v->size);
    fill_i64(f, &v->mtime_ns);
    fill_i64(f, &v->ctime_ns);
}

static inline void fill_told(struct fill *f, struct told *v)
{
    fill_i64(f, &v->mtime_ns);
    fill_i64(f, &v->ctime_ns);
}

static inline void fill_str(struct fill *f, const char **v)
{
    size_t len = fill_next(f) % 40;
    char *s = xcalloc(1, len + 1);
    for (size_t i = 0; i < len; i++)
        s[i] = (char)(1 + fill_next(f) % 255); /* any byte but NUL */
    f->strings[f->nstrings++] = s;
    *v = s;
}

#define FILL_FIELD(kind, name) fill_##kind(f, &v->name);
#define FILL_LIST(item, name)                                                                      \
    v->name.n = (uint32_t)(1 + fill_next(f) % 3);                                                  \
    v->name.v = fill_list_##item(f, v->name.n);

#define FILL_ITEM(item, FIELDS)                                                                    \
    static void fill_item_##item(struct fill *f, struct item_##item *v)                            \
    {                                                                                              \
        FIELDS(FILL_FIELD)                                                                         \
    }                                                                                              \
    static struct item_##item *fill_list_##item(struct fill *f, uint32_t n)                        \
    {                                                                                              \
        struct item_##item *v = xcalloc(n, sizeof(*v));                                            \
        for (uint32_t i = 0; i < n; i++)                                                           \
            fill_item_##item(f, &v[i]);                                                            \
        f->lists[f->nlists++] = v;                                                                 \
        return v;                                                                                  \
    }
MSG_ITEMS(FILL_ITEM)

#define FILL_BODY(NAME, name, BODY)                                                                \
    static void fill_body_##name(struct fill *f, struct body_##name *v)                            \
    {                                                                                              \
        BODY(FILL_FIELD, FILL_LIST)                                                                \
    }
MESSAGES(FILL_BODY)

static inline void fill_head(struct fill *f, struct msg_head *h)
{
    h->flags = (uint32_t)fill_next(f);
    h->view = fill_next(f);
    h->sender = fill_next(f);
    h->incarnation = fill_next(f);
    h->token = fill_next(f);
    h->request = fill_next(f);
    h->deadline_ms = (uint32_t)fill_next(f);
    h->status = -(int32_t)(fill_next(f) % 134);
    h->data_len = fill_next(f) % (MSG_DATA_MAX + 1);
}

static inline struct msg *filled(struct fill *f, enum msg_type type)
{
    struct msg *m = msg_new(type);
    fill_head(f, &m->head);
    switch (type) {
#define FILL_CASE(NAME, name, BODY)                                                                \
    case MSG_##NAME:                                                                               \
        fill_body_##name(f, &m->name);                                                             \
        break;
        MESSAGES(FILL_CASE)
    default:
        ck_abort_msg("no such type");
    }
    return m;
}

static inline void free_filled(struct fill *f, struct msg *m)
{
    while (f->nstrings)
        free(f->strings[--f->nstrings]);
    while (f->nlists)
        free(f->lists[--f->nlists]);
    msg_free(m);
}

/* ---- comparing field by field ---- */

#define same_u8(a, b)      ck_assert_uint_eq(a, b)
#define same_u32(a, b)     ck_assert_uint_eq(a, b)
#define same_u64(a, b)     ck_assert_uint_eq(a, b)
#define same_i64(a, b)     ck_assert_int_eq(a, b)
#define same_fid(a, b)     ck_assert(fid_eq(a, b))
#define same_version(a, b) ck_assert(version_eq(&(a), &(b)))
#define same_told(a, b)    ck_assert((a).mtime_ns == (b).mtime_ns && (a).ctime_ns == (b).ctime_ns)
#define same_str(a, b)     ck_assert_str_eq(a, b)

#define SAME_FIELD(kind, name) same_##kind(a->name, b->name);
#define SAME_ITEM(item, FIELDS)                                                                    \
    static void same_item_##item(const struct item_##item *a, const struct item_##item *b)         \
    {                                                                                              \
        FIELDS(SAME_FIELD)                                                                         \
    }
MSG_ITEMS(SAME_ITEM)

#define SAME_LIST(item, name)                                                                      \
    ck_assert_uint_eq(a->name.n, b->name.n);                                                       \
    for (uint32_t i = 0; i < a->name.n; i++)                                                       \
        same_item_##item(&a->name.v[i], &b->name.v[i]);

#define SAME_BODY(NAME, name, BODY)                                                                \
    static void same_body_##name(const struct body_##name *a, const struct body_##name *b)         \
    {                                                                                              \
        BODY(SAME_FIELD, SAME_LIST)                                                                \
    }
MESSAGES(SAME_BODY)

static inline void assert_same(const struct msg *a, const struct msg *b)
{
    ck_assert_uint_eq(b->head.magic, MSG_MAGIC);
    ck_assert_uint_eq(b->head.version, MSG_VERSION);
    ck_assert_uint_eq(a->head.type, b->head.type);
    ck_assert_uint_eq(a->head.flags, b->head.flags);
    ck_assert_uint_eq(a->head.view, b->head.view);
    ck_assert_uint_eq(a->head.sender, b->head.sender);
    ck_assert_uint_eq(a->head.incarnation, b->head.incarnation);
    ck_assert_uint_eq(a->head.token, b->head.token);
    ck_assert_uint_eq(a->head.request, b->head.request);
    ck_assert_uint_eq(a->head.deadline_ms, b->head.deadline_ms);
    ck_assert_int_eq(a->head.status, b->head.status);
    ck_assert_uint_eq(a->head.data_len, b->head.data_len);
    switch (a->head.type) {
#define SAME_CASE(NAME, name, BODY)                                                                \
    case MSG_##NAME:                                                                               \
        same_body_##name(&a->name, &b->name);                                                      \
        break;
        MESSAGES(SAME_CASE)
    }
}

#endif
