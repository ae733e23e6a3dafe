/* option_choice.h - which value of each option counts, and where it comes from.
 *
 * In this order: the command line, the environment, the user's file, the site's file (option_sources.c reads the last three).  In a
 * file, the section with the longest path counts, and before the sections what is for all; of two in one place, the later one.  What
 * the site has fixed, nothing else may set to another value; that guards against mistakes and is no barrier: a user can run another
 * program.
 *
 * Main thread only.
 */
#ifndef EDDY_FS_DAEMON_OPTION_CHOICE_H
#define EDDY_FS_DAEMON_OPTION_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

struct option_entry;

enum option_source { FROM_SITE, FROM_USER, FROM_ENVIRONMENT, FROM_COMMAND, OPTION_SOURCES }; /* the later ones count before */

/* One value, as it was given.  The texts stay. */
struct option_given {
    const char *value; /* "yes" or "no" of an option without a value */
    const char *where; /* "FILE:LINE", "$EDDY_..."; NULL: the command line */
    enum option_source from;
    size_t section; /* of a file: bytes of the section's path; 0: before any */
    bool fixed;
};
/* All that one place gives for an option: one, or several of an option that may be repeated. */
struct choice {
    struct option_given *given;
    unsigned n, room;
};

/* Forgets all. */
void choose_begin(void);
/* Notes a value.  0, or -EINVAL after a message. */
int choose(const struct option_entry *o, struct option_given g);
/* What counts; NULL: no place gives a value. */
const struct choice *choice_of(const struct option_entry *o);
/* Has the site's file a value that nothing else may change? */
bool choice_is_fixed(const struct option_entry *o);
/* Calls set for each option that has a value: its code, its name, the value.  Ends with the first error, and returns it. */
int choose_apply(int (*set)(int code, const char *name, const char *value));

/* ---- option_sources.c ---- */
/* The files and the environment.  pfs_dir: as it was given; NULL: none.  for_user: root mounts for a user, and takes nothing of
 * anybody's home.  0, or -EINVAL after a message. */
int choose_from_elsewhere(const char *pfs_dir, bool for_user);
extern const char *option_site_file; /* for tests */

#endif
