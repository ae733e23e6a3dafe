/* eddy_paths.c - the PATHs of a command: in which mount they are, links, and those that failed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/eddy.h"
#include "tools/eddy_files.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_paths.h"
#include "transport/base.h"

#define PATH_SENT_MAX                                                                              \
    (CONTROL_LINE_MAX / 4) /* so that a line of JSON has room for it, whatever it consists of */

static void note(json_t *list, const char *shown, const char *reason)
{
    json_t *o = json_object();
    json_object_set_new(o, "path", json_string(shown));
    json_object_set_new(o, "reason", json_string(reason));
    json_array_append_new(list, o);
}

static void failed_name(struct paths *p, const char *name, const char *reason)
{
    char *shown = control_escape(name);
    note(p->failed, shown, reason);
    free(shown);
}

/* With the mount's path before it; path: escaped. */
static char *shown_below(const struct paths *p, const char *path)
{
    char *mount = control_escape(p->mount.mountpoint), *shown;
    if (asprintf(&shown, "%s%s%s", mount, *path ? "/" : "", path) < 0)
        die("out of memory for a path");
    free(mount);
    return shown;
}

void paths_failed_below(struct paths *p, const char *path, const char *reason)
{
    char *shown = shown_below(p, path);
    p->good -= json_is_true(json_object_get(p->seen, path));
    note(p->failed, shown, reason);
    free(shown);
}

/* Is it, or a directory above it, one of those that were added before? */
static bool is_covered(const struct paths *p, const char *path)
{
    char *above = xstrdup(path);
    bool covered = json_object_get(p->seen, "") || json_object_get(p->seen, above);
    for (char *slash; !covered && (slash = strrchr(above, '/'));) {
        *slash = '\0';
        covered = json_object_get(p->seen, above);
    }
    free(above);
    return covered;
}

/* path: escaped. */
static void add(struct paths *p, const char *path, bool named)
{
    if (is_covered(p, path))
        return;
    json_object_set_new(p->seen, path, json_boolean(named));
    json_array_append_new(p->todo, json_string(path));
    p->good += named;
}

/* ---- the names of the command ---- */

int list_each(const char *name, char end, int (*fn)(void *arg, const char *path), void *arg)
{
    FILE *list = strcmp(name, "-") ? fopen(name, "re") : stdin;
    char *line = NULL;
    size_t size = 0;
    int err = 0;
    if (!list) {
        complain("%s: %m", name);
        return -errno;
    }
    for (ssize_t n; !err && (n = getdelim(&line, &size, end, list)) > 0;) {
        if (line[n - 1] == end)
            line[n - 1] = '\0';
        if (*line)
            err = fn(arg, line);
    }
    free(line);
    if (list != stdin)
        fclose(list);
    return err;
}

/* NULL: it may be added. */
static const char *why_not(const struct paths *p, const struct mount_entry *e, char other[600])
{
    if (!p->mount.mountpoint || !strcmp(p->mount.mountpoint, e->mountpoint))
        return NULL;
    char *mount = control_escape(e->mountpoint), *first = control_escape(p->mount.mountpoint);
    snprintf(other, 600,
             "is in another mount (%.250s) than the paths before it (%.250s): use a command for "
             "each mount",
             mount, first);
    free(mount);
    free(first);
    return other;
}

static const char *why_not_found(const char *name, int err)
{
    char *whole = mount_path(name); /* else it is not in a mount because it cannot be looked for */
    const char *why = !whole ? strerror(errno)
                      : err != -ENOENT
                          ? strerror(-err)
                          : "is in no eddyfs of yours (\"eddy status --all\" lists them)";
    free(whole);
    return why;
}

void paths_add(struct paths *p, const char *name)
{
    struct mount_entry e = {0};
    char *below = NULL, other[600];
    int err = find_mount_of_file(name, &e, &below);
    const char *why = err ? why_not_found(name, err) : why_not(p, &e, other);
    char *path = why ? NULL : control_escape(below);
    if (path && strlen(path) > PATH_SENT_MAX)
        why = strerror(ENAMETOOLONG);
    if (why) {
        failed_name(p, name, why);
    } else {
        if (!p->mount.mountpoint) {
            p->mount = e;
            e = (struct mount_entry){0};
        }
        add(p, path, true);
    }
    mount_entry_free(&e);
    free(path);
    free(below);
}

void paths_begin(struct paths *p, char **names, int n)
{
    *p = (struct paths){.failed = json_array(),
                        .skipped = json_array(),
                        .todo = json_array(),
                        .seen = json_object()};
    for (int i = 0; i < n; i++)
        paths_add(p, names[i]);
}

void paths_end(struct paths *p)
{
    mount_entry_free(&p->mount);
    json_decref(p->failed);
    json_decref(p->skipped);
    json_decref(p->todo);
    json_decref(p->seen);
}

json_t *paths_next_part(struct paths *p)
{
    json_t *list = json_array();
    size_t bytes = 0;
    const char *path;
    while (bytes < CONTROL_LINE_MAX / 8 && (path = paths_next(p))) {
        bytes += strlen(path) + 4;
        json_array_append_new(list, json_string(path));
    }
    return list;
}

const char *paths_next(struct paths *p)
{
    return paths_left(p) ? json_string_value(json_array_get(p->todo, p->next++)) : NULL;
}

bool paths_left(const struct paths *p)
{
    return p->next < json_array_size(p->todo);
}

bool paths_any_good(const struct paths *p)
{
    return p->good;
}

/* ---- links ---- */

/* Where it leads, below the mount and escaped; NULL: *why. */
static char *target_of(const struct paths *p, const char *link, const char **why)
{
    char *raw = control_unescape(link), *path, *real;
    const char *mount = p->mount.mountpoint;
    size_t len = strlen(mount);
    if (!raw || asprintf(&path, "%s/%s", mount, raw) < 0)
        die("a link's path cannot be made");
    real = realpath(path, NULL);
    *why = !real ? strerror(errno) : "is a link that leads out of the mount";
    char *below = real && !strncmp(real, mount, len) && (!real[len] || real[len] == '/')
                      ? control_escape(real + len + !!real[len])
                      : NULL;
    if (below && strlen(below) > PATH_SENT_MAX) {
        *why = strerror(ENAMETOOLONG);
        free(below);
        below = NULL;
    }
    free(real);
    free(path);
    free(raw);
    return below;
}

void paths_add_link(struct paths *p, const char *link)
{
    const char *why;
    char *target = target_of(p, link, &why);
    if (target) {
        add(p, target, false);
    } else {
        char *shown = shown_below(p, link);
        note(p->skipped, shown, why);
        free(shown);
    }
    free(target);
}

/* ---- what is shown ---- */

static void print_list(const json_t *list, const char *what)
{
    size_t i;
    json_t *o;
    json_array_foreach(list, i, o)
    {
        printf("%s: %s%s\n", json_string_value(json_object_get(o, "path")), what,
               json_string_value(json_object_get(o, "reason")));
    }
}

void paths_print(const struct paths *p)
{
    print_list(p->failed, "");
    print_list(p->skipped, "skipped: ");
}
