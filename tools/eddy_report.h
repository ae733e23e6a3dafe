/* eddy_report.h - reports of one session's nodes, as eddy report has read them (eddy_report.c). */
#ifndef EDDY_TOOLS_EDDY_REPORT_H
#define EDDY_TOOLS_EDDY_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct report_node {
    json_t *json;
    const char *node; /* json's */
    double began, ended; /* seconds since 1970 */
};

struct report_set {
    struct report_node *nodes; /* by name */
    size_t n;
    double began, ended; /* of all */
};

/* A figure's last value, of one node or of all. */
uint64_t report_figure(const struct report_node *r, const char *name);
uint64_t report_sum(const struct report_set *s, const char *name);

/* ---- eddy_report_series.c: over time ---- */
#define REPORT_BINS 200
/* Of all nodes, in each of REPORT_BINS parts of the time from s->began to s->ended: a counter's rate in a second. */
void report_rates(const struct report_set *s, const char *name, double out[REPORT_BINS]);
/* ... the value at its end, of a figure that goes up and down. */
void report_levels(const struct report_set *s, const char *name, double out[REPORT_BINS]);

/* ---- eddy_report_advice.c: what to change ---- */
/* Calls fn with each piece of advice, in plain words. */
void report_advise(const struct report_set *s, void (*fn)(void *arg, const char *what, const char *todo), void *arg);

/* ---- eddy_report_html.c: one page ---- */
void report_html(const struct report_set *s, FILE *out);

#endif
