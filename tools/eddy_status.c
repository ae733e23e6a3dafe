/* eddy_status.c - eddy status: as text for people, or as the daemon's JSON. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>

#include "tools/eddy.h"
#include "tools/eddy_files.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_talk.h"

#define ANSWER_MS 10000

/* ---- for people ---- */

#define SIZE 24
static char *size_of(const json_t *o, const char *key, char buf[SIZE])
{
    return size_format(json_u64(o, key), buf, SIZE);
}

static void print_place(const json_t *s)
{
    uint64_t restarts = json_u64(s, "restarts");
    printf("%s (node %s, session %s, process %" PRIu64 ")\n", json_text(s, "mountpoint"),
           json_text(s, "node"), json_text(s, "session"), json_u64(s, "pid"));
    if (restarts)
        printf("  started again %" PRIu64 " time%s: the log says why\n", restarts,
               restarts == 1 ? "" : "s");
    printf("  PFS          %s", json_text(s, "pfs"));
    uint64_t silent = json_u64(s, "pfs_silent_ms");
    if (silent >= 2000)
        printf("   does not answer for %" PRIu64 " s", silent / 1000);
    bool on = json_is_true(json_object_get(s, "passthrough"));
    printf("\n  passthrough  %s%s\n",
           on ? "on" : "off: ", on ? "" : json_text(s, "passthrough_why"));
    on = json_is_true(json_object_get(s, "uring"));
    printf("  io_uring     %s%s\n", on ? "on" : "off: ", on ? "" : json_text(s, "uring_why"));
}

static void print_onesided(const json_t *s)
{
    char size[SIZE];
    const json_t *one = json_object_get(s, "onesided"), *nodes = json_object_get(one, "nodes");
    if (!json_u64(one, "memory"))
        return;
    printf("  one-sided    %s over %s, %" PRIu64 " of %" PRIu64 " shelves used; reads from %zu node%s%s", size_of(one, "memory", size),
           json_text(one, "transports"), json_u64(one, "shelves_used"), json_u64(one, "shelves"), json_array_size(nodes),
           json_array_size(nodes) == 1 ? "" : "s", json_array_size(nodes) ? ":" : "");
    for (size_t i = 0; i < json_array_size(nodes); i++)
        printf(" %s", json_string_value(json_array_get(nodes, i)));
    printf("\n");
}

static void print_cache(const json_t *s)
{
    char content[SIZE], size[SIZE], dirty[SIZE], aside[SIZE];
    const json_t *cache = json_object_get(s, "cache");
    uint64_t used = json_u64(cache, "used");
    printf("  cache        %s\n", json_text(cache, "dir"));
    printf("               %s of %s used, %s not on the PFS yet; %s set aside for records and writers\n",
           size_of(cache, "content", content), size_of(cache, "size", size), size_of(cache, "dirty", dirty),
           size_format(used - MIN(used, json_u64(cache, "content")), aside, sizeof(aside)));
}

static void print_marks(const json_t *flush)
{
    char low[SIZE], high[SIZE], age[SIZE] = "";
    uint64_t oldest_s = json_u64(flush, "oldest_ms") / 1000,
             age_s = json_u64(flush, "age_ms") / 1000;
    if (age_s)
        snprintf(age, sizeof(age), " of %" PRIu64 " s", age_s);
    printf("               a lull after %.2f s%s; marks at %s and %s; oldest dirty data %" PRIu64
           " s%s\n",
           (double)json_u64(flush, "wait_ms") / 1000,
           json_is_true(json_object_get(flush, "wait_auto")) ? " (learned)" : "",
           size_of(flush, "low_bytes", low), size_of(flush, "high_bytes", high), oldest_s, age);
}

static void print_flush(const json_t *s)
{
    char flushed[SIZE], pending[SIZE];
    const json_t *flush = json_object_get(s, "flush");
    uint64_t files = json_u64(flush, "pending_files");
    printf("  flush        %s, %s: %s flushed, %s to go in %" PRIu64 " file%s\n",
           json_text(flush, "policy"), json_text(flush, "state"),
           size_of(flush, "flushed_bytes", flushed), size_of(flush, "pending_bytes", pending),
           files, files == 1 ? "" : "s");
    print_marks(flush);
}

static void print_reads(const json_t *s)
{
    char local[SIZE], peer[SIZE], pfs[SIZE];
    const json_t *reads = json_object_get(s, "reads");
    printf("  reads        %s from this node's cache, %s from other nodes, %s from the PFS\n",
           size_of(reads, "local_bytes", local), size_of(reads, "peer_bytes", peer),
           size_of(reads, "pfs_bytes", pfs));
}

static int name_width(const json_t *members, const char *key)
{
    size_t i, width = 0;
    json_t *m;
    json_array_foreach(members, i, m)
    {
        width = MAX(width, strlen(json_text(m, key)));
    }
    return (int)width;
}

static void print_members(const json_t *s)
{
    const json_t *view = json_object_get(s, "view"), *members = json_object_get(s, "members");
    size_t i, n = json_array_size(members);
    int width = name_width(members, "name"), address_width = name_width(members, "address");
    json_t *m;
    printf("  view         %" PRIu64 ", %zu node%s%s\n", json_u64(view, "number"), n,
           n == 1 ? "" : "s",
           json_is_true(json_object_get(view, "joined"))
               ? ""
               : "; this node is not in the newest one and waits to join again");
    json_array_foreach(members, i, m)
    {
        printf("               %-*s  %-*s  %s%s\n", width, json_text(m, "name"), address_width,
               json_text(m, "address"), json_text(m, "state"),
               json_is_true(json_object_get(m, "self")) ? ", this node" : "");
    }
    json_array_foreach(json_object_get(s, "absent"), i, m)
    {
        printf("               %-*s  %-*s  left; data that only it has waits for its return\n",
               width, json_text(m, "name"), address_width, "-");
    }
}

static double seconds(const json_t *times, const char *key)
{
    return (double)json_u64(times, key) / 1000;
}

static void print_times(const json_t *s)
{
    const json_t *t = json_object_get(s, "times");
    printf(
        "  times        silent nodes: suspected after %g s, dead after %g s; lease %g s, wait %g "
        "s; opens wait %g s\n",
        seconds(t, "suspect_ms"), seconds(t, "dead_ms"), seconds(t, "lease_ms"),
        seconds(t, "wait_ms"), seconds(t, "open_ms"));
}

static void print_loans(const json_t *s)
{
    char lent[SIZE], borrowed[SIZE];
    const json_t *l = json_object_get(s, "loans");
    uint64_t out = json_u64(l, "lent_files"), in = json_u64(l, "borrowed_files");
    if (out || in)
        printf("  shared       %s of %" PRIu64 " file%s lent to other nodes, %s of %" PRIu64 " borrowed\n",
               size_of(l, "lent_bytes", lent), out, out == 1 ? "" : "s", size_of(l, "borrowed_bytes", borrowed), in);
}

static void print_claims(const json_t *s)
{
    uint64_t claims = json_u64(s, "claims"), locks = json_u64(s, "locks"),
             lost = json_u64(s, "lost");
    printf("  claims       %" PRIu64 " file%s written here; home of %" PRIu64 " lock%s\n", claims,
           claims == 1 ? "" : "s", locks, locks == 1 ? "" : "s");
    if (lost)
        printf("  lost         %" PRIu64 " file%s until a node returns\n", lost,
               lost == 1 ? "" : "s");
}

#define LOST_SHOWN 20

static void print_lost(const json_t *s)
{
    const json_t *lost = json_object_get(s, "lost_files"), *file;
    size_t i, n = json_array_size(lost);
    uint64_t left_out = json_u64(s, "lost_files_left_out");
    if (!n)
        return;
    printf("  only on nodes that left\n");
    json_array_foreach(lost, i, file)
    {
        char since[TIME_TEXT];
        time_text((double)json_u64(file, "since"), since);
        if (i < LOST_SHOWN)
            printf("               %s: node %s, since %s\n", json_text(file, "path"),
                   json_text(file, "node"), since);
    }
    if (left_out)
        printf("               ... and %" PRIu64 " more: \"eddy check %s\" names all\n",
               n - LOST_SHOWN + left_out, json_text(s, "pfs"));
    else if (n > LOST_SHOWN)
        printf("               ... and %zu more: --json lists them\n", n - LOST_SHOWN);
}

static void print_failed(const json_t *s)
{
    const json_t *failed = json_object_get(json_object_get(s, "flush"), "failed_files");
    struct unflushed_list l = {0};
    size_t i;
    json_t *file;
    if (!json_array_size(failed))
        return;
    printf("  not flushed\n");
    json_array_foreach(failed, i, file)
    {
        unflushed_add_json(&l, file);
    }
    for (i = 0; i < l.n; i++) {
        char size[SIZE];
        printf("               %s: %s: %s\n", l.files[i].path,
               size_format(l.files[i].bytes, size, SIZE), l.files[i].reason);
    }
    unflushed_free(&l);
}

static void print_status(const json_t *s)
{
    print_place(s);
    print_cache(s);
    print_onesided(s);
    print_flush(s);
    print_reads(s);
    print_members(s);
    print_times(s);
    print_loans(s);
    print_claims(s);
    print_lost(s);
    print_failed(s);
}

/* ---- one mount, all mounts ---- */

static void dump(json_t *o)
{
    json_dumpf(o, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
    putchar('\n');
}

static void put_text(json_t *o, const char *key, const char *text)
{
    char *escaped = control_escape(text);
    json_object_set_new(o, key, json_string(escaped));
    free(escaped);
}

/* What is known without the daemon, which may be another program of that user: a script of root's may end
 * the process or unmount the path that it finds here. */
static void put_known(json_t *status, const struct mount_entry *e, pid_t pid)
{
    json_t *cache = json_object_get(status, "cache");
    put_text(status, "mountpoint", e->mountpoint);
    json_object_set_new(status, "pid", json_integer(pid));
    json_object_set_new(status, "user", json_integer(e->owner));
    if (json_is_object(cache))
        put_text(cache, "dir", e->cache_dir);
}

/* As talk_once. */
static int ask_daemon(const struct mount_entry *e, json_t **status)
{
    struct talk *t;
    bool last;
    *status = NULL;
    int err = talk_begin(e, "status", NULL, &t);
    if (err)
        return err;
    err = talk_next(t, boot_ms() + ANSWER_MS, status, &last);
    if (err)
        *status = NULL;
    else
        put_known(*status, e, talk_pid(t));
    talk_end(t);
    return !err && json_object_get(*status, "error") ? -EREMOTEIO : err;
}

static int ask(const struct mount_entry *e, json_t **status)
{
    int err = ask_daemon(e, status);
    if (!err) {
        json_object_del(*status, "end");
        return 0;
    }
    if (err == -ECONNREFUSED)
        complain("%s: no daemon runs%s: \"eddy wait %s\" tells what is not on the PFS",
                 e->mountpoint, mounted_eddyfs(e->mountpoint, NULL) ? ", the mount is dead" : "",
                 e->mountpoint);
    else
        complain("%s: %s", e->mountpoint, talk_error(*status, err));
    json_decref(*status);
    return err;
}

static int status_of_one(const char *path, bool json)
{
    struct mount_entry e;
    json_t *status;
    if (find_mount(path, &e))
        return FAILED;
    int err = ask(&e, &status);
    if (!err) {
        if (json)
            dump(status);
        else
            print_status(status);
        json_decref(status);
    }
    mount_entry_free(&e);
    return err ? FAILED : DONE;
}

struct all {
    json_t *list;
    size_t elsewhere; /* mounts of other mount namespaces */
    bool failed;
};

/* Whether a daemon that has no mount here runs in another mount namespace: that of a container.  pid 0: its process has no number here. */
static bool runs_elsewhere(pid_t pid)
{
    char path[64];
    struct stat own, its;
    if (!pid)
        return true;
    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    return !stat(path, &its) && !stat("/proc/self/ns/mnt", &own) && (own.st_ino != its.st_ino || own.st_dev != its.st_dev);
}

/* A mount that ended and was unmounted is not listed; nor is one that is seen in a container only, though its cache directory is here. */
static int add_mount(void *arg, const struct mount_entry *e)
{
    struct all *all = arg;
    bool runs = false, is_here = mounted_eddyfs(e->mountpoint, NULL);
    json_t *status;
    int err = daemon_runs(e, &runs);
    if (!is_here && (err || !runs))
        return 0;
    if (ask(e, &status))
        all->failed = true;
    else if (!is_here && runs_elsewhere((pid_t)json_u64(status, "pid"))) {
        all->elsewhere++;
        json_decref(status);
    } else
        json_array_append_new(all->list, status);
    return 0;
}

static int status_of_all(bool json)
{
    struct all all = {.list = json_array()};
    size_t i;
    json_t *status;
    mount_map_each(add_mount, &all);
    if (json)
        dump(all.list);
    json_array_foreach(all.list, i, status)
    {
        if (!json)
            print_status(status);
        if (!json && i + 1 < json_array_size(all.list))
            putchar('\n');
    }
    if (all.elsewhere)
        complain("%zu mount%s of other mount namespaces (containers) %s not listed: ask there", all.elsewhere, all.elsewhere == 1 ? "" : "s",
                 all.elsewhere == 1 ? "is" : "are");
    else if (!json && !json_array_size(all.list) && !all.failed)
        complain("no eddyfs of yours is mounted here");
    json_decref(all.list);
    return all.failed ? FAILED : DONE;
}

int status_main(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"all", no_argument, NULL, 'a'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    bool json = false, all = false;
    for (int c; (c = next_option(argc, argv, "h", options)) != -1;) {
        if (c == 'h')
            return help_of("status");
        if (c != 'j' && c != 'a')
            return usage_of("status");
        json |= c == 'j';
        all |= c == 'a';
    }
    if (argc - optind != !all)
        return usage_of("status");
    return all ? status_of_all(json) : status_of_one(argv[optind], json);
}
