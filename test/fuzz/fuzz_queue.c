/* fuzz_queue.c - the body of a message that adds hints, to a queue that has three paths and two targets: it is refused, or all
 * that was read of it lies in it and keeps the rules. */
#include <stdlib.h>
#include <string.h>

#include "placement/foresight/queue_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct parsed_add a;
    if (queue_parse_add(data, size, 3, 2, &a))
        return 0;
    const uint8_t *at = a.paths;
    for (uint32_t i = 0; i < a.n.paths; i++) {
        size_t len;
        const char *path = queue_next_path(&at, &len);
        must(len && len <= QUEUE_PATH_MAX && path[0] != '/' && !memchr(path, '\0', len));
    }
    must(at == a.targets);
    for (uint32_t i = 0; i < a.n.targets; i++) {
        struct queue_target t = queue_target_at(&a, i);
        must(t.path < a.n.paths + 3 && t.off <= INT64_MAX && t.len <= (uint64_t)INT64_MAX - t.off);
    }
    for (uint32_t i = 0; i < a.n.entries; i++)
        must(queue_entry_at(&a, i) < a.n.targets + 2);
    must(a.entries + 4 * (size_t)a.n.entries == data + size);
    return 0;
}
