/* config_file.h - configuration files: /etc/eddyfs.conf and ~/.config/eddyfs.conf.  Main thread only.
 *
 *     # for all mounts
 *     cache-size = 40%
 *     fixed require-mount = /lustre
 *
 *     [/lustre/project]
 *     # for PFS directories that are this one or below it; the longest path that fits counts
 *     flush = end
 *     supervise = yes
 *
 * One `name = value` a line, named as the long options; blanks around both do not count, and the value goes to the end of the
 * line.  Lines that begin with # or ; are comments.  `fixed`, in the site's file: nothing else may set it to another value.
 */
#ifndef EDDY_FS_DAEMON_CONFIG_FILE_H
#define EDDY_FS_DAEMON_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CONFIG_MAX (1u << 20) /* bytes of a file */

struct config_line {
    unsigned line;
    size_t section; /* bytes of the path of the section that it is in; 0: before any */
    bool applies;   /* the section is for one of the directories */
    bool fixed;
    const char *name, *value; /* valid during the call; neither is empty */
};
struct config_error {
    unsigned line;
    char why[160];
};

/* Calls fn for each setting, in order, until it does not return 0.  dirs: the names of the PFS directory, absolute and plain
 * (path_make_plain), NULL at their end.  What fn returned; -EPROTO: e says what is wrong in which line. */
int config_parse(const char *text, size_t len, const char *const *dirs, int (*fn)(void *arg, const struct config_line *l),
                 void *arg, struct config_error *e);
/* Is one of dirs dir, or below it? */
bool config_is_in_one(const char *dir, const char *const *dirs);
/* The file's bytes (malloc'd, a NUL behind them).  `owner` or root must own it, or, in a user namespace, somebody for whom it has no
 * number, as it has none for the machine's root (who owns /etc there decides what it holds, whatever the owner): else -EACCES.  It must be a regular file, nobody else
 * may be able to write to it, and it must not be too large: else -EPERM; both with why.  -ENOENT; -errno. */
int config_read(const char *path, uid_t owner, char **text, size_t *len, char *why, size_t whylen);
/* Does this process run in a user namespace that is not the machine's own? */
bool config_in_user_namespace(void);

#endif
