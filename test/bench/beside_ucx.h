/* beside_ucx.h - for benchmarks: what ucx_perftest reaches in the same run, and medians. */
#ifndef EDDY_BENCH_BESIDE_UCX_H
#define EDDY_BENCH_BESIDE_UCX_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/base.h"

#define PAIRS_MAX 50

extern char **environ;

/* Which rows of the table are wanted; 0: all. */
struct row_filter {
    unsigned kib, flight;
};

static bool row_wanted(struct row_filter r, size_t size, unsigned flight)
{
    return (!r.kib || r.kib == size >> 10) && (!r.flight || r.flight == flight);
}

/* ---- a child with a pipe each way ---- */

struct child {
    pid_t pid;
    int in;
    FILE *out;
};

static struct child child_start(char **argv, char **env)
{
    struct child c;
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        die("pipe: %s", strerror(errno));
    c.pid = fork();
    if (!c.pid) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execvpe(argv[0], argv, env);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    c.in = in[1];
    c.out = fdopen(out[0], "r");
    return c;
}

static int child_end(struct child *c)
{
    int status;
    close(c->in);
    fclose(c->out);
    waitpid(c->pid, &status, 0);
    return status;
}

/* ---- UCX's own ---- */

/* The environment without the settings that peer_reexec made, but on the same interface. */
static char **ucx_defaults(void)
{
    size_t n = 0, k = 0;
    while (environ[n])
        n++;
    char **env = xcalloc(n + 3, sizeof(*env));
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "UCX_", 4))
            env[k++] = environ[i];
    env[k++] = "UCX_TLS=tcp";
    env[k++] = "UCX_NET_DEVICES=lo";
    return env;
}

/* MiB/s of one of its tests; last line, sixth number: overall bandwidth.  0: it did not run. */
static double perftest_once(const char *test, size_t size, unsigned flight, unsigned count,
                            char **env)
{
    static unsigned port;
    char p[16], s[16], o[16], n[16], w[16], line[512];
    double mib = 0, x[6];
    port = port ? port + 1 : 20000 + (unsigned)getpid() % 20000;
    snprintf(p, sizeof(p), "%u", port);
    snprintf(s, sizeof(s), "%zu", size);
    snprintf(o, sizeof(o), "%u", flight);
    snprintf(n, sizeof(n), "%u", count);
    snprintf(w, sizeof(w), "%u", MIN(count / 10 + 1, 200u));
    char *server[] = {"ucx_perftest", "-p", p, NULL};
    char *asker[] = {"ucx_perftest", "127.0.0.1", "-p", p,   "-t", (char *)(uintptr_t)test,
                     "-s",           s,           "-O", o,   "-n", n,
                     "-w",           w,           "-f", NULL};
    struct child a = child_start(server, env);
    for (int try = 0; try < 50 && !mib; try++) { /* until the server listens */
        usleep(20000);
        struct child b = child_start(asker, env);
        while (fgets(line, sizeof(line), b.out))
            if (sscanf(line, " %lf %lf %lf %lf %lf %lf", x, x + 1, x + 2, x + 3, x + 4, x + 5) == 6)
                mib = x[5];
        if (WEXITSTATUS(child_end(&b)) == 127)
            break;
    }
    if (!mib)
        kill(a.pid, SIGKILL);
    child_end(&a);
    return mib;
}

/* MiB/s of what a request of ASK_SIZE bytes and its answer take one after the other, as ucp_am_lat,
 * which polls without pause, has it for a message of each size. */
#define ASK_SIZE 104
static double perftest_round_trip(size_t size, unsigned count, char **env)
{
    double ask = perftest_once("ucp_am_lat", ASK_SIZE, 1, count, env);
    double answer = perftest_once("ucp_am_lat", size, 1, count, env);
    return ask && answer ? (double)size / (ASK_SIZE / ask + (double)size / answer) : 0;
}

/* ---- of several turns ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *v, unsigned n)
{
    double s[PAIRS_MAX];
    memcpy(s, v, n * sizeof(*v));
    qsort(s, n, sizeof(*s), by_value);
    return n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}

static double ratio(const double *a, const double *b, unsigned n)
{
    double r[PAIRS_MAX];
    for (unsigned i = 0; i < n; i++)
        r[i] = b[i] > 0 ? a[i] / b[i] : 0;
    return median(r, n);
}

#endif
