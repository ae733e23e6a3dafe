/* ring_sim.c - how evenly placement spreads files on nodes, before and after some fail, beside other schemes.
 *
 *   ring_sim [--nodes N] [--fail K] [--files F] [--trials T] [--weights W,...] [--scheme NAME,...] [--vnodes V,...]
 *            [--json] [--plot FILE]
 *
 *   --nodes    nodes (default 1024)
 *   --fail     nodes that fail (default 1)
 *   --files    files of one chunk (default 524288)
 *   --trials   trials, each with new nodes and files (default 5)
 *   --weights  weights of the nodes, one after the other (default 1)
 *   --scheme   slots (eddyfs's own), ring, multiprobe, rendezvous (ring_sim/scheme.c; default: all but the last, which takes long)
 *   --vnodes   points per node on ring and multiprobe, each of which is tried (default 100)
 *   --json     an object instead of the table
 *   --plot     draws the loads and the receivers into FILE, as SVG, by gnuplot
 *
 * It shows the share of all hashes and the files of each node, against what each node should have by its weight; the files of
 * the failed nodes, how many nodes receive them, and that number against what chance allows; the files that moved, against the
 * least possible number; the time to make the table, its size, and the cost of a look-up, also against that of a plain ring with
 * 100 points per node in the same run.  Means of all trials are shown, and in brackets the worst trial.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/bench/ring_sim/simulation.h"
#include "transport/session.h"

#define NODES_MAX  SESSION_MAX_MEMBERS
#define VNODES_MAX 10000
#define FILES_MAX  (1u << 26)
#define TRIALS_MAX 1000000

void complain(const char *fmt, ...)
{
    va_list ap;
    fputs("ring_sim: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

static int usage(FILE *to)
{
    fputs("usage: ring_sim [--nodes N] [--fail K] [--files F] [--trials T] [--weights W,...]\n"
          "                [--scheme NAME,...] [--vnodes V,...] [--json] [--plot FILE]\n",
          to);
    return to == stdout ? DONE : WRONG_USAGE;
}

static bool parse_count(const char *option, const char *text, unsigned max, unsigned *out)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (!*text || *end || *text == '-' || n < 1 || n > max) {
        complain("--%s %s: is not a number from 1 to %u", option, text, max);
        return false;
    }
    *out = (unsigned)n;
    return true;
}

/* Numbers with commas between them. */
static bool parse_counts(const char *option, char *text, unsigned max, unsigned *out, unsigned *n)
{
    char *rest;
    *n = 0;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (*n == CHOICES_MAX) {
            complain("--%s: takes %d numbers at most", option, CHOICES_MAX);
            return false;
        }
        if (!parse_count(option, word, max, &out[(*n)++]))
            return false;
    }
    return *n || parse_count(option, "", max, out);
}

static bool parse_schemes(char *text, struct simulation *sim)
{
    char *rest;
    sim->nschemes = 0;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        const struct scheme *scheme = scheme_named(word, strlen(word));
        if (!scheme || sim->nschemes == CHOICES_MAX) {
            complain("--scheme %s: there are slots, ring, multiprobe and rendezvous", word);
            return false;
        }
        sim->schemes[sim->nschemes++] = scheme;
    }
    return true;
}

enum {
    OPT_HELP = 'h',
    OPT_NODES = 256,
    OPT_VNODES,
    OPT_FAIL,
    OPT_FILES,
    OPT_TRIALS,
    OPT_WEIGHTS,
    OPT_SCHEME,
    OPT_JSON,
    OPT_PLOT
};

static const struct option options[] = {
    {"nodes", required_argument, NULL, OPT_NODES},
    {"vnodes", required_argument, NULL, OPT_VNODES},
    {"fail", required_argument, NULL, OPT_FAIL},
    {"files", required_argument, NULL, OPT_FILES},
    {"trials", required_argument, NULL, OPT_TRIALS},
    {"weights", required_argument, NULL, OPT_WEIGHTS},
    {"scheme", required_argument, NULL, OPT_SCHEME},
    {"json", no_argument, NULL, OPT_JSON},
    {"plot", required_argument, NULL, OPT_PLOT},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

static bool take_option(int c, char *text, struct simulation *sim)
{
    switch (c) {
    case OPT_NODES:
        return parse_count("nodes", text, NODES_MAX, &sim->nodes);
    case OPT_VNODES:
        return parse_counts("vnodes", text, VNODES_MAX, sim->vnodes, &sim->nvnodes);
    case OPT_FAIL:
        return parse_count("fail", text, NODES_MAX - 1, &sim->fail);
    case OPT_FILES:
        return parse_count("files", text, FILES_MAX, &sim->files);
    case OPT_TRIALS:
        return parse_count("trials", text, TRIALS_MAX, &sim->trials);
    case OPT_WEIGHTS:
        return parse_counts("weights", text, WEIGHT_MAX, sim->weights, &sim->nweights);
    case OPT_SCHEME:
        return parse_schemes(text, sim);
    case OPT_JSON:
        sim->json = true;
        return true;
    default:
        sim->plot = text;
        return true;
    }
}

int main(int argc, char **argv)
{
    struct simulation sim = {.nodes = 1024,
                             .fail = 1,
                             .files = 524288,
                             .trials = 5,
                             .vnodes = {100},
                             .nvnodes = 1,
                             .weights = {1},
                             .nweights = 1};
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == OPT_HELP || c == '?')
            return usage(c == OPT_HELP ? stdout : stderr);
        if (!take_option(c, optarg, &sim))
            return WRONG_USAGE;
    }
    if (optind < argc)
        return usage(stderr);
    if (sim.fail < sim.nodes)
        return simulate(&sim);
    complain("--fail %u: of %u nodes one must be left", sim.fail, sim.nodes);
    return WRONG_USAGE;
}
