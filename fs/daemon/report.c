/* report.c - --report: what a mount did, as one JSON file, when it ends.
 *
 * eddyfs-SESSION-NODE-TIME.json, 0600, complete when it appears.  It is bounded: ROWS rows of history, the slowest operations, the
 * last warnings, and REPORT_FILES names of files.  `eddy report` reads it (tools/eddy_report.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "flush/flush_recover.h"
#include "flush/flush_status.h"
#include "fs/daemon/control_int.h"
#include "fs/daemon/daemon.h"
#include "fs/daemon/history.h"
#include "fs/operation.h"
#include "fs/settings.h"
#include "transport/textfile.h"

#define REPORT_FILES 1000

static void add_slow(void *arg, const struct slow_operation *s)
{
    json_t *list = arg, *o = json_object(), *waits = json_object();
    control_put_text(o, "operation", s->name);
    if (s->path)
        control_put_text(o, "path", s->path);
    control_put(o, "process", (uint64_t)s->pid);
    control_put(o, "ms", s->took_ns / 1000000);
    control_put(o, "ended", (uint64_t)MAX(s->ended_ns, INT64_C(0)) / 1000000000);
    for (unsigned i = 0; i < WAIT_KINDS; i++)
        if (s->waits.ns[i] >= 1000000)
            control_put(waits, wait_names[i], s->waits.ns[i] / 1000000);
    json_object_set_new(o, "waited_ms", waits);
    json_array_append_new(list, o);
}

static int add_conflict(void *arg, const struct flush_conflict *c)
{
    json_t *list = arg, *o = json_object();
    control_put_text(o, "path", c->path);
    control_put_text(o, "beside", c->beside);
    json_array_append_new(list, o);
    return json_array_size(list) >= REPORT_FILES;
}

static int add_unflushed(void *arg, const struct unflushed_file *u)
{
    json_t *list = arg, *o = json_object();
    control_put_text(o, "path", u->path);
    control_put(o, "bytes", u->bytes);
    json_object_set_new(o, "error", u->error ? json_string(strerror(abs(u->error))) : json_null());
    json_array_append_new(list, o);
    return json_array_size(list) >= REPORT_FILES;
}

static void add_line(void *arg, const char *line)
{
    char *printable = control_escape(line);
    json_array_append_new(arg, json_string(printable));
    free(printable);
}

static void put_lists(json_t *o)
{
    json_t *slow = json_array(), *conflicts = json_array(), *unflushed = json_array(), *lines = json_array();
    uint64_t warnings;
    operation_each_slowest(add_slow, slow);
    flush_each_conflict(add_conflict, conflicts);
    flush_each_unflushed(add_unflushed, unflushed);
    log_each_last(add_line, lines, &warnings);
    json_object_set_new(o, "slowest", slow);
    json_object_set_new(o, "conflicts", conflicts);
    json_object_set_new(o, "not_on_pfs", unflushed);
    json_object_set_new(o, "warnings", lines);
    control_put(o, "warnings_count", warnings);
}

static json_t *report_json(unsigned not_on_pfs)
{
    struct flush_status s;
    json_t *o = json_object();
    flush_status(&s);
    control_put_text(o, "format", "eddyfs report 1");
    control_put_text(o, "version", EDDY_VERSION);
    control_put_text(o, "node", settings.node);
    control_put_text(o, "session", settings.session);
    control_put_text(o, "pfs", settings.pfs_dir);
    control_put_text(o, "mountpoint", settings.mountpoint);
    control_put(o, "ended", (uint64_t)time(NULL));
    control_put(o, "not_on_pfs_count", not_on_pfs);
    control_put_text(o, "flush_policy", s.policy);
    json_object_set_new(o, "passthrough", json_boolean(settings.passthrough));
    if (!settings.passthrough)
        control_put_text(o, "passthrough_why", settings.passthrough_why);
    json_object_set_new(o, "figures", control_figures());
    json_object_set_new(o, "operations", control_operations());
    json_object_set_new(o, "history", history_json());
    put_lists(o);
    return o;
}

static int write_to(const char *name, const char *text)
{
    int fd = open(settings.report, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = textfile_create(fd, name, text, strlen(text));
    close(fd);
    return err;
}

int report_start(char *err, size_t errlen)
{
    if (!settings.report)
        return 0;
    struct stat st;
    int e = stat(settings.report, &st) || access(settings.report, W_OK | X_OK) ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
    if (e)
        snprintf(err, errlen, "--report %s: no report can be written there: %s: name a directory that you can write to",
                 settings.report, strerror(-e));
    else
        history_start();
    return e;
}

void report_stop(void)
{
    history_stop();
}

void report_write(unsigned not_on_pfs)
{
    if (!settings.report || !history_began())
        return;
    char name[200], stamp[32];
    time_t now = time(NULL);
    struct tm tm;
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    snprintf(name, sizeof(name), "eddyfs-%s-%s-%s.json", settings.session, settings.node, stamp);
    json_t *o = report_json(not_on_pfs);
    char *text = json_dumps(o, JSON_COMPACT);
    int err = text ? write_to(name, text) : -ENOMEM;
    json_decref(o);
    free(text);
    if (err)
        log_error("the report %s/%s cannot be written: %s", settings.report, name, strerror(-err));
    else
        log_info("the report of this mount is %s/%s", settings.report, name);
}
