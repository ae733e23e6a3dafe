/* eddy_stats_screen.c - eddy stats on a terminal: painted again after each interval.
 *
 * Lines of the history are eight steps high, and scaled to the highest of what they show.  Where the terminal has no UTF-8,
 * letters stand for the blocks.
 */
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/eddy_figures.h"
#include "tools/eddy_stats.h"
#include "tools/eddy_talk.h"
#include "transport/base.h"

#define HISTORY      120
#define BAR          32
#define OPERATIONS   8
#define LABEL        10
#define SILENT_MS    2000
#define OWN          "\033[38;5;71m"  /* the store of this node: green */
#define NODES        "\033[38;5;67m"  /* other nodes: blue */
#define PFS          "\033[38;5;173m" /* the PFS, and what is not there: orange */
#define QUIET        "\033[38;5;245m"
#define BOLD         "\033[1m"
#define ALARM        "\033[1;38;5;160m"
#define PLAIN        "\033[0m"
#define NEWLINE      "\033[K\n"

enum lines { READS, WRITES, FLUSHES, PFS_OPS, MESSAGES, LINES };

static struct {
    bool on, utf8;
    double history[LINES][HISTORY]; /* the newest last */
    unsigned n;
    int rows, columns, row;
} scr;

void stats_screen_begin(void)
{
    setlocale(LC_CTYPE, "");
    scr.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    scr.on = true;
    fputs("\033[?1049h\033[?25l", stdout); /* another screen, no cursor */
}

void stats_screen_end(void)
{
    static const char end[] = "\033[?25h\033[?1049l";
    if (scr.on && write(STDOUT_FILENO, end, sizeof(end) - 1) < 0)
        return;
    scr.on = false;
}

/* ---- pieces of a line ---- */

/* False: the terminal has no row more. */
static bool next_row(void)
{
    bool room = ++scr.row < scr.rows;
    if (room)
        fputs(NEWLINE, stdout);
    return room;
}

static void bar_part(const char *color, unsigned n, const char *block)
{
    fputs(color, stdout);
    while (n--)
        fputs(block, stdout);
    fputs(PLAIN, stdout);
}

static const char *full_block(void)
{
    return scr.utf8 ? "\u2588" : "#";
}

static const char *empty_block(void)
{
    return scr.utf8 ? "\u2591" : ".";
}

/* `part` of `width`, but one step at least of what is there. */
static unsigned steps(double part, unsigned width)
{
    unsigned n = (unsigned)lround(part * width);
    return part > 0 ? MIN(MAX(n, 1u), width) : 0;
}

static void print_spark(const double *v, unsigned n, unsigned width, const char *color)
{
    static const char *const blocks[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"},
                             *const letters[] = {" ", ".", ".", ":", ":", "=", "=", "#", "#"};
    double most = 0;
    for (unsigned i = n - MIN(n, width); i < n; i++)
        most = MAX(most, v[i]);
    fputs(color, stdout);
    for (unsigned i = n - MIN(n, width); i < n; i++) {
        unsigned step = most > 0 ? steps(v[i] / most, 8) : 0;
        fputs(scr.utf8 ? blocks[step] : letters[step], stdout);
    }
    fputs(PLAIN, stdout);
}

/* ---- the parts ---- */

static void print_head(const struct stats_interval *i)
{
    char clock[16];
    time_t now = time(NULL);
    struct tm tm;
    strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
    printf(BOLD "%s" PLAIN QUIET "  session %s, node %s  %s  every %.3g s" PLAIN, json_text(i->answer, "mountpoint"),
        json_text(i->answer, "session"), i->nodes[0].node, clock, i->seconds);
    if (next_row())
        next_row();
}

static void print_cache(const struct stats_rates *r)
{
    char content[24], size[24], dirty[24];
    double room = (double)MAX(r->cache_size, (uint64_t)1), clean = (double)(r->cache_used - MIN(r->cache_used, r->dirty));
    unsigned d = steps((double)r->dirty / room, BAR), c = MIN(steps(clean / room, BAR), BAR - d);
    printf("%-*s", LABEL, "cache");
    bar_part(OWN, c, full_block());
    bar_part(PFS, d, full_block());
    bar_part(QUIET, BAR - c - d, empty_block());
    printf("  %s of files, room for %s", size_format(r->content, content, sizeof(content)),
        size_format(r->cache_size, size, sizeof(size)));
    next_row();
    printf("%-*s", LABEL, "");
    if (r->dirty)
        printf(PFS "%s in %llu file%s not on the PFS, the oldest for %llu s" PLAIN, size_format(r->dirty, dirty, sizeof(dirty)),
            (unsigned long long)r->files_dirty, r->files_dirty == 1 ? "" : "s", (unsigned long long)r->oldest_ms / 1000);
    else
        printf(QUIET "all is on the PFS" PLAIN);
    if (next_row())
        next_row();
}

static void print_line(const char *label, enum lines line, double now, bool bytes, const char *color)
{
    char buf[24];
    unsigned width = (unsigned)MAX(scr.columns - LABEL - 16, 0);
    if (bytes)
        printf("%-*s%9s/s  ", LABEL, label, figures_amount(now, buf));
    else
        printf("%-*s%9.0f/s  ", LABEL, label, now);
    print_spark(scr.history[line], scr.n, MIN(width, (unsigned)HISTORY), color);
    next_row();
}

/* Where the bytes of this interval's reads came from. */
static void print_sources(const struct stats_rates *r)
{
    char own[24], nodes[24], pfs[24];
    printf("%-*s", LABEL, "  from");
    unsigned n = r->read > 0 ? steps(r->read_peer / r->read, BAR) : 0, p = r->read > 0 ? steps(r->read_pfs / r->read, BAR) : 0;
    n = MIN(n, BAR - MIN(p, (unsigned)BAR));
    unsigned o = r->read > 0 ? BAR - n - p : 0;
    bar_part(OWN, o, full_block());
    bar_part(NODES, n, full_block());
    bar_part(PFS, p, full_block());
    bar_part(QUIET, BAR - o - n - p, empty_block());
    printf("  " OWN "own cache %s" PLAIN ", " NODES "nodes %s" PLAIN ", " PFS "PFS %s" PLAIN,
        figures_amount(r->read_local, own), figures_amount(r->read_peer, nodes), figures_amount(r->read_pfs, pfs));
    next_row();
}

static void print_operations(const struct stats_interval *i)
{
    if (!i->n_operations || scr.row + 3 >= scr.rows)
        return;
    next_row();
    printf(QUIET "%-*s  %9s  %12s  %10s  %10s" PLAIN, 2 * LABEL, "operations here", "calls/s", "waited", "median", "99 %");
    for (size_t k = 0; k < MIN(i->n_operations, (size_t)OPERATIONS) && next_row(); k++) {
        const struct stats_operation *p = &i->operations[k];
        printf("  %-*s  %9.0f  %10.3f s  %7.3f ms  %7.3f ms", 2 * LABEL - 2, p->name, p->calls, p->part * i->seconds, p->median_ms,
            p->p99_ms);
    }
    next_row();
}

static void print_node(const struct stats_rates *r, int width, double most)
{
    char hits[16] = "-", read[24], written[24], flushed[24], dirty[24];
    if (r->error) {
        printf("  %-*s  " ALARM "%s" PLAIN, width, r->node, r->error);
        return;
    }
    if (stats_hits(r) >= 0)
        snprintf(hits, sizeof(hits), "%.0f %%", 100 * stats_hits(r));
    unsigned o = steps(r->read_local / most, 12), n = steps(r->read_peer / most, 12), p = steps(r->read_pfs / most, 12);
    printf("  %-*s %9s/s %6s %9s/s %9s/s %11s  ", width, r->node, figures_amount(r->read, read), hits,
        figures_amount(r->written, written), figures_amount(r->flushed, flushed),
        size_format(r->dirty, dirty, sizeof(dirty)));
    bar_part(OWN, o, full_block());
    bar_part(NODES, MIN(n, 12 - o), full_block());
    bar_part(PFS, MIN(p, 12 - MIN(12, o + n)), full_block());
}

static void print_nodes(const struct stats_interval *i)
{
    double most = 1;
    int width = LABEL;
    for (size_t k = 0; k < i->n; k++) {
        most = MAX(most, i->nodes[k].read);
        width = MAX(width, (int)strlen(i->nodes[k].node));
    }
    if (scr.row + 3 >= scr.rows || !next_row())
        return;
    printf(QUIET "%-*s %11s %6s %11s %11s %11s  %s" PLAIN, width + 2, "nodes", "read", "hits", "write", "flush", "not on PFS", "reads");
    for (size_t k = 0; k < i->n && next_row(); k++)
        print_node(&i->nodes[k], width, most);
    next_row();
}

static void print_alarms(const struct stats_rates *r)
{
    if (r->pfs_silent_ms >= SILENT_MS && next_row())
        printf(ALARM "the PFS has not answered for %llu s" PLAIN, (unsigned long long)r->pfs_silent_ms / 1000);
    if (r->suspected && next_row())
        printf(ALARM "%llu node%s of the session do%s not answer" PLAIN, (unsigned long long)r->suspected, r->suspected == 1 ? "" : "s",
            r->suspected == 1 ? "es" : "");
    if (r->files_failed && next_row())
        printf(ALARM "%llu files could not be flushed: \"eddy status\" names them" PLAIN, (unsigned long long)r->files_failed);
    if (r->passthrough_files && next_row())
        printf(QUIET "%llu open file%s passthrough: what the kernel reads and writes of them by itself is not counted" PLAIN,
            (unsigned long long)r->passthrough_files, r->passthrough_files == 1 ? " has" : "s have");
}

static void note(const struct stats_rates *r)
{
    const double now[LINES] = {r->read, r->written, r->flushed, r->pfs_ops, r->messages};
    if (scr.n == HISTORY) {
        for (unsigned k = 0; k < LINES; k++)
            memmove(scr.history[k], scr.history[k] + 1, (HISTORY - 1) * sizeof(double));
        scr.n--;
    }
    for (unsigned k = 0; k < LINES; k++)
        scr.history[k][scr.n] = now[k];
    scr.n++;
}

static void measure_terminal(void)
{
    struct winsize w;
    bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_row && w.ws_col;
    scr.rows = known ? w.ws_row : 24;
    scr.columns = known ? w.ws_col : 80;
    scr.row = 0;
}

void stats_screen(const struct stats_interval *i, bool session)
{
    const struct stats_rates *r = session ? &i->all : &i->nodes[0];
    measure_terminal();
    note(r);
    fputs("\033[H\033[?7l", stdout); /* what does not fit into a line is cut off */
    print_head(i);
    print_cache(r);
    print_line("read", READS, r->read, true, OWN);
    print_sources(r);
    print_line("write", WRITES, r->written, true, OWN);
    print_line("flush", FLUSHES, r->flushed, true, PFS);
    print_line("PFS calls", PFS_OPS, r->pfs_ops, false, PFS);
    print_line("messages", MESSAGES, r->messages, false, NODES);
    print_operations(i);
    if (session)
        print_nodes(i);
    print_alarms(r);
    fputs("\033[K\033[J\033[?7h", stdout);
}
