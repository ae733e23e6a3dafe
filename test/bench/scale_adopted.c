/* scale_adopted.c - what the reports of one node cost it when a view is adopted, by the number of
 * members and of its claims: finding out whom to tell of which, and the messages themselves.
 *
 *   scale_adopted [--nodes N]... [--claims C]      (default: 10, 1000, 10000; 100000)
 *
 * A Markdown row for each N, in processor time of the network thread, of which T_suspect (3 s) must
 * not be reached.  Messages are made and read, not sent: what UCX takes comes on top.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "placement/claims/claim_own.h"
#include "placement/claims/locks_own.h"
#include "placement/claims/reports.h"
#include "placement/ring/ring.h"
#include "transport/message.h"
#include "transport/view.h"

#define NODES_MAX  16384
#define CLAIMS_MAX 10000000

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct view *make_view(uint32_t n)
{
    struct view *v = xcalloc(1, sizeof(*v));
    v->number = 1;
    v->nmembers = n;
    v->members = xcalloc(n, sizeof(*v->members));
    for (uint32_t i = 0; i < n; i++) {
        v->members[i].id = ((uint64_t)i + 1) * (UINT64_MAX / (n + 1)); /* sorted */
        v->members[i].incarnation = 1;
        v->members[i].weight = 819200;
    }
    return v;
}

/* A node that has been a member for a while: its ring has a table. */
static void make_table(const struct view *v)
{
    while (!ring_has_table(ring_of(v)))
        view_home(v, (struct fid){1, 2});
}

static void must(int err)
{
    if (err)
        die("a report cannot be written and read");
}

static size_t write_and_read(const struct msg *m)
{
    struct msg *again;
    void *wire;
    size_t len;
    must(msg_encode(m, &wire, &len));
    must(msg_decode(wire, len, &again, NULL));
    msg_free(again);
    free(wire);
    return len;
}

static void measure(uint32_t nodes, uint32_t claims)
{
    const struct view *v = make_view(nodes);
    double list_ms, message_ms = 0, t;
    size_t bytes = 0, told = 0;
    make_table(v);
    own_adopted(v->number);
    t = cpu_ms();
    void *report = reports_make(v, false);
    list_ms = cpu_ms() - t;
    for (uint32_t i = 0, piece = 0; i < nodes;) {
        struct msg *m = msg_new(MSG_ADOPTED);
        m->adopted.piece = piece;
        t = cpu_ms();
        reports_fill(report, v->members[i].id, m);
        list_ms += cpu_ms() - t;
        t = cpu_ms();
        bytes += write_and_read(m);
        message_ms += cpu_ms() - t;
        told += m->adopted.claims.n;
        piece = m->adopted.more ? piece + 1 : 0;
        i += !m->adopted.more;
        msg_free(m);
    }
    reports_free(report);
    if (told != claims)
        die("%zu claims of %u were told", told, claims);
    printf("| %u | %u | %.1f | %.1f | %.1f |\n", nodes, claims, list_ms, message_ms,
           (double)bytes / 1024);
    fflush(stdout);
}

static int usage(void)
{
    fprintf(stderr, "usage: scale_adopted [--nodes N]... [--claims C]   (N: 1 to %d, C: 0 to %d)\n",
            NODES_MAX, CLAIMS_MAX);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"nodes", required_argument, NULL, 'n'}, {"claims", required_argument, NULL, 'c'}, {0}};
    uint32_t nodes[16] = {10, 1000, 10000}, n = 0, claims = 100000;
    for (int o; (o = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        int value = optarg ? atoi(optarg) : 0;
        if (o == 'n' && value > 0 && value <= NODES_MAX && n < ARRAY_LEN(nodes))
            nodes[n++] = (uint32_t)value;
        else if (o == 'c' && value >= 0 && value <= CLAIMS_MAX)
            claims = (uint32_t)value;
        else
            return usage();
    }
    own_start();
    locks_own_start();
    for (uint64_t i = 0; i < claims; i++)
        own_add((struct fid){i * 0x9e3779b97f4a7c15u, i}, 1, i + 1, 0);
    printf("| nodes | claims | whom to tell of which, ms | the messages, ms | their bytes, KiB |\n"
           "|--:|--:|--:|--:|--:|\n");
    for (uint32_t i = 0; i < (n ? n : 3); i++)
        measure(nodes[i], claims);
    own_stop();
    return 0;
}
