/* simulation.h - how evenly nodes are loaded, before and after some fail.
 *
 *   ../ring_sim.c  the options
 *   trials.c       the trials
 *   show.c         what they gave: a table, JSON, a plot
 *   scheme.c       the schemes that are compared
 */
#ifndef EDDY_TEST_BENCH_RING_SIM_SIMULATION_H
#define EDDY_TEST_BENCH_RING_SIM_SIMULATION_H

#include <stdbool.h>

#include "test/bench/ring_sim/scheme.h"

#define CHOICES_MAX 16

enum exit_code { DONE = 0, FAILED = 1, WRONG_USAGE = 2 };

struct simulation {
    unsigned nodes, fail, files, trials; /* fail < nodes */
    unsigned vnodes[CHOICES_MAX], nvnodes;
    unsigned weights[CHOICES_MAX], nweights;   /* of node1, node2 ..., from the first one again */
    const struct scheme *schemes[CHOICES_MAX]; /* none: all but slow ones */
    unsigned nschemes;
    bool json;
    const char *plot; /* an SVG file, NULL: none */
};

/* ---- ../ring_sim.c ---- */
/* A line on standard error. */
__attribute__((format(printf, 1, 2))) void complain(const char *fmt, ...);

/* ---- trials.c ---- */
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

/* ---- show.c ---- */
void show_table(const struct simulation *s, const struct rival *rivals, unsigned n);
void show_json(const struct simulation *s, const struct rival *rivals, unsigned n);
struct plot;
/* To be called before the long work.  -ENOENT: there is no gnuplot. */
int plot_begin(struct plot **out);
/* Writes s->plot; complains.  An exit code. */
int plot_end(struct plot *p, const struct simulation *s, const struct rival *rivals, unsigned n);

#endif
