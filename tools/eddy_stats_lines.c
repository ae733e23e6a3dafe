/* eddy_stats_lines.c - eddy stats as lines for a pipe, and as JSON. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/eddy_stats.h"
#include "tools/eddy_talk.h"
#include "transport/base.h"

#define HEADER_EVERY 20 /* intervals */
#define MB           1e6

static size_t name_width(const struct stats_interval *i)
{
    size_t width = strlen("node");
    for (size_t k = 0; k < i->n; k++)
        width = MAX(width, strlen(i->nodes[k].node));
    return width;
}

static void print_row(const struct stats_rates *r, const char *clock, bool session, size_t width)
{
    char hits[16] = "-", dirty[24];
    if (stats_hits(r) >= 0)
        snprintf(hits, sizeof(hits), "%.0f%%", 100 * stats_hits(r));
    printf("%s", clock);
    if (session)
        printf("  %-*s", (int)width, r->node);
    if (r->error) {
        printf("  %s\n", r->error);
        return;
    }
    printf(" %9.1f %9.1f %9.1f %9.1f %5s %9.1f %10s %9.1f %9.0f %9.0f %6llu\n", r->read / MB, r->read_local / MB,
           r->read_peer / MB, r->read_pfs / MB, hits, r->written / MB, size_format(r->dirty, dirty, sizeof(dirty)),
           r->flushed / MB, r->pfs_ops, r->messages, (unsigned long long)r->open_files);
}

static void print_header(bool session, size_t width)
{
    printf("%-8s", "time");
    if (session)
        printf("  %-*s", (int)width, "node");
    printf(" %9s %9s %9s %9s %5s %9s %10s %9s %9s %9s %6s\n", "read MB/s", "own cache", "nodes", "PFS", "hits", "write", "not on PFS",
           "flush", "PFS ops/s", "msgs/s", "open");
}

void stats_lines(const struct stats_interval *i, bool session, unsigned number)
{
    size_t width = name_width(i);
    char clock[16];
    time_t now = time(NULL);
    struct tm tm;
    strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
    if (number % HEADER_EVERY == 0)
        print_header(session, width);
    for (size_t k = 0; k < i->n; k++)
        print_row(&i->nodes[k], clock, session, width);
    if (session && i->n > 1)
        print_row(&i->all, clock, true, width);
}

static json_t *row_json(const struct stats_rates *r)
{
    if (r->error)
        return json_pack("{s:s,s:s}", "node", r->node, "error", r->error);
    json_t *o = json_pack("{s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "node", r->node, "read_bytes", r->read,
                          "read_local_bytes", r->read_local, "read_peer_bytes", r->read_peer, "read_pfs_bytes", r->read_pfs,
                          "written_bytes", r->written, "flushed_bytes", r->flushed, "pfs_name_ops", r->pfs_ops,
                          "pfs_read_bytes", r->pfs_read, "pfs_write_bytes", r->pfs_written, "messages", r->messages);
    json_t *now = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "cache_size_bytes", (json_int_t)r->cache_size, "cache_used_bytes",
                            (json_int_t)r->cache_used, "dirty_bytes", (json_int_t)r->dirty, "pending_files",
                            (json_int_t)r->files_dirty, "failed_files", (json_int_t)r->files_failed, "open_files",
                            (json_int_t)r->open_files);
    json_object_set_new(o, "now", now);
    json_object_set_new(o, "hit_ratio", stats_hits(r) < 0 ? json_null() : json_real(stats_hits(r)));
    return o;
}

json_t *stats_json(const struct stats_interval *i)
{
    json_t *nodes = json_array(), *operations = json_object();
    for (size_t k = 0; k < i->n; k++)
        json_array_append_new(nodes, row_json(&i->nodes[k]));
    for (size_t k = 0; k < i->n_operations; k++) {
        const struct stats_operation *p = &i->operations[k];
        json_object_set_new(operations, p->name,
                            json_pack("{s:f,s:f,s:f,s:f}", "calls", p->calls, "waited", p->part, "median_ms", p->median_ms,
                                      "p99_ms", p->p99_ms));
    }
    return json_pack("{s:I,s:f,s:s,s:s,s:o,s:o,s:o}", "time", (json_int_t)time(NULL), "seconds", i->seconds, "mountpoint",
                     json_text(i->answer, "mountpoint"), "session", json_text(i->answer, "session"), "nodes", nodes, "all",
                     row_json(&i->all), "operations", operations);
}
