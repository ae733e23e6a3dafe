/* metrics.c - see metrics.h. */
#include "fs/daemon/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "fs/daemon/figures.h"
#include "fs/operation.h"
#include "fs/settings.h"

/* Prometheus has seconds.  The labels' values are plain: names of nodes and sessions are (name_is_plain). */
static void print_figure(FILE *out, const struct figure *f)
{
    char name[128];
    size_t len = strlen(f->name);
    bool ms = len > 3 && !strcmp(f->name + len - 3, "_ms");
    snprintf(name, sizeof(name), "eddyfs_%.*s%s%s", (int)(ms ? len - 3 : len), f->name, ms ? "_seconds" : "", f->counter ? "_total" : "");
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n%s{node=\"%s\",session=\"%s\"} ", name, f->help, name,
            f->counter ? "counter" : "gauge", name, settings.node, settings.session);
    if (ms)
        fprintf(out, "%.3f\n", (double)f->value / 1000);
    else
        fprintf(out, "%" PRIu64 "\n", f->value);
}

static void print_figures(FILE *out)
{
    struct figure all[FIGURES];
    figures_take(all);
    for (size_t i = 0; i < FIGURES; i++)
        print_figure(out, &all[i]);
}

/* A line for each power of two: the histogram's steps between them would be four times as many lines. */
static int print_operation(void *arg, const char *name, const struct latency_copy *l)
{
    FILE *out = arg;
    uint64_t seen = 0;
    for (unsigned i = 0; i + 1 < LATENCY_BUCKETS; i++) {
        seen += l->buckets[i];
        if (i % LATENCY_STEPS == LATENCY_STEPS - 1)
            fprintf(out, "eddyfs_operation_seconds_bucket{node=\"%s\",session=\"%s\",operation=\"%s\",le=\"%.9g\"} %" PRIu64 "\n",
                    settings.node, settings.session, name, (double)latency_end_ns(i) / 1e9, seen);
    }
    fprintf(out, "eddyfs_operation_seconds_bucket{node=\"%s\",session=\"%s\",operation=\"%s\",le=\"+Inf\"} %" PRIu64 "\n",
            settings.node, settings.session, name, l->count);
    fprintf(out, "eddyfs_operation_seconds_sum{node=\"%s\",session=\"%s\",operation=\"%s\"} %.9f\n", settings.node, settings.session,
            name, (double)l->sum_ns / 1e9);
    fprintf(out, "eddyfs_operation_seconds_count{node=\"%s\",session=\"%s\",operation=\"%s\"} %" PRIu64 "\n", settings.node,
            settings.session, name, l->count);
    return 0;
}

char *metrics_text(void)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        die("out of memory");
    fprintf(out, "# HELP eddyfs_info Which daemon this is.\n# TYPE eddyfs_info gauge\n");
    fprintf(out, "eddyfs_info{node=\"%s\",session=\"%s\",version=\"%s\"} 1\n", settings.node, settings.session, EDDY_VERSION);
    print_figures(out);
    fprintf(out, "# HELP eddyfs_operation_seconds How long the kernel waited for the answer to a request.\n"
                 "# TYPE eddyfs_operation_seconds histogram\n");
    operation_each(print_operation, out);
    fclose(out);
    return text;
}
