/* eddy_report.c - eddy report: what a session did, from the reports that its nodes wrote when they ended (fs/daemon/report.c). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/eddy.h"
#include "tools/eddy_report.h"
#include "tools/eddy_talk.h"
#include "transport/textfile.h"

#define FILE_MAX (64u << 20)

uint64_t report_figure(const struct report_node *r, const char *name)
{
    return json_u64(json_object_get(r->json, "figures"), name);
}

uint64_t report_sum(const struct report_set *s, const char *name)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += report_figure(&s->nodes[i], name);
    return sum;
}

/* ---- reading ---- */

/* What does not look like a report is none: later parts take its texts and numbers as they are. */
static int add_report(struct report_set *s, json_t *json, const char *path)
{
    if (strcmp(json_text(json, "format"), "eddyfs report 1") || !*json_text(json, "node") ||
        !json_is_object(json_object_get(json, "figures"))) {
        complain("%s: is not a report of eddyfs, or one of a newer version", path);
        json_decref(json);
        return -EPROTO;
    }
    s->nodes = xrealloc(s->nodes, (s->n + 1) * sizeof(*s->nodes));
    s->nodes[s->n++] = (struct report_node){
        .json = json,
        .node = json_text(json, "node"),
        .began = (double)json_u64(json_object_get(json, "history"), "began"),
        .ended = (double)json_u64(json, "ended"),
    };
    return 0;
}

static int read_report(struct report_set *s, int dirfd, const char *name, const char *path)
{
    char *text;
    size_t len;
    json_error_t why;
    int err = textfile_read(dirfd, name, FILE_MAX, &text, &len);
    if (err) {
        complain("%s: cannot be read: %s", path, err == -EPROTO ? "it is no file" : strerror(-err));
        return err;
    }
    json_t *read = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (!read) {
        complain("%s: is not a report of eddyfs: line %d: %s", path, why.line, why.text);
        return -EPROTO;
    }
    json_t *printable = json_printable(read);
    json_decref(read);
    return add_report(s, printable, path);
}

static bool is_report_name(const char *name)
{
    size_t len = strlen(name);
    return !strncmp(name, "eddyfs-", 7) && len > 5 && !strcmp(name + len - 5, ".json");
}

static int read_directory(struct report_set *s, const char *path)
{
    DIR *d = opendir(path);
    int err = d ? 0 : -errno;
    if (err)
        complain("%s: %s", path, strerror(-err));
    for (struct dirent *e; !err && (e = readdir(d));)
        if (is_report_name(e->d_name))
            err = read_report(s, dirfd(d), e->d_name, e->d_name);
    if (d)
        closedir(d);
    return err;
}

static int read_path(struct report_set *s, const char *path)
{
    struct stat st;
    if (stat(path, &st)) {
        complain("%s: %s", path, strerror(errno));
        return -errno;
    }
    return S_ISDIR(st.st_mode) ? read_directory(s, path) : read_report(s, AT_FDCWD, path, path);
}

/* ---- one session ---- */

static int by_name(const void *a, const void *b)
{
    const struct report_node *x = a, *y = b;
    int names = strcmp(x->node, y->node);
    return names ? names : x->began < y->began ? -1 : x->began > y->began;
}

/* Of the session of that name, or of that which ended last. */
static void choose_session(struct report_set *s, const char *session)
{
    size_t last = 0, n = 0;
    for (size_t i = 1; i < s->n; i++)
        if (s->nodes[i].ended > s->nodes[last].ended)
            last = i;
    char *name = xstrdup(session ? session : s->n ? json_text(s->nodes[last].json, "session") : "");
    for (size_t i = 0; i < s->n; i++) {
        if (!strcmp(json_text(s->nodes[i].json, "session"), name))
            s->nodes[n++] = s->nodes[i];
        else
            json_decref(s->nodes[i].json);
    }
    free(name);
    s->n = n;
    qsort(s->nodes, n, sizeof(*s->nodes), by_name);
    for (size_t i = 0; i < n; i++) {
        s->began = i ? MIN(s->began, s->nodes[i].began) : s->nodes[i].began;
        s->ended = MAX(s->ended, s->nodes[i].ended);
    }
}

/* ---- as text ---- */

static void print_advice(void *arg, const char *what, const char *todo)
{
    bool *first = arg;
    if (*first)
        puts("\nwhat to change");
    *first = false;
    printf("  - %s\n    %s\n", what, todo);
}

static void print_nodes(const struct report_set *s)
{
    char own[24], peer[24], pfs[24], written[24], flushed[24];
    printf("\n%-16s %12s %12s %12s %12s %12s\n", "node", "own cache", "nodes", "PFS", "written", "flushed");
    for (size_t i = 0; i < s->n; i++) {
        const struct report_node *r = &s->nodes[i];
        printf("%-16s %12s %12s %12s %12s %12s\n", r->node, size_format(report_figure(r, "read_local_bytes"), own, sizeof(own)),
               size_format(report_figure(r, "read_peer_bytes"), peer, sizeof(peer)),
               size_format(report_figure(r, "read_pfs_bytes"), pfs, sizeof(pfs)),
               size_format(report_figure(r, "written_bytes"), written, sizeof(written)),
               size_format(report_figure(r, "flushed_bytes"), flushed, sizeof(flushed)));
    }
}

static void print_text(const struct report_set *s)
{
    char began[TIME_TEXT];
    bool first = true;
    uint64_t left = 0;
    time_text(s->began, began);
    for (size_t i = 0; i < s->n; i++)
        left += json_u64(s->nodes[i].json, "not_on_pfs_count");
    printf("session %s, %zu report%s, from %s, %.0f s\n", json_text(s->nodes[0].json, "session"), s->n, s->n == 1 ? "" : "s", began,
           s->ended - s->began);
    if (left)
        printf("%" PRIu64 " files are NOT on the PFS\n", left);
    else
        puts("everything is on the PFS");
    print_nodes(s);
    report_advise(s, print_advice, &first);
}

/* ---- the command ---- */

static int write_html(const struct report_set *s, const char *path)
{
    bool out = !strcmp(path, "-");
    int fd = out ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); /* paths are in it */
    FILE *f = out ? stdout : fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) {
        complain("%s: %s", path, strerror(errno));
        return FAILED;
    }
    report_html(s, f);
    if (ferror(f) | (out ? fflush(f) : fclose(f))) {
        complain("%s: cannot be written", path);
        return FAILED;
    }
    return DONE;
}

static void free_set(struct report_set *s)
{
    for (size_t i = 0; i < s->n; i++)
        json_decref(s->nodes[i].json);
    free(s->nodes);
}

int report_main(int argc, char **argv)
{
    static const struct option options[] = {{"html", required_argument, NULL, 'H'},
                                            {"session", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *html = NULL, *session = NULL;
    struct report_set s = {0};
    for (int c; (c = next_option(argc, argv, "h", options)) != -1;) {
        if (c == 'h')
            return help_of("report");
        if (c != 'H' && c != 's')
            return usage_of("report");
        html = c == 'H' ? optarg : html;
        session = c == 's' ? optarg : session;
    }
    if (optind == argc)
        return usage_of("report");
    int err = 0, code = FAILED;
    for (int i = optind; i < argc && !err; i++)
        err = read_path(&s, argv[i]);
    if (!err)
        choose_session(&s, session);
    if (!err && !s.n)
        complain("no report%s%s is there: eddyfs --report DIR writes one when a mount ends", session ? " of session " : "",
                 session ? session : "");
    else if (!err && html)
        code = write_html(&s, html);
    else if (!err) {
        print_text(&s);
        code = DONE;
    }
    free_set(&s);
    return code;
}
