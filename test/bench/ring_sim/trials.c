/* trials.c - the trials of ring_sim.
 *
 * Each trial has new nodes, new files of one chunk, and other nodes that fail.  Every
 * scheme places the files on all nodes, and again on the nodes that are left: nothing is assumed about
 * which files move.  Loads and shares are in parts of what the node should have by its weight: 1
 * is the right value for each.
 */
#include "test/bench/ring_sim/simulation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "placement/ring/ring.h"
#include "transport/base.h"
#include "transport/view.h"

#define RIVALS_MAX  (CHOICES_MAX * 2 + 2)
#define ROUNDS      15 /* of measured look-ups; the fastest counts */
#define BASE_POINTS 100

const struct figure figures[] = {
#define X(key, text, worst) {#key, text, worst},
    FIGURES(X)
#undef X
};

struct trial {
    const struct simulation *s;
    unsigned number;
    struct view before, after;
    uint64_t *places;            /* of the files */
    uint64_t *owners, *owners_2; /* before and after; scratch */
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- a trial's nodes and files ---- */

/* The n-th random number of the trial, of a kind. */
static uint64_t random_of(const struct trial *t, uint64_t kind, uint64_t n)
{
    uint64_t in[3] = {t->number, kind, n};
    return XXH3_64bits(in, sizeof(in));
}
enum { RANDOM_ID, RANDOM_FID, RANDOM_FID_LO, RANDOM_FAIL };

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct member *)a)->id, y = ((const struct member *)b)->id;
    return (x > y) - (x < y);
}

static void choose_nodes(struct trial *t)
{
    const struct simulation *s = t->s;
    for (unsigned i = 0; i < s->nodes; i++)
        t->before.members[i] = (struct member){.id = random_of(t, RANDOM_ID, i),
                                               .weight = s->weights[i % s->nweights]};
    t->before.nmembers = s->nodes;
    qsort(t->before.members, s->nodes, sizeof(struct member), by_id);
}

static void choose_failed(struct trial *t)
{
    t->after.nmembers = t->before.nmembers;
    memcpy(t->after.members, t->before.members, t->before.nmembers * sizeof(struct member));
    for (unsigned i = 0; i < t->s->fail; i++) {
        uint32_t m = (uint32_t)(random_of(t, RANDOM_FAIL, i) % t->after.nmembers);
        memmove(&t->after.members[m], &t->after.members[m + 1],
                (--t->after.nmembers - m) * sizeof(struct member));
    }
}

static void begin_trial(struct trial *t, unsigned number)
{
    t->number = number;
    choose_nodes(t);
    choose_failed(t);
    for (unsigned i = 0; i < t->s->files; i++) {
        struct fid fid = {random_of(t, RANDOM_FID, i), random_of(t, RANDOM_FID_LO, i)};
        t->places[i] = ring_place(fid, 0);
    }
}

static const struct member *member_of(const struct view *v, uint64_t id)
{
    struct member key = {.id = id};
    return bsearch(&key, v->members, v->nmembers, sizeof(key), by_id);
}

/* ---- what is found ---- */

static void found(struct rival *r, unsigned trial, unsigned figure, double value)
{
    enum worst worst = figures[figure].worst;
    r->sum[figure] += value;
    if (!trial || (worst == HIGHEST && value > r->worst[figure]) ||
        (worst == LOWEST && value < r->worst[figure]))
        r->worst[figure] = value;
}

/* Makes parts of a whole into parts of what each node should have. */
static void by_weight(const struct view *v, double whole, double *parts)
{
    double weights = 0;
    for (uint32_t i = 0; i < v->nmembers; i++)
        weights += v->members[i].weight;
    for (uint32_t i = 0; i < v->nmembers; i++)
        parts[i] *= weights / (whole * v->members[i].weight);
}

static double highest(const double *v, uint32_t n)
{
    double x = v[0];
    for (uint32_t i = 1; i < n; i++)
        x = fmax(x, v[i]);
    return x;
}

static double lowest(const double *v, uint32_t n)
{
    double x = v[0];
    for (uint32_t i = 1; i < n; i++)
        x = fmin(x, v[i]);
    return x;
}

/* From 1. */
static double deviation(const double *v, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (v[i] - 1) * (v[i] - 1);
    return sqrt(sum / n);
}

static void share_figures(struct rival *r, const struct trial *t, const struct view *v,
                          const void *table, unsigned max, unsigned min)
{
    double *shares = xcalloc(v->nmembers, sizeof(*shares));
    r->scheme->shares(table, shares);
    by_weight(v, 1, shares);
    found(r, t->number, max, highest(shares, v->nmembers));
    found(r, t->number, min, lowest(shares, v->nmembers));
    free(shares);
}

/* The nodes' loads in files; malloc'd. */
static double *load_figures(struct rival *r, const struct trial *t, const struct view *v,
                            const uint64_t *owners, unsigned max)
{
    double *loads = xcalloc(v->nmembers, sizeof(*loads));
    for (unsigned i = 0; i < t->s->files; i++)
        loads[member_of(v, owners[i]) - v->members]++;
    by_weight(v, t->s->files, loads);
    found(r, t->number, max, highest(loads, v->nmembers));
    found(r, t->number, max + 1, lowest(loads, v->nmembers));
    found(r, t->number, max + 2, deviation(loads, v->nmembers));
    return loads;
}

/* How many nodes get at least one of so many files by chance. */
static double chance_of_receivers(const struct view *v, double files)
{
    double weights = 0, receivers = 0;
    for (uint32_t i = 0; i < v->nmembers; i++)
        weights += v->members[i].weight;
    for (uint32_t i = 0; i < v->nmembers; i++)
        receivers += 1 - pow(1 - v->members[i].weight / weights, files);
    return receivers;
}

static void move_figures(struct rival *r, const struct trial *t)
{
    bool *receives = xcalloc(t->after.nmembers, sizeof(*receives));
    unsigned lost = 0, moved = 0, receivers = 0;
    for (unsigned i = 0; i < t->s->files; i++) {
        moved += t->owners[i] != t->owners_2[i];
        if (member_of(&t->after, t->owners[i]))
            continue;
        bool *to = &receives[member_of(&t->after, t->owners_2[i]) - t->after.members];
        receivers += !*to;
        *to = true;
        lost++;
    }
    free(receives);
    double chance = chance_of_receivers(&t->after, lost);
    found(r, t->number, FIGURE_lost, lost);
    found(r, t->number, FIGURE_receivers, receivers);
    found(r, t->number, FIGURE_receivers_to_chance, lost ? receivers / chance : 1);
    found(r, t->number, FIGURE_files_per_receiver, lost ? (double)lost / receivers : 0);
    found(r, t->number, FIGURE_moved_to_least, lost ? (double)moved / lost : !moved);
}

/* ---- the cost of a look-up ---- */

/* Each look-up waits for the one before it, because look-ups in a daemon do not overlap. */
static double time_look_ups(const struct scheme *scheme, const void *table, const struct trial *t)
{
    static volatile uint64_t zero;
    uint64_t none = zero, last = 0;
    double begin = now_ns();
    for (unsigned i = 0; i < t->s->files; i++)
        last = scheme->owner(table, t->places[i] ^ (last & none));
    double ns = now_ns() - begin + (double)(last & none);
    return ns / t->s->files;
}

/* Beside the plain ring with 100 points, in turns. */
static void look_up_figures(struct rival *r, const struct trial *t, const void *table)
{
    const struct scheme *ring = scheme_named("ring", 4);
    void *base = ring->make(&t->before, BASE_POINTS);
    double ns = INFINITY, base_ns = INFINITY;
    for (unsigned i = 0; i < ROUNDS; i++) {
        base_ns = fmin(base_ns, time_look_ups(ring, base, t));
        ns = fmin(ns, time_look_ups(r->scheme, table, t));
    }
    r->look_up_ns = ns;
    r->look_up_to_base = ns / base_ns;
    r->bytes = r->scheme->bytes(table);
    ring->drop(base);
}

/* ---- all trials ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void keep_or_free(double **kept, double *loads, uint32_t n)
{
    if (*kept) {
        free(loads);
        return;
    }
    qsort(loads, n, sizeof(*loads), ascending);
    *kept = loads;
}

static void place_files(const struct rival *r, const struct trial *t, const void *table,
                        uint64_t *owners)
{
    for (unsigned i = 0; i < t->s->files; i++)
        owners[i] = r->scheme->owner(table, t->places[i]);
}

static void try_rival(struct rival *r, struct trial *t)
{
    double begin = now_ns();
    void *before = r->scheme->make(&t->before, r->points);
    found(r, t->number, FIGURE_make_ms, (now_ns() - begin) / 1e6);
    void *after = r->scheme->make(&t->after, r->points);
    if (!t->number)
        look_up_figures(r, t, before);
    place_files(r, t, before, t->owners);
    place_files(r, t, after, t->owners_2);
    share_figures(r, t, &t->before, before, FIGURE_share_max, FIGURE_share_min);
    share_figures(r, t, &t->after, after, FIGURE_share_max_after, FIGURE_share_min_after);
    double *loads = load_figures(r, t, &t->before, t->owners, FIGURE_load_max);
    keep_or_free(&r->before, loads, t->before.nmembers);
    loads = load_figures(r, t, &t->after, t->owners_2, FIGURE_load_max_after);
    keep_or_free(&r->after, loads, t->after.nmembers);
    move_figures(r, t);
    r->scheme->drop(before);
    r->scheme->drop(after);
}

static unsigned choose_rivals(const struct simulation *s, struct rival *rivals)
{
    unsigned n = 0, all = s->nschemes ? s->nschemes : nschemes;
    for (unsigned i = 0; i < all; i++) {
        const struct scheme *scheme = s->nschemes ? s->schemes[i] : &schemes[i];
        if (!s->nschemes && scheme->is_slow)
            continue;
        for (unsigned j = 0; j < (scheme->has_points ? s->nvnodes : 1) && n < RIVALS_MAX; j++)
            rivals[n++] =
                (struct rival){.scheme = scheme, .points = scheme->has_points ? s->vnodes[j] : 0};
    }
    return n;
}

static void run_trials(const struct simulation *s, struct rival *rivals, unsigned n)
{
    struct trial t = {.s = s};
    t.before.members = xcalloc(s->nodes, sizeof(struct member));
    t.after.members = xcalloc(s->nodes, sizeof(struct member));
    t.places = xcalloc(s->files, sizeof(*t.places));
    t.owners = xcalloc(s->files, sizeof(*t.owners));
    t.owners_2 = xcalloc(s->files, sizeof(*t.owners_2));
    for (unsigned i = 0; i < s->trials; i++) {
        begin_trial(&t, i);
        for (unsigned j = 0; j < n; j++)
            try_rival(&rivals[j], &t);
    }
    free(t.before.members);
    free(t.after.members);
    free(t.places);
    free(t.owners);
    free(t.owners_2);
}

int simulate(const struct simulation *s)
{
    struct rival rivals[RIVALS_MAX];
    unsigned n = choose_rivals(s, rivals);
    struct plot *plot = NULL;
    int err = s->plot ? plot_begin(&plot) : 0;
    if (err) {
        complain("gnuplot: %s: --plot needs it (Debian package gnuplot-nox)", strerror(-err));
        return FAILED;
    }
    run_trials(s, rivals, n);
    if (s->json)
        show_json(s, rivals, n);
    else
        show_table(s, rivals, n);
    int code = plot ? plot_end(plot, s, rivals, n) : DONE;
    for (unsigned i = 0; i < n; i++) {
        free(rivals[i].before);
        free(rivals[i].after);
    }
    return code;
}
