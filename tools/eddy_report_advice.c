/* eddy_report_advice.c - what a report gives reason to change.  Each rule says what was seen, in figures, and what to do. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/eddy_report.h"
#include "tools/eddy_talk.h"
#include "transport/base.h"

struct advice {
    const struct report_set *s;
    void (*fn)(void *arg, const char *what, const char *todo);
    void *arg;
};

static void give(const struct advice *a, const char *todo, const char *what, ...) __attribute__((format(printf, 3, 4)));
static void give(const struct advice *a, const char *todo, const char *what, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, what);
    vsnprintf(text, sizeof(text), what, ap);
    va_end(ap);
    a->fn(a->arg, text, todo);
}

static uint64_t list_sum(const struct report_set *s, const char *name)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += json_array_size(json_object_get(s->nodes[i].json, name));
    return n;
}

static void on_data(const struct advice *a)
{
    uint64_t left = 0, conflicts = list_sum(a->s, "conflicts");
    for (size_t i = 0; i < a->s->n; i++)
        left += json_u64(a->s->nodes[i].json, "not_on_pfs_count");
    if (left)
        give(a, "Start eddyfs again on these nodes with the same --cache-dir, or run \"eddy recover CACHE_DIR\" there.",
             "%llu files are not on the PFS as they were written.", (unsigned long long)left);
    if (conflicts)
        give(a, "Compare each with the file beside it, and keep what is right. Somebody changed them on the PFS while the session ran.",
             "%llu files are in conflict.", (unsigned long long)conflicts);
}

static void on_room(const struct advice *a)
{
    char text[24];
    uint64_t evicted = report_sum(a->s, "evicted_bytes"), pfs = report_sum(a->s, "pfs_read_bytes"),
             size = report_sum(a->s, "cache_size_bytes"), slowed = report_sum(a->s, "slowed_ms");
    if (evicted > size / 4 && pfs > size)
        give(a, "Give the caches more room (--cache-size), use more nodes, or tell what will be read next (\"eddy hint\", docs/foreknowledge.md).",
             "The caches were too small for what was read: %s left them to make room.", size_format(evicted, text, sizeof(text)));
    if (slowed > 10000)
        give(a, "Give the caches more room, let it flush more at once (--flush-writers), or write to the PFS between the phases (\"eddy flush\").",
             "Writers waited for %.0f s in all because the caches were full of data that was not on the PFS yet.",
             (double)slowed / 1000);
}

static void on_reads(const struct advice *a)
{
    uint64_t own = report_sum(a->s, "read_local_bytes"), peer = report_sum(a->s, "read_peer_bytes"),
             pfs = report_sum(a->s, "read_pfs_bytes"), all = own + peer + pfs;
    if (all > (1u << 30) && pfs > all / 2)
        give(a, "If files are read once only, that is so. Else stage them before the job (\"eddy stage --spread\"), or hint them.",
             "%.0f %% of the bytes that applications read came from the PFS.", 100.0 * (double)pfs / (double)all);
}

static void on_flush(const struct advice *a)
{
    uint64_t all = report_sum(a->s, "flushed_bytes"), lull = report_sum(a->s, "flushed_lull_bytes");
    bool idle = a->s->n && !strcmp(json_text(a->s->nodes[0].json, "flush_policy"), "idle");
    if (idle && all > (1u << 30) && lull < all / 2)
        give(a, "If the application computes between its writes, --flush-wait auto learns when. Else --flush immediate spreads the writing over all of the time.",
             "Only %.0f %% of what was flushed went to the PFS in lulls.", 100.0 * (double)lull / (double)all);
}

static void on_nodes(const struct advice *a)
{
    uint64_t suspicions = report_sum(a->s, "suspicions"), bad = report_sum(a->s, "bad_checksums");
    if (suspicions)
        give(a, "Look whether nodes were so busy that nothing ran there for seconds, or whether the network fails. Longer times: --suspect-after, --dead-after.",
             "Nodes did not answer in time and were served around (%llu times).", (unsigned long long)suspicions);
    if (bad)
        give(a, "Look at the disks and the memory of the nodes whose logs name it.",
             "%llu chunks had a wrong checksum. They were refused, and read elsewhere.", (unsigned long long)bad);
    for (size_t i = 0; i < a->s->n; i++) {
        const json_t *j = a->s->nodes[i].json;
        if (json_is_true(json_object_get(j, "passthrough")))
            continue;
        give(a, "With passthrough the kernel reads and writes cached files at the speed of the disk: see \"Passthrough\" in docs/tuning.md.",
             "Node %s ran without passthrough: %s.", a->s->nodes[i].node, json_text(j, "passthrough_why"));
        break;
    }
}

void report_advise(const struct report_set *s, void (*fn)(void *arg, const char *what, const char *todo), void *arg)
{
    struct advice a = {s, fn, arg};
    on_data(&a);
    on_room(&a);
    on_reads(&a);
    on_flush(&a);
    on_nodes(&a);
}
