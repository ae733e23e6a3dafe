/* eddy_stats.c - eddy stats: what a mount, or all nodes of its session, do now.
 *
 * The daemon tells counters and gauges (fs/daemon/figures.h); two answers give the rates of the time between them.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/eddy.h"
#include "tools/eddy_figures.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_stats.h"
#include "tools/eddy_talk.h"

#define ANSWER_MS 10000

struct stats {
    struct mount_entry e;
    double interval_s;
    unsigned long count; /* 0: without end */
    bool session, json, screen;
};

double stats_hits(const struct stats_rates *r)
{
    return r->read > 0 ? r->read_local / r->read : -1;
}

/* ---- the rates ---- */

static const json_t *figures_before(const json_t *before, const char *node)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(before, "nodes"), i, o)
    {
        if (!strcmp(json_text(o, "node"), node))
            return json_object_get(o, "figures");
    }
    return NULL;
}

/* A counter that became less is of a daemon that was started again. */
static double rate(const json_t *now, const json_t *before, const char *name, double seconds)
{
    uint64_t a = json_u64(before, name), b = json_u64(now, name);
    return before && b >= a ? (double)(b - a) / seconds : 0;
}

static struct stats_rates rates_of(const json_t *node, const json_t *before, double s)
{
    const json_t *f = json_object_get(node, "figures"), *b = figures_before(before, json_text(node, "node"));
    struct stats_rates r = {.node = json_text(node, "node"), .error = f ? NULL : json_text(node, "error")};
    r.read_local = rate(f, b, "read_local_bytes", s);
    r.read_peer = rate(f, b, "read_peer_bytes", s);
    r.read_pfs = rate(f, b, "read_pfs_bytes", s);
    r.read = r.read_local + r.read_peer + r.read_pfs;
    r.written = rate(f, b, "written_bytes", s);
    r.flushed = rate(f, b, "flushed_bytes", s);
    r.pfs_ops = rate(f, b, "pfs_name_ops", s);
    r.pfs_read = rate(f, b, "pfs_read_bytes", s);
    r.pfs_written = rate(f, b, "pfs_write_bytes", s);
    r.messages = rate(f, b, "messages_sent", s) - rate(f, b, "pings_sent", s);
    r.cache_size = json_u64(f, "cache_size_bytes");
    r.cache_used = json_u64(f, "cache_used_bytes");
    r.content = json_u64(f, "cache_content_bytes");
    r.dirty = json_u64(f, "dirty_bytes");
    r.files_dirty = json_u64(f, "pending_files");
    r.files_failed = json_u64(f, "failed_files");
    r.oldest_ms = json_u64(f, "oldest_dirty_ms");
    r.open_files = json_u64(f, "open_files");
    r.passthrough_files = json_u64(f, "passthrough_files");
    r.pfs_silent_ms = json_u64(f, "pfs_silent_ms");
    r.suspected = json_u64(f, "nodes_suspected");
    return r;
}

static void add_up(struct stats_rates *all, const struct stats_rates *r)
{
    all->read += r->read;
    all->read_local += r->read_local;
    all->read_peer += r->read_peer;
    all->read_pfs += r->read_pfs;
    all->written += r->written;
    all->flushed += r->flushed;
    all->pfs_ops += r->pfs_ops;
    all->pfs_read += r->pfs_read;
    all->pfs_written += r->pfs_written;
    all->messages += r->messages;
    all->cache_size += r->cache_size;
    all->cache_used += r->cache_used;
    all->content += r->content;
    all->dirty += r->dirty;
    all->files_dirty += r->files_dirty;
    all->files_failed += r->files_failed;
    all->oldest_ms = MAX(all->oldest_ms, r->oldest_ms);
    all->open_files += r->open_files;
    all->passthrough_files += r->passthrough_files;
    all->pfs_silent_ms = MAX(all->pfs_silent_ms, r->pfs_silent_ms);
    all->suspected = MAX(all->suspected, r->suspected);
}

/* ---- the latencies ---- */

static int by_part(const void *a, const void *b)
{
    double x = ((const struct stats_operation *)a)->part, y = ((const struct stats_operation *)b)->part;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The mount's own node stays the first. */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct stats_rates *)a)->node, ((const struct stats_rates *)b)->node);
}

static void measure_operations(struct stats_interval *i, const json_t *now, const json_t *before)
{
    const char *name;
    json_t *o;
    json_object_foreach((json_t *)now, name, o)
    {
        struct latency_copy a = {0}, b = {0}, d;
        figures_add_latency(&a, json_object_get(before, name));
        figures_add_latency(&b, o);
        if (b.count <= a.count || i->n_operations == STATS_OPERATIONS)
            continue;
        latency_since(&b, &a, &d);
        i->operations[i->n_operations++] = (struct stats_operation){
            .name = name,
            .calls = (double)d.count / i->seconds,
            .part = (double)d.sum_ns / 1e9 / i->seconds,
            .median_ms = (double)latency_quantile_ns(&d, 0.5) / 1e6,
            .p99_ms = (double)latency_quantile_ns(&d, 0.99) / 1e6,
        };
    }
    qsort(i->operations, i->n_operations, sizeof(*i->operations), by_part);
}

/* The rates from `before` to `now`; i->nodes is the caller's to free. */
static void measure(const json_t *now, const json_t *before, struct stats_interval *i)
{
    size_t k;
    json_t *node;
    const json_t *list = json_object_get(now, "nodes");
    *i = (struct stats_interval){.answer = now};
    i->seconds = (double)(json_u64(now, "boot_ns") - json_u64(before, "boot_ns")) / 1e9;
    i->seconds = MAX(i->seconds, 1e-3);
    i->nodes = xcalloc(json_array_size(list) + 1, sizeof(*i->nodes));
    i->all.node = "all";
    json_array_foreach(list, k, node)
    {
        i->nodes[i->n] = rates_of(node, before, i->seconds);
        add_up(&i->all, &i->nodes[i->n++]);
    }
    if (i->n > 2)
        qsort(i->nodes + 1, i->n - 1, sizeof(*i->nodes), by_name);
    measure_operations(i, json_object_get(now, "operations"), json_object_get(before, "operations"));
}

/* ---- the rounds ---- */

static int ask(const struct stats *s, json_t **answer)
{
    json_t *args = json_object();
    json_object_set_new(args, "session", json_boolean(s->session));
    int err = talk_once(&s->e, "stats", args, ANSWER_MS, answer);
    if (!err)
        return 0;
    if (err == -ECONNREFUSED)
        complain("%s: no daemon runs: \"eddy wait %s\" tells what is not on the PFS", s->e.mountpoint, s->e.mountpoint);
    else
        complain("%s: %s", s->e.mountpoint, talk_error(*answer, err));
    json_decref(*answer);
    return err;
}

static void show(const struct stats *s, const struct stats_interval *i, unsigned long number)
{
    if (s->json) {
        json_t *o = stats_json(i);
        json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(o);
    } else if (s->screen) {
        stats_screen(i, s->session);
    } else {
        stats_lines(i, s->session, (unsigned)number);
    }
    fflush(stdout);
}

static void sleep_until(uint64_t until_ns)
{
    uint64_t now;
    while ((now = boot_ns()) < until_ns) {
        struct timespec t = time_of_ns((int64_t)(until_ns - now));
        nanosleep(&t, NULL);
    }
}

static void on_signal(int sig)
{
    stats_screen_end();
    _exit(sig == SIGINT ? DONE : 128 + sig);
}

/* Without --count it ends by SIGINT: that is no failure.  A shell's job in the background ignores it, and so does this. */
static void await_end(const struct stats *s)
{
    struct sigaction a = {.sa_handler = on_signal}, was;
    if (!sigaction(SIGINT, NULL, &was) && was.sa_handler != SIG_IGN)
        sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    if (s->screen)
        stats_screen_begin();
}

static int rounds(struct stats *s)
{
    json_t *before, *now;
    if (ask(s, &before))
        return FAILED;
    await_end(s);
    uint64_t next = boot_ns();
    int err = 0;
    for (unsigned long n = 0; !err && (!s->count || n < s->count) && !ferror(stdout); n++) {
        next += (uint64_t)(s->interval_s * 1e9);
        sleep_until(next);
        next = MAX(next, boot_ns() - (uint64_t)(s->interval_s * 1e9)); /* none is made up for */
        err = ask(s, &now);
        if (err)
            break;
        struct stats_interval i;
        measure(now, before, &i);
        show(s, &i, n);
        free(i.nodes);
        json_decref(before);
        before = now;
    }
    json_decref(before);
    if (s->screen)
        stats_screen_end();
    return err ? FAILED : DONE;
}

static int parse_interval(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !isfinite(*out) || *out < 0.1 || *out > 86400) {
        complain("--interval: \"%s\" is not a number of seconds from 0.1 to 86400", text);
        return -EINVAL;
    }
    return 0;
}

static int parse_count(const char *text, unsigned long *out)
{
    char *end;
    errno = 0;
    *out = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || !*out) {
        complain("--count: \"%s\" is not a number from 1 on", text);
        return -EINVAL;
    }
    return 0;
}

int stats_main(int argc, char **argv)
{
    static const struct option options[] = {{"interval", required_argument, NULL, 'i'},
                                            {"count", required_argument, NULL, 'n'},
                                            {"session", no_argument, NULL, 's'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct stats s = {.interval_s = 1};
    for (int c; (c = next_option(argc, argv, "hi:n:", options)) != -1;) {
        if (c == 'h')
            return help_of("stats");
        if ((c == 'i' && parse_interval(optarg, &s.interval_s)) || (c == 'n' && parse_count(optarg, &s.count)))
            return WRONG_USAGE;
        if (!strchr("insj", c))
            return usage_of("stats");
        s.session |= c == 's';
        s.json |= c == 'j';
    }
    if (argc - optind != 1)
        return usage_of("stats");
    const char *term = getenv("TERM");
    s.screen = !s.json && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
    if (find_mount(argv[optind], &s.e))
        return FAILED;
    int code = rounds(&s);
    mount_entry_free(&s.e);
    return code;
}

/* ---- eddy metrics ---- */

int metrics_main(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    struct mount_entry e;
    json_t *answer, *line;
    size_t i;
    int c = next_option(argc, argv, "h", options);
    if (c == 'h')
        return help_of("metrics");
    if (c != -1 || argc - optind != 1)
        return usage_of("metrics");
    if (find_mount(argv[optind], &e))
        return FAILED;
    int err = talk_once(&e, "metrics", NULL, ANSWER_MS, &answer);
    if (err)
        complain("%s: %s", e.mountpoint, talk_error(answer, err));
    json_array_foreach(err ? NULL : json_object_get(answer, "lines"), i, line)
    {
        puts(json_string_value(line));
    }
    json_decref(answer);
    mount_entry_free(&e);
    return err ? FAILED : DONE;
}
