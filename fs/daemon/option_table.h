/* option_table.h - the one table of the daemon's options: for the command line, -o, the environment, configuration files, --help,
 * what may be meant by a mistyped name, and scripts (`eddyfs --list-options`).  Main thread only. */
#ifndef EDDY_FS_DAEMON_OPTION_TABLE_H
#define EDDY_FS_DAEMON_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base.h"

enum {
    OPT_CACHE_DIR = 256,
    OPT_CACHE_SIZE,
    OPT_REQUIRE_MOUNT,
    OPT_SINGLETS,
    OPT_SESSION,
    OPT_SESSION_DIR,
    OPT_NODE,
    OPT_LISTEN,
    OPT_WAIT_NODES,
    OPT_WAIT_TIMEOUT,
    OPT_SUSPECT_AFTER,
    OPT_DEAD_AFTER,
    OPT_LEASE,
    OPT_OPEN_WAIT,
    OPT_CHUNK_SIZE,
    OPT_FLUSH,
    OPT_FLUSH_WAIT,
    OPT_FLUSH_WRITERS,
    OPT_FLUSH_LIMIT,
    OPT_DIRTY_HIGH,
    OPT_DIRTY_LOW,
    OPT_DIRTY_AGE,
    OPT_FSYNC,
    OPT_ATTR_TIMEOUT,
    OPT_NEGATIVE_TIMEOUT,
    OPT_IMMUTABLE,
    OPT_PASSTHROUGH,
    OPT_NO_PASSTHROUGH,
    OPT_URING,
    OPT_NO_URING,
    OPT_MEMORY,
    OPT_RDMA_MEMORY,
    OPT_RDMA_TRANSPORTS,
    OPT_USER,
    OPT_ON_FAILURE,
    OPT_SUPERVISE,
    OPT_NO_SUPERVISE,
    OPT_LOG,
    OPT_LOG_LEVEL,
    OPT_SLOW,
    OPT_METRICS,
    OPT_REPORT,
    OPT_SHOW_CONFIG,
    OPT_LIST_OPTIONS,
    OPT_JSON,
};

#define OPTION_MANY         1u /* may be given several times; each counts */
#define OPTION_COMMAND_ONLY 2u /* only on the command line */

struct option_entry {
    const char *name;
    const char *value; /* what its value is called; NULL: yes or no */
    int code;          /* OPT_..., or its letter */
    const char *def;   /* the default, for people; NULL: told in the help, or none */
    const char *help;
    const char *negates; /* the option of which this is the "no" */
    unsigned flags;
};
extern const struct option_entry option_table[];
extern const size_t option_count;

/* name: len bytes, with '-' or '_'.  NULL: none. */
const struct option_entry *option_find(const char *name, size_t len);
/* Which option that a file, a variable or -o can have may be meant; NULL. */
const char *option_meant(const char *name);
#define OPTION_ENV_MAX 48
/* The variable of the environment: EDDY_CACHE_DIR for cache-dir. */
char *option_env(const struct option_entry *o, char name[OPTION_ENV_MAX]);
/* yes, on, true, 1; no, off, false, 0.  -EINVAL */
int option_yes_no(const char *text, bool *yes);
/* For --help and --list-options. */
void option_print_help(void);
void option_print_list(void);

#endif
