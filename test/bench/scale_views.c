/* scale_views.c - what a view costs each node, by the number of its members: its file, the time to
 * read it, its ring.
 *
 *   scale_views [--nodes N]...       (default: 10, 1000, 10000)
 *
 * A Markdown row for each N, in processor time. Reading is from this host's memory; the PFS's part comes on top. A
 * look-up without a table is what a node does until the table pays.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "placement/ring/ring.h"
#include "transport/view.h"

#define NODES_MAX 16384
#define LOOK_UPS  100000

/* Processor time: the host may have other things to do. */
static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double ms_since(uint64_t ns)
{
    return (double)(cpu_ns() - ns) / 1e6;
}

static struct view *make_view(uint32_t n)
{
    struct view *v = xcalloc(1, sizeof(*v));
    v->number = 1;
    v->nmembers = n;
    v->members = xcalloc(n, sizeof(*v->members));
    for (uint32_t i = 0; i < n; i++) {
        struct member *m = &v->members[i];
        m->id = ((uint64_t)i + 1) * (UINT64_MAX / (n + 1)); /* sorted */
        m->incarnation = 1;
        m->weight = 819200;
        snprintf(m->name, sizeof(m->name), "node%05u", i);
        snprintf(m->addr, sizeof(m->addr), "10.%u.%u.%u:40123", i >> 16, i >> 8 & 255, i & 255);
    }
    return v;
}

/* Nanoseconds of one look-up; sum: so that the compiler does them. */
static double look_up_ns(const struct ring *r, unsigned n, uint64_t *sum)
{
    uint64_t t = cpu_ns();
    for (uint64_t i = 0; i < n; i++)
        *sum += ring_owner(r, (struct fid){i * 0x9e3779b97f4a7c15u, i}, 0, 0);
    return (double)(cpu_ns() - t) / n;
}

static void measure(uint32_t n)
{
    uint64_t sum = 0;
    size_t len;
    struct view *v = make_view(n), *again;
    uint64_t t = cpu_ns();
    char *text = view_print(v, &len);
    double print_ms = ms_since(t);
    t = cpu_ns();
    if (view_parse(text, len, &again))
        die("the view cannot be read");
    double parse_ms = ms_since(t);
    double slow_ns = look_up_ns(ring_of(again), 10, &sum); /* too few for a table */
    t = cpu_ns();
    struct ring *r = ring_new(v);
    double ring_ms = ms_since(t);
    double fast_ns = look_up_ns(r, LOOK_UPS, &sum);
    printf("| %u | %.1f | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f | %.0f |\n", n,
           (double)len / 1024, print_ms, parse_ms,
           (double)(sizeof(*v) + n * sizeof(*v->members)) / 1024, (double)ring_bytes(r) / 1048576,
           ring_ms, slow_ns / 1e3, fast_ns + (double)(sum == 1));
    ring_free(r);
    view_free(v);
    free(text);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"nodes", required_argument, NULL, 'n'}, {0}};
    bool given = false;
    printf("| nodes | view's file, KiB | printing it, ms | reading it, ms | its memory, KiB | "
           "ring, MiB "
           "| making its table, ms | look-up without, µs | with, ns |\n"
           "|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (int o; (o = getopt_long(argc, argv, "", longs, NULL)) != -1; given = true) {
        int n = o == 'n' ? atoi(optarg) : 0;
        if (n <= 0 || n > NODES_MAX) {
            fprintf(stderr, "usage: scale_views [--nodes N]...   (1 to %d)\n", NODES_MAX);
            return 2;
        }
        measure((uint32_t)n);
    }
    for (unsigned i = 0; !given && i < 3; i++)
        measure((uint32_t[]){10, 1000, 10000}[i]);
    return 0;
}
