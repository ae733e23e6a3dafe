/* eddy_report_series.c - the nodes' histories on one axis of time (fs/daemon/history.c makes them). */
#include <math.h>

#include "tools/eddy_report.h"
#include "tools/eddy_talk.h"
#include "transport/base.h"

/* The figure at that time: between two rows on the straight line from one to the other. */
static double at(const struct report_node *r, const char *name, double t)
{
    const json_t *history = json_object_get(r->json, "history");
    const json_t *v = json_object_get(json_object_get(history, "series"), name);
    size_t n = json_array_size(v);
    double interval = MAX((double)json_u64(history, "interval_s"), 1), last = r->ended - r->began;
    if (!n)
        return 0;
    t -= r->began;
    if (n == 1 || t >= last)
        return (double)json_integer_value(json_array_get(v, n - 1));
    if (t <= 0)
        return (double)json_integer_value(json_array_get(v, 0));
    size_t k = MIN((size_t)(t / interval), n - 2);
    double from = (double)k * interval, to = k + 2 == n ? MAX(last, from + 1e-3) : from + interval;
    double a = (double)json_integer_value(json_array_get(v, k)), b = (double)json_integer_value(json_array_get(v, k + 1));
    return a + (b - a) * MIN(MAX((t - from) / (to - from), 0), 1);
}

static double bin_s(const struct report_set *s)
{
    return MAX(s->ended - s->began, 1) / REPORT_BINS;
}

void report_rates(const struct report_set *s, const char *name, double out[REPORT_BINS])
{
    double width = bin_s(s);
    for (unsigned i = 0; i < REPORT_BINS; i++) {
        out[i] = 0;
        for (size_t k = 0; k < s->n; k++) {
            double t = s->began + i * width;
            out[i] += MAX((at(&s->nodes[k], name, t + width) - at(&s->nodes[k], name, t)) / width, 0);
        }
    }
}

void report_levels(const struct report_set *s, const char *name, double out[REPORT_BINS])
{
    double width = bin_s(s);
    for (unsigned i = 0; i < REPORT_BINS; i++) {
        out[i] = 0;
        for (size_t k = 0; k < s->n; k++) {
            double t = s->began + (i + 1) * width;
            if (t >= s->nodes[k].began && t <= s->nodes[k].ended + width)
                out[i] += at(&s->nodes[k], name, t);
        }
    }
}
