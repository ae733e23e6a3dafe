/* paths.h - paths on the command line, before anything is mounted.  Any thread. */
#ifndef EDDY_FS_DAEMON_PATHS_H
#define EDDY_FS_DAEMON_PATHS_H

#include <stdbool.h>

/* Is `path` below `dir`, and not `dir` itself?  Both absolute, without links. */
bool path_is_below(const char *path, const char *dir);
/* The absolute path without links.  Its last name is not resolved, because that may be a dead mount.  malloc'd; NULL with
 * errno. */
char *path_resolve_parent(const char *path);
/* The same, of the longest part of an absolute path that is there now.  malloc'd; NULL with errno. */
char *path_resolve_existing(const char *path);
/* In place: without "//", "." and a '/' at the end; absolute stays absolute.  false: it has "..", and where that leads only the
 * file system knows; the text is spoilt then. */
bool path_make_plain(char *path);

#endif
