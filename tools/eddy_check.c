/* eddy_check.c - eddy check: files that some node has not written to the PFS, dead or alive.
 *
 * The names come from the dirty lists in the session directories.  If an eddyfs is mounted over the PFS
 * directory itself, these cannot be seen, and its daemon is asked.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/mountinfo.h"
#include "tools/eddy.h"
#include "tools/eddy_sessions.h"
#include "tools/eddy_talk.h"
#include "transport/marks.h"

#define ANSWER_MS 60000

struct check {
    uint64_t files, nodes;
};

static void print_dirty(const char *escaped_path, const char *node, const char *session)
{
    printf("%s: only on node %s (session %s)\n", escaped_path, node, session);
}

static int add_dirty(void *arg, const char *session, uint64_t node, const char *node_name,
                     struct fid fid, const char *path)
{
    struct check *check = arg;
    char *escaped = control_escape(path), *name = control_escape(node_name), id[32];
    (void)fid;
    snprintf(id, sizeof(id), "%016" PRIx64, node);
    print_dirty(escaped, strcmp(name, "?") ? name : id, session);
    free(escaped);
    free(name);
    check->files++;
    return 0;
}

static void print_unfinished(const char *node, const char *session)
{
    printf("node %s (session %s) did not end in order: what it wrote last may be only in its cache\n",
           node, session);
}

static int add_unfinished(void *arg, const char *session, uint64_t node, const char *node_name)
{
    struct check *check = arg;
    (void)node;
    print_unfinished(node_name, session);
    check->nodes++;
    return 0;
}

/* name: as people know the directory. */
static int check_session_dir(const char *dir, const char *name, struct check *check)
{
    int err = session_each_dirty(dir, add_dirty, check);
    if (!err)
        err = session_each_unfinished(dir, add_unfinished, check);
    if (err)
        complain("%s: %s", name, strerror(-err));
    return err;
}

static int check_users(void *arg, const struct users_sessions *s)
{
    return check_session_dir(s->path, s->name, arg);
}

/* The sessions of all users, as far as they can be read. */
static int check_pfs_dir(const char *path, struct check *check)
{
    int found, result = each_users_sessions(path, true, check_users, check, &found);
    if (!found && !result)
        complain("%s: has no session: all have ended in order, or PFS_DIR is another directory, perhaps one above it, or they are in "
                 "another --session-dir",
                 path);
    return result;
}

/* ---- through a daemon ---- */

/* The eddyfs that lies over this directory, or over one above it. */
static int lies_over(void *arg, const struct mount_entry *e)
{
    struct mount_entry *out = arg;
    size_t len = strlen(e->mountpoint);
    if (strncmp(out->mountpoint, e->mountpoint, len) != 0 ||
        (out->mountpoint[len] && out->mountpoint[len] != '/'))
        return 0;
    if (!mounted_eddyfs(e->mountpoint, NULL))
        return 0;
    out->cache_dir = xstrdup(e->cache_dir);
    out->owner = e->owner;
    return 1;
}

static int check_by_daemon(const struct mount_entry *e, struct check *check)
{
    struct talk *t;
    bool last = false;
    int err = talk_begin(e, "check", NULL, &t);
    if (err) {
        complain("%s: an eddyfs is mounted there, and does not answer: %s", e->mountpoint,
                 strerror(-err));
        return err;
    }
    while (!err && !last) {
        json_t *line, *file;
        err = talk_next(t, boot_ms() + ANSWER_MS, &line, &last);
        if (err || json_object_get(line, "error"))
            complain("%s: %s", e->mountpoint, talk_error(err ? NULL : line, err));
        if (err)
            break;
        if ((file = json_object_get(line, "unflushed"))) {
            print_dirty(json_text(file, "path"), json_text(file, "node"),
                        json_text(file, "session"));
            check->files++;
        }
        if ((file = json_object_get(line, "unfinished"))) {
            print_unfinished(json_text(file, "node"), json_text(file, "session"));
            check->nodes++;
        }
        err = json_object_get(line, "error") ? -EREMOTEIO : 0;
        json_decref(line);
    }
    talk_end(t);
    return err;
}

static int check_directory(const char *path, struct check *check)
{
    struct mount_entry over = {.mountpoint = mount_path(path)};
    if (!over.mountpoint) {
        complain("%s: %m", path);
        return -errno;
    }
    bool by_daemon = mount_map_each(lies_over, &over) == 1;
    int err = by_daemon ? check_by_daemon(&over, check) : check_pfs_dir(path, check);
    mount_entry_free(&over);
    return err;
}

int check_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"session-dir", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'}, {0}};
    struct check check = {0};
    const char *session_dir = NULL;
    for (int c; (c = next_option(argc, argv, "h", options)) != -1;) {
        if (c == 'h')
            return help_of("check");
        if (c != 's')
            return usage_of("check");
        session_dir = optarg;
    }
    if (argc - optind != 1)
        return usage_of("check");
    int err = session_dir ? check_session_dir(session_dir, session_dir, &check)
                          : check_directory(argv[optind], &check);
    if (check.files)
        complain("%" PRIu64 " file%s not on the PFS", check.files, check.files == 1 ? " is" : "s are");
    if (check.files || check.nodes)
        complain("unless eddyfs runs on these nodes: run \"eddy recover CACHE_DIR\" there, or start eddyfs there again with the same "
                 "cache directory; \"eddy forget --node NAME MOUNTPOINT\" gives up what is lost");
    return check.files || check.nodes ? NOT_ON_PFS : err ? FAILED : DONE;
}
