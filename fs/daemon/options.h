/* options.h - the daemon's command line.  Main thread only. */
#ifndef EDDY_FS_DAEMON_OPTIONS_H
#define EDDY_FS_DAEMON_OPTIONS_H

#include "flush/flush.h"
#include "transport/base.h"

struct options {
    struct flush_config flush;
    enum log_level log_level;
    const char *session_dir; /* NULL: the default */
    bool supervise_given;    /* --supervise or --no-supervise */
    bool help, version, show_config, list_options, json;
};

/* Parses argv, and for options that are not given the environment and the configuration files (config_file.h), into `settings` and
 * *o; strings live as long as the program.  0, or -EINVAL after a message on standard error that says what is wrong and
 * what to do. */
int options_parse(int argc, char **argv, struct options *o);
/* The session directory, once settings.pfs_dir is resolved. */
void options_session_dir(void);
void options_help(void);
/* Prints each option with its value, and where that comes from; as JSON with --json. */
void options_show_config(void);
/* What may be a mistake, as variables that look like mistyped options, into the log. */
void options_say_notes(void);
/* Says on standard error why the daemon can not start; end: what follows the message.  -EINVAL */
int say_refused(const char *end, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
