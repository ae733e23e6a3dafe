/* eddy_hint.c - eddy hint: tells a mount what will be read, in this order, and stays until it was. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/eddy.h"
#include "tools/eddy_paths.h"
#include "tools/lib/eddy.h"

#define AT_ONCE 4096 /* hints that are sent in one call */

struct hint_args {
    const char *list; /* "-": standard input; NULL: none */
    char end;         /* of a name in the list */
    uint64_t off, len;
    bool start;
};

struct batch {
    eddy_queue *queue; /* NULL: no path came yet */
    const struct hint_args *args;
    struct eddy_hint hint[AT_ONCE];
    size_t n;
};

/* OFF:LEN; an empty LEN is to the end. */
static int parse_range(const char *text, uint64_t *off, uint64_t *len)
{
    char copy[64];
    const char *colon = strchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof(copy))
        return -EINVAL;
    memcpy(copy, text, (size_t)(colon - text));
    copy[colon - text] = '\0';
    int err = size_parse(copy, off);
    *len = 0;
    return err || !colon[1] ? err : size_parse(colon + 1, len);
}

static int send_batch(struct batch *b)
{
    int64_t first = b->n ? eddy_queue_append_many(b->queue, b->hint, b->n) : 0;
    const char *path = b->n == 1 ? b->hint[0].path : "the list";
    if (first == -EXDEV)
        complain("%s: all paths must be in one mount", path);
    else if (first == -ENOBUFS)
        complain("the mount keeps no more hints now (--memory of eddyfs)");
    else if (first < 0)
        complain("%s: %s", path, strerror((int)-first));
    for (size_t i = 0; i < b->n; i++)
        free((char *)b->hint[i].path);
    b->n = 0;
    return (int)MIN(first, 0);
}

static int open_queue(struct batch *b, const char *path)
{
    int err = eddy_queue_open(path, EDDY_QUEUE_ANY_READER, &b->queue);
    if (err == -ENODEV)
        complain("%s: is not in an eddyfs", path);
    else if (err)
        complain("%s: %s", path, err == -EACCES ? "is another user's eddyfs" : strerror(-err));
    return err;
}

static int add_path(void *arg, const char *path)
{
    struct batch *b = arg;
    int err = b->queue ? 0 : open_queue(b, path);
    if (err)
        return err;
    b->hint[b->n++] = (struct eddy_hint){xstrdup(path), b->args->off, b->args->len};
    return b->n == AT_ONCE ? send_batch(b) : 0;
}

static int add_all(struct batch *b, char **paths)
{
    int err = 0;
    for (; !err && *paths; paths++)
        err = add_path(b, *paths);
    if (!err && b->args->list)
        err = list_each(b->args->list, b->args->end, add_path, b);
    if (!err && b->queue)
        err = send_batch(b);
    if (!err && !b->queue) {
        complain("no paths came");
        err = -EINVAL;
    }
    return err;
}

/* Until all is consumed, the mount ends, or a signal comes, which ends the process and so the hints. */
static int stay(eddy_queue *q, bool start)
{
    int err = start ? eddy_queue_start(q) : 0;
    if (!err)
        err = eddy_queue_wait(q, EDDY_QUEUE_ALL_CONSUMED, -1);
    if (err)
        complain("the mount has ended: %s", strerror(-err));
    return err;
}

/* 1: help was wanted; -EINVAL: complained of; -ENOENT: something lacks. */
static int parse(int argc, char **argv, struct hint_args *a)
{
    static const struct option options[] = {{"range", required_argument, NULL, 'r'},
                                            {"no-start", no_argument, NULL, 'n'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    for (int c; (c = next_option(argc, argv, "f:0h", options)) != -1;) {
        if (c == 'f')
            a->list = optarg;
        else if (c == '0')
            a->end = '\0';
        else if (c == 'n')
            a->start = false;
        else if (c == 'h')
            return 1;
        else if (c != 'r')
            return -ENOENT;
        else if (parse_range(optarg, &a->off, &a->len)) {
            complain("--range %s: give OFF:LEN, like 0:64M, or OFF: for all from there on", optarg);
            return -EINVAL;
        }
    }
    return optind == argc && !a->list ? -ENOENT : 0;
}

int hint_main(int argc, char **argv)
{
    struct hint_args args = {.end = '\n', .start = true};
    int code = parse(argc, argv, &args);
    if (code)
        return code > 0 ? help_of("hint") : code == -EINVAL ? WRONG_USAGE : usage_of("hint");
    struct batch *b = xcalloc(1, sizeof(*b));
    b->args = &args;
    int err = add_all(b, argv + optind);
    if (!err)
        err = stay(b->queue, args.start);
    eddy_queue_close(b->queue);
    free(b);
    return err ? FAILED : DONE;
}
