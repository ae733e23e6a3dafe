/* eddy_paths.h - the PATHs of a command, all in one mount (eddy_paths.c): `eddy flush PATH...`, `eddy stage`.
 *
 * Paths below the mount are held as they are shown and sent: escaped (control_escape), relative to it.
 */
#ifndef EDDY_TOOLS_EDDY_PATHS_H
#define EDDY_TOOLS_EDDY_PATHS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "fs/daemon/control.h"

struct paths {
    struct mount_entry mount; /* of the first path that is in one */
    json_t *failed, *skipped; /* arrays of {"path", "reason"} */
    /* private: */
    json_t *todo; /* paths below the mount */
    size_t next;  /* of todo: the first that was not taken */
    json_t *seen; /* {PATH: is it one of the command's?} */
    size_t good;  /* of the command's: not failed so far */
};

/* names: as the user wrote them, relative to the working directory; links are followed.  What is in no mount, or in another
 * one than the names before it, has failed. */
void paths_begin(struct paths *p, char **names, int n);
void paths_add(struct paths *p, const char *name); /* one more */
void paths_end(struct paths *p);
/* The next one that was not taken yet; valid until paths_end.  NULL: there is none. */
const char *paths_next(struct paths *p);
/* So many of them that their line has less than CONTROL_LINE_MAX bytes: each has a quarter of that at most, and JSON doubles
 * backslashes. */
json_t *paths_next_part(struct paths *p);
bool paths_left(const struct paths *p);
/* A symbolic link below the mount: where it leads is one path more, unless that was named or taken before, or lies below such
 * a directory; if it does not lead into the mount it is skipped. */
void paths_add_link(struct paths *p, const char *link);
void paths_failed_below(struct paths *p, const char *path, const char *reason);
/* Has at least one of the names not failed itself? */
bool paths_any_good(const struct paths *p);
/* What has failed, and what was skipped, a line each on standard output. */
void paths_print(const struct paths *p);

/* Calls fn for each line of this file, "-": of standard input; end: what a line ends with.  Stops when fn returns other than 0, and
 * returns that; -errno, complained of: the file cannot be read. */
int list_each(const char *name, char end, int (*fn)(void *arg, const char *path), void *arg);

#endif
