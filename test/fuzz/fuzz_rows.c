/* fuzz_rows.c - any sequence of askers and news at an owner, right or wrong: rows and places stay within their bounds, nobody is
 * sent to itself, and what PLACES and FETCH can say of chunks changes no other chunk's row. */
#include "placement/chunks/rows.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS  8
#define CALL 6 /* bytes of one call */

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void call(struct rows *r, const uint8_t *b, uint64_t *now_ms)
{
    struct chunk_key key = {.fid = {1, b[1] & 3}, .index = b[1] >> 2 & 7, .version = {.size = 1u << 30, .mtime_ns = b[1] >> 7}};
    struct chunk_key other = {.fid = {9, 9}};
    uint64_t node = 1 + b[2], not_at = b[3];
    unsigned before = rows_places(r, &other);
    *now_ms += b[4] * (b[5] ? 1u : 100u);
    switch (b[0] & 7) {
    case 0:
        rows_failed(r, &key, node, not_at, *now_ms);
        break;
    case 1:
        rows_has(r, &key, node);
        break;
    case 2:
        rows_gone(r, key.fid, key.index, node);
        break;
    case 3:
        rows_set_caretaker(r, &key, not_at);
        break;
    case 4:
        rows_owner_gone(r, key.fid, key.index, *now_ms);
        break;
    default:
        must(rows_ask(r, &key, node, *now_ms) != node);
    }
    must(rows_count(r) <= ROWS);
    must(rows_places(r, &key) <= ROW_PLACES);
    must(rows_places(r, &other) == before || !rows_places(r, &other)); /* it may have made room */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t now_ms = 1;
    struct rows *r = rows_new(ROWS, size ? data[0] : 0);
    for (size_t at = 1; at + CALL <= size; at += CALL)
        call(r, data + at, &now_ms);
    rows_free(r);
    return 0;
}
