/* message.c - encode and decode, made from the tables in message.h.
 *
 * For each kind of field there is one put and one get; for each list item and each body a put and a
 * get that calls those of its fields in table order.
 *
 * Both directions run twice over a message.  Encoding runs first without a buffer, which gives the
 * length, then into a buffer of that length.  Decoding runs first without an arena, which checks everything
 * and gives the arena's size, then into the arena.  So a message costs one allocation, and a message with
 * false lengths costs none.
 */
#include "transport/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- put ---- */

struct out {
    uint8_t *p; /* NULL: only count */
    size_t len;
    int err;
};

static void put_bytes(struct out *o, const void *src, size_t n)
{
    if (o->p && n)
        memcpy(o->p + o->len, src, n);
    o->len += n;
}

static void put_le(struct out *o, uint64_t v, size_t n)
{
    uint8_t b[8];
    for (size_t i = 0; i < n; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    put_bytes(o, b, n);
}

static void put_u8(struct out *o, const uint8_t *v)
{
    put_le(o, *v, 1);
}

static void put_u32(struct out *o, const uint32_t *v)
{
    put_le(o, *v, 4);
}

static void put_u64(struct out *o, const uint64_t *v)
{
    put_le(o, *v, 8);
}

static void put_i64(struct out *o, const int64_t *v)
{
    put_le(o, (uint64_t)*v, 8);
}

static void put_fid(struct out *o, const struct fid *v)
{
    put_u64(o, &v->hi);
    put_u64(o, &v->lo);
}

static void put_version(struct out *o, const struct version *v)
{
    put_u64(o, &v->size);
    put_i64(o, &v->mtime_ns);
    put_i64(o, &v->ctime_ns);
}

static void put_told(struct out *o, const struct told *v)
{
    put_i64(o, &v->mtime_ns);
    put_i64(o, &v->ctime_ns);
}

static void put_str(struct out *o, const char *const *v)
{
    const char *s = *v ? *v : "";
    size_t n = strnlen(s, MSG_PATH_MAX + 1);
    if (n > MSG_PATH_MAX) {
        o->err = -EINVAL;
        return;
    }
    put_le(o, n, 2);
    put_bytes(o, s, n);
}

/* ---- get ---- */

struct in {
    const uint8_t *p;
    size_t left;
    bool bad;       /* every get after it gives zeros */
    uint8_t *arena; /* NULL: only count */
    size_t used, size;
};

static const uint8_t *get_bytes(struct in *in, size_t n)
{
    if (in->bad || n > in->left) {
        in->bad = true;
        return NULL;
    }
    const uint8_t *p = in->p;
    in->p += n;
    in->left -= n;
    return p;
}

static uint64_t get_le(struct in *in, size_t n)
{
    const uint8_t *p = get_bytes(in, n);
    uint64_t v = 0;
    for (size_t i = 0; p && i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void *arena_take(struct in *in, size_t n, size_t align)
{
    in->used = (in->used + align - 1) / align * align;
    size_t at = in->used;
    in->used += n;
    if (!in->arena)
        return NULL;
    if (in->used > in->size) { /* the buffer changed between the two runs */
        in->bad = true;
        return NULL;
    }
    return in->arena + at;
}

static void get_u8(struct in *in, uint8_t *v)
{
    *v = (uint8_t)get_le(in, 1);
}

static void get_u32(struct in *in, uint32_t *v)
{
    *v = (uint32_t)get_le(in, 4);
}

static void get_u64(struct in *in, uint64_t *v)
{
    *v = get_le(in, 8);
}

static void get_i64(struct in *in, int64_t *v)
{
    *v = (int64_t)get_le(in, 8);
}

static void get_fid(struct in *in, struct fid *v)
{
    get_u64(in, &v->hi);
    get_u64(in, &v->lo);
}

static void get_version(struct in *in, struct version *v)
{
    get_u64(in, &v->size);
    get_i64(in, &v->mtime_ns);
    get_i64(in, &v->ctime_ns);
}

static void get_told(struct in *in, struct told *v)
{
    get_i64(in, &v->mtime_ns);
    get_i64(in, &v->ctime_ns);
}

static void get_str(struct in *in, const char **v)
{
    *v = "";
    size_t n = (size_t)get_le(in, 2);
    const uint8_t *p = get_bytes(in, n);
    if (!p || n > MSG_PATH_MAX || memchr(p, 0, n)) {
        in->bad = true;
        return;
    }
    char *s = arena_take(in, n + 1, 1);
    if (s) {
        memcpy(s, p, n);
        s[n] = 0;
        *v = s;
    }
}

/* ---- list items and lists ---- */

/* The fewest bytes that each kind takes on the wire.  This bounds the count of a list before memory is
 * allocated. */
enum {
    least_u8 = 1,
    least_u32 = 4,
    least_u64 = 8,
    least_i64 = 8,
    least_fid = 16,
    least_version = 24,
    least_told = 16,
    least_str = 2,
};

#define LEAST_FIELD(kind, name)  +least_##kind
#define ITEM_LEAST(item, FIELDS) enum { least_item_##item = 0 FIELDS(LEAST_FIELD) };
MSG_ITEMS(ITEM_LEAST)

#define PUT_ITEM_FIELD(kind, name) put_##kind(o, &v->name);
#define GET_ITEM_FIELD(kind, name) get_##kind(in, &v->name);

#define ITEM_CODE(item, FIELDS)                                                                    \
    static void put_item_##item(struct out *o, const struct item_##item *v)                        \
    {                                                                                              \
        FIELDS(PUT_ITEM_FIELD)                                                                     \
    }                                                                                              \
    static void get_item_##item(struct in *in, struct item_##item *v)                              \
    {                                                                                              \
        FIELDS(GET_ITEM_FIELD)                                                                     \
    }                                                                                              \
    static void put_list_##item(struct out *o, uint32_t n, const struct item_##item *v)            \
    {                                                                                              \
        put_u32(o, &n);                                                                            \
        if (n && !v)                                                                               \
            o->err = -EINVAL;                                                                      \
        for (uint32_t i = 0; i < n && !o->err; i++)                                                \
            put_item_##item(o, &v[i]);                                                             \
    }                                                                                              \
    static void get_list_##item(struct in *in, uint32_t *n, struct item_##item **v)                \
    {                                                                                              \
        struct item_##item counted_only;                                                           \
        get_u32(in, n);                                                                            \
        if (*n > in->left / least_item_##item)                                                     \
            in->bad = true;                                                                        \
        if (in->bad)                                                                               \
            *n = 0;                                                                                \
        *v = *n ? arena_take(in, *n * sizeof(**v), _Alignof(struct item_##item)) : NULL;           \
        for (uint32_t i = 0; i < *n && !in->bad; i++)                                              \
            get_item_##item(in, *v ? &(*v)[i] : &counted_only);                                    \
    }
MSG_ITEMS(ITEM_CODE)

/* ---- bodies ---- */

#define PUT_FIELD(kind, name) put_##kind(o, &b->name);
#define PUT_LIST(item, name)  put_list_##item(o, b->name.n, b->name.v);
#define GET_FIELD(kind, name) get_##kind(in, &b->name);
#define GET_LIST(item, name)  get_list_##item(in, &b->name.n, &b->name.v);

#define BODY_CODE(NAME, name, BODY)                                                                \
    static void put_body_##name(struct out *o, const struct body_##name *b)                        \
    {                                                                                              \
        BODY(PUT_FIELD, PUT_LIST)                                                                  \
    }                                                                                              \
    static void get_body_##name(struct in *in, struct body_##name *b)                              \
    {                                                                                              \
        BODY(GET_FIELD, GET_LIST)                                                                  \
    }
MESSAGES(BODY_CODE)

static void put_body(struct out *o, const struct msg *m)
{
    switch (m->head.type) {
#define PUT_CASE(NAME, name, BODY)                                                                 \
    case MSG_##NAME:                                                                               \
        put_body_##name(o, &m->name);                                                              \
        break;
        MESSAGES(PUT_CASE)
    default:
        o->err = -EINVAL;
    }
}

static void get_body(struct in *in, struct msg *m)
{
    switch (m->head.type) {
#define GET_CASE(NAME, name, BODY)                                                                 \
    case MSG_##NAME:                                                                               \
        get_body_##name(in, &m->name);                                                             \
        break;
        MESSAGES(GET_CASE)
    }
}

/* ---- head ---- */

static void put_head(struct out *o, const struct msg_head *h)
{
    put_le(o, h->magic, 4);
    put_le(o, h->version, 2);
    put_le(o, h->type, 2);
    put_le(o, h->flags, 4);
    put_le(o, h->body_len, 4);
    put_le(o, h->view, 8);
    put_le(o, h->sender, 8);
    put_le(o, h->incarnation, 8);
    put_le(o, h->token, 8);
    put_le(o, h->request, 8);
    put_le(o, h->deadline_ms, 4);
    put_le(o, (uint32_t)h->status, 4);
    put_le(o, h->data_len, 8);
}

static void get_head(struct in *in, struct msg_head *h)
{
    h->magic = (uint32_t)get_le(in, 4);
    h->version = (uint16_t)get_le(in, 2);
    h->type = (uint16_t)get_le(in, 2);
    h->flags = (uint32_t)get_le(in, 4);
    h->body_len = (uint32_t)get_le(in, 4);
    h->view = get_le(in, 8);
    h->sender = get_le(in, 8);
    h->incarnation = get_le(in, 8);
    h->token = get_le(in, 8);
    h->request = get_le(in, 8);
    h->deadline_ms = (uint32_t)get_le(in, 4);
    h->status = (int32_t)(uint32_t)get_le(in, 4);
    h->data_len = get_le(in, 8);
}

int msg_decode_head(const void *buf, size_t len, struct msg_head *head)
{
    struct in in = {.p = buf, .left = len};
    struct msg_head h;
    get_head(&in, &h);
    if (in.bad || h.magic != MSG_MAGIC || h.version >> 8 != MSG_MAJOR)
        return -EPROTO;
    if (h.body_len > MSG_BODY_MAX || h.data_len > MSG_DATA_MAX)
        return -EPROTO;
    *head = h;
    return 0;
}

/* ---- whole messages ---- */

const char *msg_name(unsigned type)
{
    static const char *const names[] = {
#define NAME_ENTRY(NAME, name, BODY) [MSG_##NAME] = #NAME,
        MESSAGES(NAME_ENTRY)};
    return type < ARRAY_LEN(names) && names[type] ? names[type] : "?";
}

struct msg *msg_new(enum msg_type type)
{
    struct msg *m = xcalloc(1, sizeof(*m));
    m->head.magic = MSG_MAGIC;
    m->head.version = MSG_VERSION;
    m->head.type = (uint16_t)type;
    return m;
}

void msg_free(struct msg *m)
{
    if (!m)
        return;
    if (m->free_data && m->data)
        m->free_data(m->free_arg, m->data);
    free(m->arena);
    free(m);
}

int msg_encode(const struct msg *m, void **buf, size_t *len)
{
    struct out size = {0};
    put_body(&size, m);
    if (size.err)
        return size.err;
    if (size.len > MSG_BODY_MAX || m->head.data_len > MSG_DATA_MAX)
        return -EMSGSIZE;

    struct msg_head head = m->head;
    head.magic = MSG_MAGIC;
    head.version = MSG_VERSION;
    head.body_len = (uint32_t)size.len;
    struct out o = {.p = xmalloc(MSG_HEAD_SIZE + size.len)};
    put_head(&o, &head);
    put_body(&o, m);
    *buf = o.p;
    *len = o.len;
    return 0;
}

int msg_decode(const void *buf, size_t len, struct msg **message, struct msg_head *out_head)
{
    struct msg_head head;
    int err = msg_decode_head(buf, len, &head);
    if (err)
        return err;
    if (out_head)
        *out_head = head;
    if (head.type == MSG_NONE || head.type >= MSG_TYPES)
        return -ENOTSUP;
    if (head.body_len > len - MSG_HEAD_SIZE)
        return -EPROTO;

    const uint8_t *body = (const uint8_t *)buf + MSG_HEAD_SIZE;
    struct msg *m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    m->head = head;
    struct in in = {.p = body, .left = head.body_len};
    get_body(&in, m);
    if (!in.bad && in.used) {
        m->arena = malloc(in.used);
        if (m->arena) {
            in = (struct in){.p = body, .left = head.body_len, .arena = m->arena, .size = in.used};
            get_body(&in, m);
        } else {
            err = -ENOMEM;
        }
    }
    if (in.bad)
        err = -EPROTO;
    if (err) {
        msg_free(m);
        return err;
    }
    *message = m;
    return 0;
}
