/* eddy_forget.c - eddy forget: gives up, on purpose, the unflushed data of a node that left. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/eddy.h"
#include "tools/eddy_files.h"
#include "tools/eddy_mounts.h"
#include "tools/eddy_talk.h"

#define ANSWER_MS 60000

static void show_waiting(const json_t *line)
{
    uint64_t ms = json_u64(line, "waiting_ms");
    if (ms && isatty(STDERR_FILENO)) {
        progress_clear();
        fprintf(stderr, "\rwaiting for what node %s may still be writing: %" PRIu64 " s ",
                json_text(line, "node"), (ms + 999) / 1000);
    }
}

/* below: the file's path in the mount; NULL: all that the node has. */
static void show_forgotten(const struct mount_entry *e, const char *what, const char *below, const char *node)
{
    char *pfs = control_escape(e->pfs_dir), *escaped = control_escape(what), *path = control_escape(below ? below : "");
    if (below)
        printf("%s: forgotten; if node %s returns, what it has becomes %s/%s.eddy-conflict-%s\n", escaped, node, pfs, path, node);
    else
        printf("%s: forgotten; if node %s returns, what it has is put beside the files in %s, as FILE.eddy-conflict-%s\n", escaped,
               node, pfs, node);
    free(pfs);
    free(escaped);
    free(path);
}

static int ask(const struct mount_entry *e, json_t *args, const char *what, const char *below)
{
    struct talk *t;
    bool last = false;
    int err = talk_begin(e, "forget", args, &t);
    if (err) {
        complain("%s: %s", e->mountpoint, talk_error(NULL, err));
        return FAILED;
    }
    while (!err && !last) {
        json_t *line;
        err = talk_next(t, boot_ms() + ANSWER_MS, &line, &last);
        if (err || json_object_get(line, "error")) {
            complain("%s", talk_error(err ? NULL : line, err));
            err = err ? err : -EREMOTEIO;
        } else if (last) {
            progress_clear();
            show_forgotten(e, what, below, json_text(line, "node"));
        } else {
            show_waiting(line);
        }
        if (err != -ETIMEDOUT && err != -ECONNRESET && err != -EPROTO)
            json_decref(line);
    }
    talk_end(t);
    return err ? FAILED : DONE;
}

static int forget_file(const char *path)
{
    struct mount_entry e = {0};
    char *below = NULL;
    int err = find_mount_of_file(path, &e, &below), code = FAILED;
    if (err == -ENOENT || (!err && !*below))
        complain("%s: is no file in an eddyfs of yours", path);
    else if (err)
        complain("%s: %s", path, strerror(-err));
    else
        code = ask(&e, json_pack("{s:s}", "path", below), path, below);
    mount_entry_free(&e);
    free(below);
    return code;
}

static int forget_node(const char *node, const char *mount)
{
    struct mount_entry e;
    if (find_mount(mount, &e))
        return FAILED;
    int code = ask(&e, json_pack("{s:s}", "node", node), node, NULL);
    mount_entry_free(&e);
    return code;
}

int forget_main(int argc, char **argv)
{
    static const struct option options[] = {
        {"node", required_argument, NULL, 'n'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *node = NULL;
    for (int c; (c = next_option(argc, argv, "h", options)) != -1;) {
        if (c == 'h')
            return help_of("forget");
        if (c != 'n')
            return usage_of("forget");
        node = optarg;
    }
    if (argc - optind != 1)
        return usage_of("forget");
    return node ? forget_node(node, argv[optind]) : forget_file(argv[optind]);
}
