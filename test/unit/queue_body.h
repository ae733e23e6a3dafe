/* queue_body.h - bodies of QUEUE_ADD, as a client makes them. */
#ifndef EDDY_TEST_QUEUE_BODY_H
#define EDDY_TEST_QUEUE_BODY_H

#include <string.h>

#include "placement/foresight/queue_wire.h"

struct body {
    uint8_t bytes[65536];
    size_t len;
};

static inline void body_put(struct body *b, const void *data, size_t n)
{
    memcpy(b->bytes + b->len, data, n);
    b->len += n;
}

static inline void body_begin(struct body *b, uint32_t paths, uint32_t targets, uint32_t entries)
{
    struct queue_add n = {paths, targets, entries};
    b->len = 0;
    body_put(b, &n, sizeof(n));
}

static inline void body_path(struct body *b, const char *path)
{
    uint16_t n = (uint16_t)strlen(path);
    body_put(b, &n, sizeof(n));
    body_put(b, path, n);
}

static inline void body_target(struct body *b, uint32_t path, uint64_t off, uint64_t len)
{
    struct queue_target t = {path, off, len};
    body_put(b, &t, sizeof(t));
}

static inline void body_entry(struct body *b, uint32_t target)
{
    body_put(b, &target, sizeof(target));
}

#endif
