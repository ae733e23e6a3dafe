/* eddy_report_html.c - a report as one page of HTML with its pictures in SVG: no script, nothing from elsewhere.
 *
 * All texts of a report may be another user's: they go through print_text.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/eddy_figures.h"
#include "tools/eddy_files.h"
#include "tools/eddy_report.h"
#include "tools/eddy_talk.h"
#include "transport/base.h"

#define WIDTH   960 /* of a picture, with the axis at its left */
#define HEIGHT  200
#define LEFT    64
#define BOTTOM  24
#define SLOWEST 20
#define LISTED  50

static const char style[] =
    ":root{--ink:#1f2933;--soft:#66727f;--line:#d9dee3;--page:#fff;--card:#f5f7f9;--own:#4f9d69;--nodes:#4f7fb0;--pfs:#d08a4e;--bad:#c0392b}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--soft:#9aa5b1;--line:#39424c;--page:#171b20;--card:#20262d}}"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:1000px;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .4rem}p{margin:.3rem 0}.soft{color:var(--soft)}"
    ".state{display:inline-block;padding:.15rem .7rem;border-radius:1rem;color:#fff;background:var(--own);margin:.6rem 0}.state.bad{background:var(--bad)}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(120px,1fr));gap:.7rem;margin:1rem 0}"
    ".card{background:var(--card);border-radius:.5rem;padding:.6rem .7rem}.card b{display:block;font-size:1.35rem;font-weight:600}"
    "svg{width:100%;height:auto;display:block}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}"
    ".key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .3em 0 1em}"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}th{text-align:left;color:var(--soft);font-weight:500}"
    "td,th{padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}"
    "td.p{overflow-wrap:anywhere}.todo{border-left:3px solid var(--pfs);padding:.2rem .9rem;margin:.6rem 0;background:var(--card)}"
    "pre{font-size:.8rem;background:var(--card);padding:.7rem;border-radius:.5rem;overflow-x:auto;max-height:22rem}";

static FILE *out;

static void print_text(const char *s)
{
    for (; *s; s++) {
        const char *name = *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : *s == '"' ? "&quot;" : NULL;
        if (name)
            fputs(name, out);
        else
            fputc(*s, out);
    }
}

static const char *duration(double s, char buf[24])
{
    if (s < 120)
        snprintf(buf, 24, "%.0f s", s);
    else if (s < 7200)
        snprintf(buf, 24, "%.0f min %.0f s", floor(s / 60), fmod(s, 60));
    else
        snprintf(buf, 24, "%.0f h %.0f min", floor(s / 3600), floor(fmod(s, 3600) / 60));
    return buf;
}

/* ---- pictures over time ---- */

struct area {
    const char *name, *color;
    double v[REPORT_BINS];
};

static double x_of(unsigned bin)
{
    return LEFT + (double)(WIDTH - LEFT) * bin / REPORT_BINS;
}

static double y_of(double v, double most)
{
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * v / most;
}

/* 1, 2 or 5 times a power of ten, about a third of it. */
static double step_of(double most)
{
    double power = pow(10, floor(log10(most / 3)));
    double times = most / 3 / power;
    return power * (times < 1.5 ? 1 : times < 3.5 ? 2 : times < 7.5 ? 5 : 10);
}

static void print_axes(const struct report_set *s, double most, const char *unit)
{
    char text[24];
    double total = MAX(s->ended - s->began, 1), step = step_of(most);
    for (double v = 0; v <= most; v += step)
        fprintf(out,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"var(--line)\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%s%s</text>\n",
                LEFT, WIDTH, y_of(v, most), y_of(v, most), LEFT - 6, y_of(v, most) + 4, figures_amount(v, text), v > 0 ? unit : "");
    for (double t = 0; t <= total; t += step_of(total * 0.6))
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", LEFT + 12 + (WIDTH - LEFT - 24) * t / total,
                HEIGHT - 6, duration(t, text));
}

/* One above the other. */
static void print_area(const struct area *a, const double *below, double most)
{
    fputs("<path d=\"M", out);
    for (unsigned i = 0; i < REPORT_BINS; i++)
        fprintf(out, "%.1f,%.1fL%.1f,%.1fL", x_of(i), y_of(below[i] + a->v[i], most), x_of(i + 1), y_of(below[i] + a->v[i], most));
    for (unsigned i = REPORT_BINS; i-- > 0;)
        fprintf(out, "%.1f,%.1fL%.1f,%.1f%s", x_of(i + 1), y_of(below[i], most), x_of(i), y_of(below[i], most), i ? "L" : "Z");
    fprintf(out, "\" fill=\"var(%s)\" fill-opacity=\".85\"><title>%s</title></path>\n", a->color, a->name);
}

static void print_key(const struct area *a, size_t n)
{
    fputs("<p class=\"key soft\">", out);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "<i style=\"background:var(%s)\"></i>%s", a[i].color, a[i].name);
    fputs("</p>\n", out);
}

static void print_areas(const struct report_set *s, const char *title, const struct area *a, size_t n, const char *unit)
{
    double sum[REPORT_BINS] = {0}, most = 1;
    for (unsigned i = 0; i < REPORT_BINS; i++) {
        double v = 0;
        for (size_t k = 0; k < n; k++)
            v += a[k].v[i];
        most = MAX(most, v);
    }
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", WIDTH, HEIGHT, title);
    print_axes(s, most, unit);
    for (size_t k = 0; k < n; k++) {
        print_area(&a[k], sum, most);
        for (unsigned i = 0; i < REPORT_BINS; i++)
            sum[i] += a[k].v[i];
    }
    fputs("</svg>\n", out);
    print_key(a, n);
}

static void print_phases(const struct report_set *s)
{
    struct area reads[] = {{.name = "own cache", .color = "--own"}, {.name = "other nodes", .color = "--nodes"}, {.name = "PFS", .color = "--pfs"}},
                writes[] = {{.name = "written by applications", .color = "--own"}}, flushes[] = {{.name = "flushed to the PFS", .color = "--pfs"}},
                dirty[] = {{.name = "not on the PFS yet", .color = "--pfs"}};
    report_rates(s, "read_local_bytes", reads[0].v);
    report_rates(s, "read_peer_bytes", reads[1].v);
    report_rates(s, "read_pfs_bytes", reads[2].v);
    report_rates(s, "written_bytes", writes[0].v);
    report_rates(s, "flushed_bytes", flushes[0].v);
    report_levels(s, "dirty_bytes", dirty[0].v);
    fputs("<h2>Reads</h2><p class=\"soft\">What applications read in a second, and where it came from.</p>", out);
    print_areas(s, "reads over time", reads, ARRAY_LEN(reads), "/s");
    fputs("<h2>Writes and flushes</h2><p class=\"soft\">What applications wrote to the caches, and when it went from there to the PFS.</p>", out);
    print_areas(s, "writes over time", writes, 1, "/s");
    print_areas(s, "flushes over time", flushes, 1, "/s");
    print_areas(s, "data that is not on the PFS over time", dirty, 1, "");
}

/* ---- nodes ---- */

static double print_bar(double x, double y, double v, double most, const char *color)
{
    double width = (WIDTH - 150 - 90) * v / most;
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"14\" fill=\"var(%s)\"/>", x, y, width, color);
    return x + width;
}

static void print_sources(const struct report_set *s)
{
    double most = 1;
    char text[24];
    for (size_t i = 0; i < s->n; i++) {
        const struct report_node *r = &s->nodes[i];
        most = MAX(most, (double)(report_figure(r, "read_local_bytes") + report_figure(r, "read_peer_bytes") +
                                  report_figure(r, "read_pfs_bytes")));
    }
    fprintf(out, "<h2>Where each node's reads came from</h2><svg viewBox=\"0 0 %d %zu\" role=\"img\" aria-label=\"reads of each node\">\n", WIDTH,
            s->n * 22 + 4);
    for (size_t i = 0; i < s->n; i++) {
        const struct report_node *r = &s->nodes[i];
        double own = (double)report_figure(r, "read_local_bytes"), peer = (double)report_figure(r, "read_peer_bytes"),
               pfs = (double)report_figure(r, "read_pfs_bytes"), y = (double)i * 22 + 4;
        fprintf(out, "<text x=\"142\" y=\"%.1f\" text-anchor=\"end\">", y + 11);
        print_text(r->node);
        fputs("</text>", out);
        double x = print_bar(150, y, own, most, "--own");
        x = print_bar(x, y, peer, most, "--nodes");
        x = print_bar(x, y, pfs, most, "--pfs");
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 6, y + 11, figures_amount(own + peer + pfs, text));
    }
    fputs("</svg>\n<p class=\"key soft\"><i style=\"background:var(--own)\"></i>own cache<i style=\"background:var(--nodes)\"></i>other nodes"
          "<i style=\"background:var(--pfs)\"></i>PFS</p>", out);
}

/* ---- head ---- */

static void print_card(const char *value, const char *name)
{
    fprintf(out, "<div class=\"card\"><b>%s</b><span class=\"soft\">%s</span></div>", value, name);
}

static void print_part(double part, double all, const char *name)
{
    char text[24] = "-";
    if (all > 0)
        snprintf(text, sizeof(text), "%.0f %%", 100 * part / all);
    print_card(text, name);
}

static void print_cards(const struct report_set *s)
{
    char text[24];
    double own = (double)report_sum(s, "read_local_bytes"), peer = (double)report_sum(s, "read_peer_bytes"),
           all = own + peer + (double)report_sum(s, "read_pfs_bytes");
    fputs("<div class=\"cards\">", out);
    print_card(figures_amount(all, text), "read by applications");
    print_part(own + peer, all, "of it from the caches");
    print_card(figures_amount((double)report_sum(s, "pfs_read_bytes"), text), "read from the PFS");
    print_card(figures_amount((double)report_sum(s, "written_bytes"), text), "written by applications");
    print_card(figures_amount((double)report_sum(s, "flushed_bytes"), text), "flushed to the PFS");
    print_part((double)report_sum(s, "flushed_lull_bytes"), (double)report_sum(s, "flushed_bytes"), "of it in lulls");
    print_card(duration((double)report_sum(s, "slowed_ms") / 1000, text), "that writers waited for room");
    fputs("</div>\n", out);
}

static void print_head(const struct report_set *s)
{
    char text[24], began[TIME_TEXT];
    uint64_t left = 0;
    time_text(s->began, began);
    for (size_t i = 0; i < s->n; i++)
        left += json_u64(s->nodes[i].json, "not_on_pfs_count");
    fputs("<h1>Session ", out);
    print_text(json_text(s->nodes[0].json, "session"));
    fprintf(out, "</h1><p class=\"soft\">%zu node%s, from %s, %s, over ", s->n, s->n == 1 ? "" : "s", began, duration(s->ended - s->began, text));
    print_text(json_text(s->nodes[0].json, "pfs"));
    fputs("</p>", out);
    if (left)
        fprintf(out, "<p class=\"state bad\">%llu files are not on the PFS</p>\n", (unsigned long long)left);
    else
        fputs("<p class=\"state\">Everything is on the PFS</p>\n", out);
}

static void print_advice(void *arg, const char *what, const char *todo)
{
    bool *first = arg;
    if (*first)
        fputs("<h2>What to change</h2>", out);
    *first = false;
    fputs("<div class=\"todo\"><p>", out);
    print_text(what);
    fputs("</p><p class=\"soft\">", out);
    print_text(todo);
    fputs("</p></div>\n", out);
}

/* ---- operations ---- */

struct total {
    const char *name;
    struct latency_copy l;
};

static int by_sum(const void *a, const void *b)
{
    uint64_t x = ((const struct total *)a)->l.sum_ns, y = ((const struct total *)b)->l.sum_ns;
    return x < y ? 1 : x > y ? -1 : 0;
}

static size_t add_up(const struct report_set *s, struct total *all, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const char *name;
        json_t *o;
        json_object_foreach(json_object_get(s->nodes[i].json, "operations"), name, o)
        {
            size_t k = 0;
            while (k < n && strcmp(all[k].name, name))
                k++;
            if (k == room)
                continue;
            if (k == n)
                all[n++].name = name;
            figures_add_latency(&all[k].l, o);
        }
    }
    qsort(all, n, sizeof(*all), by_sum);
    return n;
}

/* Three digits: a histogram's steps are no finer. */
static void print_ms(uint64_t ns)
{
    double ms = (double)ns / 1e6;
    fprintf(out, "<td class=\"n\">%.*f ms", ms < 10 ? 3 : ms < 100 ? 1 : 0, ms);
}

static void print_operations(const struct report_set *s)
{
    struct total *all = xcalloc(64, sizeof(*all));
    size_t n = add_up(s, all, 64);
    fputs("<h2>How long calls took</h2><p class=\"soft\">Of what the kernel asked the daemons; what it does by itself, with passthrough or from its own "
          "pages, costs no call.</p><table><tr><th>operation<th class=\"n\">calls<th class=\"n\">waited, all processes<th class=\"n\">median"
          "<th class=\"n\">99 %<th class=\"n\">99.9 %</tr>\n", out);
    for (size_t i = 0; i < n; i++) {
        fputs("<tr><td>", out);
        print_text(all[i].name);
        fprintf(out, "<td class=\"n\">%llu<td class=\"n\">%.3f s", (unsigned long long)all[i].l.count, (double)all[i].l.sum_ns / 1e9);
        print_ms(latency_quantile_ns(&all[i].l, 0.5));
        print_ms(latency_quantile_ns(&all[i].l, 0.99));
        print_ms(latency_quantile_ns(&all[i].l, 0.999));
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    free(all);
}

struct slow {
    const struct report_node *r;
    const json_t *o;
};

static int by_ms(const void *a, const void *b)
{
    uint64_t x = json_u64(((const struct slow *)a)->o, "ms"), y = json_u64(((const struct slow *)b)->o, "ms");
    return x < y ? 1 : x > y ? -1 : 0;
}

static void print_waits(const json_t *o)
{
    const char *name;
    json_t *ms;
    bool first = true;
    json_object_foreach(json_object_get(o, "waited_ms"), name, ms)
    {
        fputs(first ? "" : ", ", out);
        print_text(name);
        fprintf(out, " %lld ms", (long long)json_integer_value(ms));
        first = false;
    }
}

static void print_slowest(const struct report_set *s)
{
    struct slow *all = NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t k;
        json_t *o;
        json_array_foreach(json_object_get(s->nodes[i].json, "slowest"), k, o)
        {
            all = xrealloc(all, (n + 1) * sizeof(*all));
            all[n++] = (struct slow){&s->nodes[i], o};
        }
    }
    if (n)
        qsort(all, n, sizeof(*all), by_ms);
    if (n)
        fputs("<h2>The slowest operations</h2><table><tr><th class=\"n\">took<th>operation<th>node<th>file<th>it waited for</tr>\n", out);
    for (size_t i = 0; i < MIN(n, (size_t)SLOWEST); i++) {
        fprintf(out, "<tr><td class=\"n\">%llu ms<td>", (unsigned long long)json_u64(all[i].o, "ms"));
        print_text(json_text(all[i].o, "operation"));
        fputs("<td>", out);
        print_text(all[i].r->node);
        fputs("<td class=\"p\">", out);
        print_text(json_text(all[i].o, "path"));
        fputs("<td>", out);
        print_waits(all[i].o);
        fputs("</tr>\n", out);
    }
    fputs(n ? "</table>\n" : "", out);
    free(all);
}

/* ---- lists ---- */

/* Objects of all nodes with two texts each. */
static void print_files(const struct report_set *s, const char *list, const char *title, const char *second)
{
    size_t shown = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t k;
        json_t *o;
        json_array_foreach(json_object_get(s->nodes[i].json, list), k, o)
        {
            if (!shown)
                fprintf(out, "<h2>%s</h2><table>", title);
            if (++shown > LISTED)
                continue;
            fputs("<tr><td>", out);
            print_text(s->nodes[i].node);
            fputs("<td class=\"p\">", out);
            print_text(json_text(o, "path"));
            fputs("<td class=\"p\">", out);
            print_text(json_text(o, second));
            fputs("</tr>\n", out);
        }
    }
    if (shown > LISTED)
        fprintf(out, "<tr><td>...<td>%zu more: the reports name them<td></tr>", shown - LISTED);
    fputs(shown ? "</table>\n" : "", out);
}

static void print_warnings(const struct report_set *s)
{
    bool first = true;
    for (size_t i = 0; i < s->n; i++) {
        size_t k;
        json_t *line;
        json_array_foreach(json_object_get(s->nodes[i].json, "warnings"), k, line)
        {
            fputs(first ? "<h2>The last warnings</h2><pre>" : "", out);
            first = false;
            print_text(json_is_string(line) ? json_string_value(line) : "");
            fputc('\n', out);
        }
    }
    fputs(first ? "" : "</pre>\n", out);
}

void report_html(const struct report_set *s, FILE *to)
{
    bool first = true;
    out = to;
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>eddyfs: session ",
          out);
    print_text(json_text(s->nodes[0].json, "session"));
    fprintf(out, "</title><style>%s</style></head><body>\n", style);
    print_head(s);
    print_cards(s);
    report_advise(s, print_advice, &first);
    print_phases(s);
    print_sources(s);
    print_operations(s);
    print_slowest(s);
    print_files(s, "not_on_pfs", "Not on the PFS", "error");
    print_files(s, "conflicts", "Conflicts", "beside");
    print_warnings(s);
    fputs("</body></html>\n", out);
}
