/* eddy_figures.c - see eddy_figures.h. */
#include "tools/eddy_figures.h"

#include <stdio.h>

#include "tools/eddy_talk.h"
#include "transport/base.h"

void figures_add_latency(struct latency_copy *to, const json_t *o)
{
    size_t i;
    json_t *pair;
    to->count += json_u64(o, "count");
    to->sum_ns += json_u64(o, "sum_ns");
    json_array_foreach(json_object_get(o, "buckets"), i, pair)
    {
        json_int_t bucket = json_integer_value(json_array_get(pair, 0)), n = json_integer_value(json_array_get(pair, 1));
        if (bucket >= 0 && bucket < LATENCY_BUCKETS && n > 0)
            to->buckets[bucket] += (uint64_t)n;
    }
}

const char *figures_amount(double bytes, char buf[AMOUNT_SIZE])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    unsigned u = 0;
    for (; bytes >= 999.5 && u + 1 < ARRAY_LEN(units); u++)
        bytes /= 1000;
    snprintf(buf, AMOUNT_SIZE, bytes < 10 && u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return buf;
}
