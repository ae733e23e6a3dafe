/* eddy_simulate.h - eddy ring --simulate: how evenly nodes are loaded, before and after some fail.
 *
 *   eddy_simulate.c       the trials
 *   eddy_simulate_show.c  what they gave: a table, JSON, a plot
 *   eddy_scheme.c         the schemes that are compared
 */
#ifndef EDDY_TOOLS_EDDY_SIMULATE_H
#define EDDY_TOOLS_EDDY_SIMULATE_H

#include <stdbool.h>

#include "tools/eddy_scheme.h"

#define CHOICES_MAX 16

struct simulation {
    unsigned nodes, fail, files, trials; /* fail < nodes */
    unsigned vnodes[CHOICES_MAX], nvnodes;
    unsigned weights[CHOICES_MAX], nweights;   /* of node1, node2 ..., from the first one again */
    const struct scheme *schemes[CHOICES_MAX]; /* none: all but slow ones */
    unsigned nschemes;
    bool json;
    const char *plot; /* an SVG file, NULL: none */
};

/* Complains; an exit code. */
int simulate(const struct simulation *s);

/* The results of each trial: the key in JSON, the line of the table, and which value is the worst of all
 * trials: the highest, the lowest, or none. */
enum worst { HIGHEST, LOWEST, NONE };
#define FIGURES(X)                                                                                 \
    X(share_max, "share of hashes before, max/mean", HIGHEST)                                      \
    X(share_min, "  min/mean", LOWEST)                                                             \
    X(share_max_after, "share of hashes after, max/mean", HIGHEST)                                 \
    X(share_min_after, "  min/mean", LOWEST)                                                       \
    X(load_max, "files per node before, max/mean", HIGHEST)                                        \
    X(load_min, "  min/mean", LOWEST)                                                              \
    X(load_deviation, "  deviation/mean", HIGHEST)                                                 \
    X(load_max_after, "files per node after, max/mean", HIGHEST)                                   \
    X(load_min_after, "  min/mean", LOWEST)                                                        \
    X(load_deviation_after, "  deviation/mean", HIGHEST)                                           \
    X(lost, "files of failed nodes", NONE)                                                         \
    X(receivers, "  their receivers", LOWEST)                                                      \
    X(receivers_to_chance, "  receivers/chance", LOWEST)                                           \
    X(files_per_receiver, "  files per receiver", HIGHEST)                                         \
    X(moved_to_least, "moved files/least", HIGHEST)                                                \
    X(make_ms, "making the table, ms", HIGHEST)

enum {
#define X(key, text, worst) FIGURE_##key,
    FIGURES(X)
#undef X
        FIGURES_N
};
struct figure {
    const char *key, *text;
    enum worst worst;
};
extern const struct figure figures[FIGURES_N];

/* A scheme with its number of points, and what became of it. */
struct rival {
    const struct scheme *scheme;
    unsigned points; /* 0: it has none */
    double sum[FIGURES_N], worst[FIGURES_N];
    double look_up_ns, look_up_to_base;
    size_t bytes;
    double *before, *after; /* loads in the first trial, ascending, for the plot */
};

/* ---- eddy_simulate_show.c ---- */
void show_table(const struct simulation *s, const struct rival *rivals, unsigned n);
void show_json(const struct simulation *s, const struct rival *rivals, unsigned n);
struct plot;
/* To be called before the long work.  -ENOENT: there is no gnuplot. */
int plot_begin(struct plot **out);
/* Writes s->plot; complains.  An exit code. */
int plot_end(struct plot *p, const struct simulation *s, const struct rival *rivals, unsigned n);

#endif
