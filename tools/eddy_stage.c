/* eddy_stage.c - eddy stage: files are brought before they are read; eddy unstage.
 *
 * The daemon walks the directories.  It names the symbolic links that it meets, and ends each round
 * with "round": then it hears where those lead that lead into the mount, until there is nothing
 * more.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/eddy_files.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_stage.h"
#include "tools/eddy_talk.h"

#define ROUND_LINES 100 /* of paths that are sent in one round */

struct staging {
    const struct stage_asked *asked;
    struct paths paths;
    struct progress progress;
    json_t *has; /* --check: what the daemon said of each file */
    json_t *end; /* its last line, or NULL */
    unsigned lines; /* of this round */
    bool more;      /* another line of it follows */
};

/* ---- asking ---- */

/* Another line of this round; the daemon keeps the paths of one round at a time. */
static json_t *next_line(struct staging *g)
{
    json_t *list = paths_next_part(&g->paths);
    g->more = ++g->lines < ROUND_LINES && paths_left(&g->paths);
    return json_pack("{s:o, s:b}", "paths", list, "more", g->more);
}

static int send_rest(struct staging *g, struct talk *t)
{
    int err = 0;
    while (!err && g->more)
        err = talk_more(t, next_line(g));
    return err;
}

/* A number that a script may take: it stands alone on its line. */
static void show_id(struct staging *g, const json_t *line)
{
    if (!g->asked->wait && !g->asked->quiet && !g->asked->json) {
        printf("%s\n", json_text(line, "id"));
        fflush(stdout);
    }
}

static int take_line(struct staging *g, struct talk *t, const json_t *line)
{
    const json_t *file = json_object_get(line, "file"), *link = json_object_get(line, "link");
    const json_t *has = json_object_get(line, "has");
    if (file)
        paths_failed_below(&g->paths, json_text(file, "path"), json_text(file, "error"));
    else if (link)
        paths_add_link(&g->paths, json_string_value(link));
    else if (has)
        json_array_append(g->has, (json_t *)has);
    else if (json_object_get(line, "id") && !json_object_get(line, "end"))
        show_id(g, line);
    else if (json_object_get(line, "total_bytes") && !g->asked->quiet)
        progress_show(&g->progress, json_u64(line, "done_bytes"), json_u64(line, "total_bytes"));
    if (!json_is_true(json_object_get(line, "round")))
        return 0;
    g->lines = 0;
    int err = talk_more(t, next_line(g));
    return err ? err : send_rest(g, t);
}

static int hear(struct staging *g, struct talk *t)
{
    bool last = false;
    int err = 0;
    while (!err && !last) {
        json_t *line;
        err = flush_next_line(&g->paths.mount, t, g->asked->deadline, &line, &last);
        if (err)
            break;
        err = take_line(g, t, line);
        if (last)
            g->end = json_incref(line);
        json_decref(line);
    }
    progress_clear();
    if (!err && json_object_get(g->end, "error")) {
        complain("%s: %s", g->paths.mount.mountpoint, json_text(g->end, "error"));
        err = json_object_get(g->end, "fits") ? -EFBIG : -EREMOTEIO;
    }
    return err;
}

static int ask(struct staging *g)
{
    static const char *const requests[] = {
        [STAGE_DO] = "stage", [STAGE_CHECK] = "stage_check", [STAGE_DROP] = "unstage"};
    const struct stage_asked *a = g->asked;
    struct talk *t;
    json_t *args = next_line(g);
    json_object_set_new(args, "spread", json_boolean(a->spread));
    json_object_set_new(args, "wait", json_boolean(a->wait));
    json_object_set_new(args, "all", json_boolean(a->all));
    json_object_set_new(args, "pin_ms", json_integer(a->pin_ms));
    int err = talk_begin(&g->paths.mount, requests[a->what], args, &t);
    if (err)
        return err;
    err = send_rest(g, t);
    if (!err)
        err = hear(g, t);
    talk_end(t);
    return err;
}

/* ---- what is shown ---- */

static void complain_of(const struct mount_entry *e, int err)
{
    if (err == -ETIMEDOUT)
        complain("%s: the time is over, and not all is there: what came stays", e->mountpoint);
    else if (err == -ECONNREFUSED || err == -ECONNRESET)
        complain("%s: %s", e->mountpoint,
                 err == -ECONNRESET ? "the daemon has ended" : "no daemon runs");
    else if (err != -EREMOTEIO && err != -EFBIG)
        complain("%s: %s", e->mountpoint, talk_error(NULL, err));
}

static void show_has(const struct staging *g)
{
    size_t i, k;
    json_t *file, *node;
    char size[24];
    json_array_foreach(g->has, i, file)
    {
        printf("%s: %s:", json_text(file, "path"),
               size_format(json_u64(file, "bytes"), size, sizeof(size)));
        json_t *nodes = json_object_get(file, "nodes");
        json_array_foreach(nodes, k, node)
        {
            bool all = json_u64(node, "bytes") >= json_u64(file, "bytes");
            printf("%s %s%s%s", k ? "," : "",
                   all ? "all" : size_format(json_u64(node, "bytes"), size, sizeof(size)), " at ",
                   json_text(node, "node"));
        }
        puts(json_array_size(nodes) ? "" : " at no node");
    }
}

static void show_fit(const json_t *end)
{
    char a[24], b[24], c[24], d[24];
    bool fits = json_is_true(json_object_get(end, "fits"));
    printf("%llu files, %s, of which %s are where they are to be; it %s",
           (unsigned long long)json_u64(end, "files"),
           size_format(json_u64(end, "bytes"), a, sizeof(a)),
           size_format(json_u64(end, "here"), b, sizeof(b)), fits ? "fits" : "does not fit");
    if (json_object_get(end, "node"))
        printf(": node %s keeps %s of it, and has room for %s", json_text(end, "node"),
               size_format(json_u64(end, "needed"), c, sizeof(c)),
               size_format(json_u64(end, "room"), d, sizeof(d)));
    putchar('\n');
}

/* By "eddy stage --cancel", or as the daemon is ending. */
static bool was_cancelled(const struct staging *g)
{
    return json_is_true(json_object_get(g->end, "cancelled"));
}

static void show_text(const struct staging *g, int err)
{
    size_t failed = json_array_size(g->paths.failed);
    if (g->asked->what == STAGE_CHECK && !err) {
        show_has(g);
        show_fit(g->end);
    }
    paths_print(&g->paths);
    if (was_cancelled(g))
        complain("%s: the stage was cancelled, and not all is there: what came stays", g->paths.mount.mountpoint);
    if (failed)
        complain("%zu path%s failed, with the reasons above", failed, failed == 1 ? "" : "s");
}

static void show_json(const struct staging *g, int code)
{
    const struct paths *p = &g->paths;
    json_t *o = g->end ? json_copy(g->end) : json_object();
    json_object_del(o, "end");
    json_object_set_new(o, "mountpoint",
                        p->mount.mountpoint ? json_string(p->mount.mountpoint) : json_null());
    json_object_set_new(o, "code", json_integer(code));
    json_object_set(o, "failed", p->failed);
    json_object_set(o, "skipped", p->skipped);
    if (g->asked->what == STAGE_CHECK)
        json_object_set(o, "has", g->has);
    json_dumpf(o, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(o);
}

static int code_of(const struct staging *g, int err)
{
    size_t failed = json_array_size(g->paths.failed);
    if (err == -EFBIG)
        return DOES_NOT_FIT;
    if (err)
        return err == -ETIMEDOUT ? TIMED_OUT : FAILED;
    if (failed)
        return paths_any_good(&g->paths) ? PARTLY : FAILED;
    if (was_cancelled(g))
        return PARTLY;
    return g->asked->what == STAGE_CHECK && !json_is_true(json_object_get(g->end, "fits"))
               ? DOES_NOT_FIT
               : DONE;
}

/* ---- the paths ---- */

static int add_path(void *paths, const char *path)
{
    paths_add(paths, path);
    return 0;
}

static int add_paths(struct staging *g, char **names, int n)
{
    paths_begin(&g->paths, names, n);
    return g->asked->list && list_each(g->asked->list, g->asked->end, add_path, &g->paths) ? -EREMOTEIO : 0;
}

static int run(char **names, int n, const struct stage_asked *asked)
{
    struct staging g = {.asked = asked, .has = json_array(), .progress.what = "staging"};
    int err = add_paths(&g, names, n);
    if (!err && !paths_left(&g.paths) && !json_array_size(g.paths.failed)) {
        complain("no paths came");
        err = -EREMOTEIO;
    }
    if (!err && paths_left(&g.paths)) /* else all names have failed */
        err = ask(&g);
    int code = code_of(&g, err);
    if (err)
        complain_of(&g.paths.mount, err);
    if (asked->json)
        show_json(&g, code);
    else
        show_text(&g, err);
    paths_end(&g.paths);
    json_decref(g.has);
    json_decref(g.end);
    return code;
}

/* ---- the commands ---- */

/* A number of seconds, or of what follows it: s, m, h, d. */
static int parse_duration(const char *text, int64_t *ms)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'\0', 1000}, {'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (end != text && *end == units[i].unit && (!*end || !end[1]) && !errno && n > 0 &&
            n <= INT64_MAX / units[i].ms) {
            *ms = n * units[i].ms;
            return 0;
        }
    return -EINVAL;
}

#define wrong(...) (complain(__VA_ARGS__), -EINVAL)

static int take_option(int c, struct stage_asked *a)
{
    static const char options[] = "CSX";
    const char *what = c > 0 && c < 128 ? strchr(options, c) : NULL;
    if (what && a->what != STAGE_DO)
        return wrong("--check, --status and --cancel: give one of them");
    if (what)
        a->what = c == 'C' ? STAGE_CHECK : c == 'S' ? STAGE_STATUS : STAGE_CANCEL;
    a->wait |= c == 'w' || c == 't';
    a->quiet |= c == 'q';
    a->json |= c == 'j';
    if (c == 'f')
        a->list = optarg;
    if (c == '0')
        a->end = '\0';
    if (c == 'p') {
        a->pin_ms = -1;
        return optarg && parse_duration(optarg, &a->pin_ms) ? wrong("--pin=%s: give a time above 0, like 90s, 30m, 2h or 1d", optarg) : 0;
    }
    return c == 't' && parse_timeout(optarg, &a->deadline) ? wrong("--timeout %s: give a number of seconds", optarg) : 0;
}

/* "--pin 2h": the time is taken for a path. */
static bool is_time_of_pin(const struct stage_asked *a, const char *path)
{
    int64_t ms;
    return path && a->pin_ms == -1 && !parse_duration(path, &ms) && access(path, F_OK);
}

/* 1: help was wanted; -EINVAL: complained of; -ENOENT: something lacks. */
static int parse(int argc, char **argv, struct stage_asked *a)
{
    static const struct option options[] = {
        {"here", no_argument, NULL, 'l'},          {"spread", no_argument, NULL, 's'},
        {"pin", optional_argument, NULL, 'p'},     {"wait", no_argument, NULL, 'w'},
        {"timeout", required_argument, NULL, 't'}, {"quiet", no_argument, NULL, 'q'},
        {"json", no_argument, NULL, 'j'},          {"check", no_argument, NULL, 'C'},
        {"status", no_argument, NULL, 'S'},        {"cancel", no_argument, NULL, 'X'},
        {"help", no_argument, NULL, 'h'},          {0}};
    bool here = false;
    for (int c; (c = next_option(argc, argv, "f:0h", options)) != -1;) {
        if (c == 'h')
            return 1;
        if (c == '?')
            return -ENOENT;
        if (take_option(c, a))
            return -EINVAL;
        here |= c == 'l';
        a->spread |= c == 's';
    }
    bool asks = a->what == STAGE_STATUS || a->what == STAGE_CANCEL;
    if (here && a->spread)
        return wrong("--here and --spread: give one of them");
    if (asks && a->list)
        return wrong("--status and --cancel: give IDs or paths, no list");
    if (is_time_of_pin(a, argv[optind]))
        return wrong("did you mean --pin=%s?", argv[optind]);
    return optind == argc && !a->list ? -ENOENT : 0;
}

int stage_main(int argc, char **argv)
{
    struct stage_asked asked = {.end = '\n', .deadline = NO_DEADLINE};
    int code = parse(argc, argv, &asked);
    if (code)
        return code > 0 ? help_of("stage") : code == -EINVAL ? WRONG_USAGE : usage_of("stage");
    await_interrupt("eddy: interrupted: what came stays in the cache; the same command goes on "
                    "with the rest\n");
    if (asked.what == STAGE_STATUS || asked.what == STAGE_CANCEL)
        return stage_ask_each(argv + optind, argc - optind, &asked);
    return run(argv + optind, argc - optind, &asked);
}

int unstage_main(int argc, char **argv)
{
    static const struct option options[] = {{"all", no_argument, NULL, 'a'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct stage_asked asked = {.what = STAGE_DROP, .deadline = NO_DEADLINE};
    for (int c; (c = next_option(argc, argv, "h", options)) != -1;) {
        if (c == 'h')
            return help_of("unstage");
        if (c == '?')
            return usage_of("unstage");
        asked.all |= c == 'a';
        asked.json |= c == 'j';
    }
    static char *here[] = {".", NULL};
    int n = argc - optind;
    if (asked.all ? n > 1 : !n)
        return usage_of("unstage");
    return n ? run(argv + optind, n, &asked) : run(here, 1, &asked);
}
