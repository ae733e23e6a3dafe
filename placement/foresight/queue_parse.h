/* queue_parse.h - the body of QUEUE_ADD, checked (queue_parse.c; queue_wire.h). */
#ifndef EDDY_PLACEMENT_FORESIGHT_QUEUE_PARSE_H
#define EDDY_PLACEMENT_FORESIGHT_QUEUE_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "placement/foresight/queue_wire.h"

/* Points into the body. */
struct parsed_add {
    struct queue_add n;
    const uint8_t *paths;   /* n.paths times a u16 and so many bytes */
    const uint8_t *targets; /* n.targets times a struct queue_target; unaligned */
    const uint8_t *entries; /* n.entries times a u32; unaligned */
};
/* paths, targets: how many the queue has already.  0; -EPROTO: it breaks a rule of docs/wire.md.  Any thread. */
int queue_parse_add(const void *body, size_t len, uint32_t paths, uint32_t targets,
                    struct parsed_add *out);
/* Not empty, relative, no NUL, no part that is empty, "." or "..", and at most QUEUE_PATH_MAX bytes. */
bool queue_path_is_plain(const char *path, size_t len);
/* The next path: at *at, which moves on; not NUL-terminated. */
const char *queue_next_path(const uint8_t **at, size_t *len);
struct queue_target queue_target_at(const struct parsed_add *a, uint32_t i);
uint32_t queue_entry_at(const struct parsed_add *a, uint32_t i);

#endif
