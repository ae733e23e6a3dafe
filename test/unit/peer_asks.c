/* peer_asks.c - requests with bytes that can be checked, whose end can be waited for. */
#include "peer_nodes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/peer_in.h"

static uint64_t word(uint64_t seed, size_t i)
{
    return (seed * 0x9e3779b97f4a7c15ull) ^ (i * 0xc2b2ae3d27d4eb4full);
}

void fill(void *buf, size_t n, uint64_t seed)
{
    uint8_t *p = buf;
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(word(seed, i / 8) >> (i % 8 * 8));
}

bool is_filled(const void *buf, size_t n, uint64_t seed)
{
    const uint8_t *p = buf;
    for (size_t i = 0; i < n; i++)
        if (p[i] != (uint8_t)(word(seed, i / 8) >> (i % 8 * 8)))
            return false;
    return true;
}

struct msg *make_read(enum what what, uint64_t seed, uint32_t length)
{
    struct msg *m = msg_new(MSG_READ);
    m->read.fid = (struct fid){.hi = what, .lo = 7};
    m->read.offset = seed;
    m->read.length = length;
    return m;
}

struct msg *make_write(uint64_t seed, uint32_t length)
{
    struct msg *m = msg_new(MSG_WRITE);
    m->write.offset = seed;
    m->write.length = length;
    m->data = peer_buffer_always(length);
    m->head.data_len = length;
    m->free_data = peer_buffer_free_data;
    fill(m->data, length, seed);
    return m;
}

void gate_init(struct gate *g)
{
    memset(g, 0, sizeof(*g));
    lock_init(&g->lock, RANK_LEAF);
    lock_cond_init(&g->cond);
}

void gate_wait(struct gate *g, int ended)
{
    lock_take(&g->lock);
    while (g->ended < ended)
        ck_assert_msg(!lock_wait(&g->lock, &g->cond, LONG_MS), "%d of %d ended", g->ended, ended);
    lock_drop(&g->lock);
}

void answered(void *arg, int err, struct msg *reply, bool *keep)
{
    struct ask *a = arg;
    (void)keep;
    a->err = err;
    if (!err && reply->head.type == MSG_RANGE)
        a->bytes_right = reply->head.data_len == a->len &&
                         (!a->len || is_filled(reply->data, a->len, a->seed)) &&
                         (!a->buf || !a->len || reply->data == a->buf);
    if (!err && reply->head.type == MSG_WRITTEN)
        a->bytes_right = reply->written.size == a->len;
    if (!err && reply->head.type == MSG_ADOPTED_OK)
        a->size = reply->adopted_ok.view;
    lock_take(&a->gate->lock);
    a->calls++;
    a->gate->ended++;
    a->gate->ok += !err && a->bytes_right;
    a->gate->last_err = err;
    pthread_cond_broadcast(&a->gate->cond);
    lock_drop(&a->gate->lock);
}

void ask_read(struct ask *a, struct gate *g, uint64_t to, enum what what, uint64_t seed, size_t len,
              bool own, uint32_t silence)
{
    *a = (struct ask){
        .gate = g, .len = len, .seed = seed, .buf = own ? malloc(len ? len : 1) : NULL};
    peer_request(to, make_read(what, seed, (uint32_t)len), silence, a->buf, a->buf ? len : 0,
                 answered, a);
}

void ask_write(struct ask *a, struct gate *g, uint64_t to, uint64_t seed, size_t len,
               uint32_t silence)
{
    *a = (struct ask){.gate = g, .len = len, .seed = seed};
    peer_request(to, make_write(seed, (uint32_t)len), silence, NULL, 0, answered, a);
}

void ask_free(struct ask *a)
{
    ck_assert_int_eq(a->calls, 1);
    free(a->buf);
}

void must_read(uint64_t to, size_t len, bool own)
{
    struct gate g;
    struct ask a;
    gate_init(&g);
    ask_read(&a, &g, to, WHAT_BYTES, len + 3, len, own, LONG_MS);
    gate_wait(&g, 1);
    ck_assert_int_eq(a.err, 0);
    ck_assert(a.bytes_right);
    ask_free(&a);
}

void must_write(uint64_t to, size_t len)
{
    struct gate g;
    struct ask a;
    gate_init(&g);
    ask_write(&a, &g, to, len + 5, len, LONG_MS);
    gate_wait(&g, 1);
    ck_assert_int_eq(a.err, 0);
    ck_assert(a.bytes_right);
    ask_free(&a);
}

int read_err(uint64_t to, enum what what, uint64_t seed, size_t len, uint32_t silence)
{
    struct gate g;
    struct ask a;
    gate_init(&g);
    ask_read(&a, &g, to, what, seed, len, true, silence);
    gate_wait(&g, 1);
    int err = a.err;
    ck_assert(err || a.bytes_right);
    ask_free(&a);
    return err;
}

void wait_for(uint64_t to)
{
    int err = -1;
    for (uint64_t end = boot_ms() + LONG_MS; err && boot_ms() < end;) {
        err = read_err(to, WHAT_BYTES, 1, 1, 5000);
        if (err)
            usleep(20000);
    }
    ck_assert_int_eq(err, 0);
}
