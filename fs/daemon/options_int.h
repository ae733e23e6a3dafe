/* options_int.h - between the parts of the options: options.c (the command line), option_sources.c, option_choice.c (option_choice.h),
 * option_show.c, option_values.c, options_defaults.c.  Main thread only. */
#ifndef EDDY_FS_DAEMON_OPTIONS_INT_H
#define EDDY_FS_DAEMON_OPTIONS_INT_H

#include "fs/daemon/options.h"

/* What is being parsed into, beside `settings`. */
extern struct options *options_out;
/* Where the value that is looked at comes from, for messages; NULL: the command line. */
extern const char *options_where;

/* ---- option_values.c: each 0, or -EINVAL after a message; name: the option's, without "--" ---- */
#define options_complain(...) say_refused(" (eddyfs -h lists the options)\n", __VA_ARGS__)
char *options_keep(char *text); /* malloc'd; for as long as the program lives */
int option_take_size(const char *name, const char *text, uint64_t min, uint64_t max,
                     uint64_t *value);
int option_take_seconds(const char *name, const char *text, double max, double *value);
int option_check_listen(const char *text);
int option_take_number(const char *name, const char *text, unsigned min, unsigned max,
                       unsigned *value);
int option_take_name(const char *name, const char *text, const char **value);
int option_take_percent(const char *name, const char *text, unsigned min, unsigned max,
                        unsigned *value);
int option_take_cache_size(const char *name, const char *text);
int option_take_chunk_size(const char *name, const char *text);
int option_take_immutable(const char *name, const char *text);
int option_take_policy(const char *name, const char *text);
int option_take_wait(const char *name, const char *text);
int option_take_age(const char *name, const char *text);
int option_take_time(const char *name, const char *text, uint32_t *ms);
int option_take_fsync(const char *name, const char *text);
int option_take_log_level(const char *name, const char *text);
int option_take_user(const char *text);

/* ---- options_defaults.c ---- */
void options_set_defaults(void);
/* Sets what was not given, and makes paths right for the working directory "/".  0, or -EINVAL after a
 * message. */
int options_complete(void);

#endif
