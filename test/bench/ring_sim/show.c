/* show.c - what a simulation gave: a table, JSON, a plot. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/bench/ring_sim/simulation.h"
#include "transport/base.h"

/* ---- the answer ---- */

static void name_rival(const struct rival *r, char name[32])
{
    if (r->points)
        snprintf(name, 32, "%s %u", r->scheme->name, r->points);
    else
        snprintf(name, 32, "%s", r->scheme->name);
}

static void print_figure(const struct simulation *s, const struct rival *r, unsigned figure)
{
    double mean = r->sum[figure] / s->trials;
    char text[32];
    int digits = mean < 10 ? 3 : 1;
    if (figures[figure].worst == NONE)
        snprintf(text, sizeof(text), "%.*f", digits, mean);
    else
        snprintf(text, sizeof(text), "%.*f (%.*f)", digits, mean, digits, r->worst[figure]);
    printf(" %17s", text);
}

void show_table(const struct simulation *s, const struct rival *rivals, unsigned n)
{
    char name[32];
    printf("%u nodes, %u files, %u fail%s, %u trials: means, and in brackets the worst trial\n\n",
           s->nodes, s->files, s->fail, s->fail == 1 ? "s" : "", s->trials);
    printf("%-34s", "");
    for (unsigned j = 0; j < n; j++) {
        name_rival(&rivals[j], name);
        printf(" %17s", name);
    }
    for (unsigned i = 0; i < FIGURES_N; i++) {
        printf("\n%-34s", figures[i].text);
        for (unsigned j = 0; j < n; j++)
            print_figure(s, &rivals[j], i);
    }
    printf("\n%-34s", "look-up, ns");
    for (unsigned j = 0; j < n; j++)
        printf(" %17.1f", rivals[j].look_up_ns);
    printf("\n%-34s", "  to that of ring 100");
    for (unsigned j = 0; j < n; j++)
        printf(" %17.2f", rivals[j].look_up_to_base);
    printf("\n%-34s", "table, bytes");
    for (unsigned j = 0; j < n; j++)
        printf(" %17zu", rivals[j].bytes);
    printf("\n");
}

static json_t *json_of(const struct simulation *s, const struct rival *r)
{
    json_t *o = json_object();
    json_object_set_new(o, "scheme", json_string(r->scheme->name));
    if (r->points)
        json_object_set_new(o, "vnodes", json_integer(r->points));
    for (unsigned i = 0; i < FIGURES_N; i++) {
        json_t *f = json_object();
        json_object_set_new(f, "mean", json_real(r->sum[i] / s->trials));
        if (figures[i].worst != NONE)
            json_object_set_new(f, "worst", json_real(r->worst[i]));
        json_object_set_new(o, figures[i].key, f);
    }
    json_object_set_new(o, "look_up_ns", json_real(r->look_up_ns));
    json_object_set_new(o, "look_up_to_ring_100", json_real(r->look_up_to_base));
    json_object_set_new(o, "bytes", json_integer((json_int_t)r->bytes));
    return o;
}

void show_json(const struct simulation *s, const struct rival *rivals, unsigned n)
{
    json_t *o = json_object(), *list = json_array();
    json_object_set_new(o, "nodes", json_integer(s->nodes));
    json_object_set_new(o, "files", json_integer(s->files));
    json_object_set_new(o, "fail", json_integer(s->fail));
    json_object_set_new(o, "trials", json_integer(s->trials));
    for (unsigned j = 0; j < n; j++)
        json_array_append_new(list, json_of(s, &rivals[j]));
    json_object_set_new(o, "schemes", list);
    json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(o);
}

/* ---- the plot ---- */

static void write_loads(FILE *to, const double *loads, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        fprintf(to, "%u %.4f\n", i + 1, loads[i]);
    fprintf(to, "e\n");
}

/* In a string of gnuplot's with single quotes. */
static void write_quoted(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++)
        fprintf(to, *text == '\'' ? "''" : "%c", *text);
    fputc('\'', to);
}

static void write_load_plot(FILE *to, const struct simulation *s, const struct rival *rivals,
                            unsigned n)
{
    char name[32];
    fprintf(to,
            "set title 'files per node / mean, before (lines) and after %u fail (dashes)'\n"
            "set xlabel 'nodes, by load'\nset key below\nplot",
            s->fail);
    for (unsigned j = 0; j < n; j++) {
        name_rival(&rivals[j], name);
        fprintf(to, "%s '-' with lines lt %u title '%s', '-' with lines lt %u dt 2 notitle",
                j ? "," : "", j + 1, name, j + 1);
    }
    fprintf(to, "\n");
    for (unsigned j = 0; j < n; j++) {
        write_loads(to, rivals[j].before, s->nodes);
        write_loads(to, rivals[j].after, s->nodes - s->fail);
    }
}

/* As in fig. 6 (b) of the paper on FT-Cache. */
static void write_receiver_plot(FILE *to, const struct simulation *s, const struct rival *rivals,
                                unsigned n)
{
    char name[32];
    fprintf(to,
            "set title 'receivers of the files of failed nodes, %u trials'\n"
            "unset xlabel\nset xtics rotate by -30\nset yrange [0:*]\nset style fill solid 0.5\n"
            "set boxwidth 0.6\n"
            "plot '-' using 1:3:xtic(2) with boxes notitle, '-' with points pt 2 title "
            "'by chance'\n",
            s->trials);
    for (unsigned j = 0; j < n; j++) {
        name_rival(&rivals[j], name);
        fprintf(to, "%u \"%s\" %.2f\n", j, name, rivals[j].sum[FIGURE_receivers] / s->trials);
    }
    fprintf(to, "e\n");
    for (unsigned j = 0; j < n; j++)
        fprintf(to, "%u %.2f\n", j,
                rivals[j].sum[FIGURE_receivers] / rivals[j].sum[FIGURE_receivers_to_chance]);
    fprintf(to, "e\n");
}

struct plot {
    pid_t gnuplot;
    FILE *to;
};

int plot_begin(struct plot **out)
{
    posix_spawn_file_actions_t actions;
    char *argv[] = {"gnuplot", NULL};
    pid_t pid;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC))
        return -errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    int err = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[0]);
    if (err) {
        close(fds[1]);
        return -err;
    }
    signal(SIGPIPE, SIG_IGN);
    *out = xcalloc(1, sizeof(**out));
    **out = (struct plot){pid, fdopen(fds[1], "w")};
    return 0;
}

int plot_end(struct plot *p, const struct simulation *s, const struct rival *rivals, unsigned n)
{
    int status;
    fprintf(p->to, "set terminal svg size 1400,500\nset output ");
    write_quoted(p->to, s->plot);
    fprintf(p->to, "\nset multiplot layout 1,2\n");
    write_load_plot(p->to, s, rivals, n);
    write_receiver_plot(p->to, s, rivals, n);
    fprintf(p->to, "unset multiplot\n");
    bool written = !fclose(p->to);
    bool made = waitpid(p->gnuplot, &status, 0) == p->gnuplot && !status && written;
    if (!made)
        complain("%s: gnuplot could not make it", s->plot);
    free(p);
    return made ? DONE : FAILED;
}
