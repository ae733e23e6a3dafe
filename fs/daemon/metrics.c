/* metrics.c - see metrics.h. */
#include "fs/daemon/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "fs/daemon/figures.h"
#include "fs/operation.h"
#include "fs/settings.h"

/* The labels' values are plain: names of nodes and sessions are (name_is_plain). */
static void print_figures(FILE *out)
{
    struct figure all[FIGURES];
    figures_take(all);
    for (size_t i = 0; i < FIGURES; i++) {
        const char *end = all[i].counter ? "_total" : "";
        fprintf(out, "# HELP eddyfs_%s%s %s\n# TYPE eddyfs_%s%s %s\neddyfs_%s%s{node=\"%s\",session=\"%s\"} %" PRIu64 "\n",
                all[i].name, end, all[i].help, all[i].name, end, all[i].counter ? "counter" : "gauge", all[i].name, end,
                settings.node, settings.session, all[i].value);
    }
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
