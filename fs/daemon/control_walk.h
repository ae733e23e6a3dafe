/* control_walk.h - the files that a command of `eddy` names, and all below directories that it
 * names (control_walk.c).
 *
 *     the paths, and then the entries of each directory, up to a batch at a time --> a look at each
 * on the PFS, several at once
 *         --> the homes: where are the latest bytes?
 *
 * The names are those that the PFS has, whatever this node has cached.  A symbolic link is only
 * named: the tool knows whether it leads into this mount.
 */
#ifndef EDDY_FS_DAEMON_CONTROL_WALK_H
#define EDDY_FS_DAEMON_CONTROL_WALK_H

#include "fs/daemon/control_int.h"
#include "placement/claims/claim.h"

/* Paths relative to the PFS directory, as a request has them. */
struct walk_paths {
    char **v;
    size_t n, size;
};
/* Adds those of a line {"paths", "more"}, and of the lines that follow it: before anything is
 * answered, for the tool reads no answer while it sends.  False: it is no list of
 * paths, or there are more than `most`. */
bool walk_take_paths(struct connection *c, const json_t *line, size_t most, struct walk_paths *p);
void walk_paths_free(struct walk_paths *p);

/* What the tool has been told while its command goes on. */
struct walk_said {
    struct connection *c;
    uint64_t failed;  /* files that were told of, or would have been: CONTROL_FILES_MAX are */
    uint64_t said_ms; /* boot_ms of the last progress; the caller's */
    bool gone;        /* nobody waits for the answer */
};
void walk_say(struct walk_said *s, json_t *line); /* takes the line */
void walk_say_failed(struct walk_said *s, const char *path, const char *why);

/* What is called, in the thread that walks; path: relative to the PFS directory, valid during the
 * call. */
struct walk_calls {
    void *arg;
    /* A regular file; at: never WHERE_LOST. */
    void (*file)(void *arg, const char *path, const struct statx *stx, const struct location *at);
    bool (*goes_on)(void *arg); /* false: the walk ends */
    struct walk_said *said;     /* is told of files that cannot be looked at, and of links */
};
/* Blocks on the PFS and on other nodes. */
void walk_all(const struct walk_paths *p, const struct walk_calls *calls);

#endif
