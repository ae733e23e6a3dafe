/* queue_parse.c - checks what a client of the queues' socket sends, before anything of it is used. */
#include "placement/foresight/queue_parse.h"

#include <errno.h>
#include <string.h>

bool queue_path_is_plain(const char *path, size_t len)
{
    size_t part = 0;
    if (!len || len > QUEUE_PATH_MAX || memchr(path, '\0', len))
        return false;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && path[i] != '/')
            continue;
        size_t n = i - part;
        if (!n || (n == 1 && path[part] == '.') ||
            (n == 2 && path[part] == '.' && path[part + 1] == '.'))
            return false;
        part = i + 1;
    }
    return true;
}

const char *queue_next_path(const uint8_t **at, size_t *len)
{
    uint16_t n;
    memcpy(&n, *at, sizeof(n));
    const char *path = (const char *)*at + sizeof(n);
    *at += sizeof(n) + n;
    *len = n;
    return path;
}

struct queue_target queue_target_at(const struct parsed_add *a, uint32_t i)
{
    struct queue_target t;
    memcpy(&t, a->targets + (size_t)i * sizeof(t), sizeof(t));
    return t;
}

uint32_t queue_entry_at(const struct parsed_add *a, uint32_t i)
{
    uint32_t target;
    memcpy(&target, a->entries + (size_t)i * sizeof(target), sizeof(target));
    return target;
}

static const uint8_t *pass_paths(const uint8_t *at, const uint8_t *end, uint32_t n)
{
    while (n--) {
        uint16_t len;
        if ((size_t)(end - at) < sizeof(len))
            return NULL;
        memcpy(&len, at, sizeof(len));
        if ((size_t)(end - at) - sizeof(len) < len ||
            !queue_path_is_plain((const char *)at + sizeof(len), len))
            return NULL;
        at += sizeof(len) + len;
    }
    return at;
}

static bool targets_are_right(const struct parsed_add *a, uint32_t paths)
{
    for (uint32_t i = 0; i < a->n.targets; i++) {
        struct queue_target t = queue_target_at(a, i);
        if (t.path >= paths || t.off > INT64_MAX || t.len > (uint64_t)INT64_MAX - t.off)
            return false;
    }
    return true;
}

static bool entries_are_right(const struct parsed_add *a, uint32_t targets)
{
    for (uint32_t i = 0; i < a->n.entries; i++)
        if (queue_entry_at(a, i) >= targets)
            return false;
    return true;
}

int queue_parse_add(const void *body, size_t len, uint32_t paths, uint32_t targets,
                    struct parsed_add *out)
{
    const uint8_t *at = body, *end = at + len;
    if (len < sizeof(out->n))
        return -EPROTO;
    memcpy(&out->n, at, sizeof(out->n));
    out->paths = at + sizeof(out->n);
    out->targets = pass_paths(out->paths, end, out->n.paths);
    if (!out->targets || !out->n.entries)
        return -EPROTO;
    size_t left = (size_t)(end - out->targets), size = sizeof(struct queue_target);
    if (left / size < out->n.targets)
        return -EPROTO;
    out->entries = out->targets + out->n.targets * size;
    if (left - out->n.targets * size != (size_t)out->n.entries * sizeof(uint32_t))
        return -EPROTO;
    bool right = out->n.paths <= UINT32_MAX - paths && out->n.targets <= UINT32_MAX - targets &&
                 targets_are_right(out, paths + out->n.paths) &&
                 entries_are_right(out, targets + out->n.targets);
    return right ? 0 : -EPROTO;
}
