/* supervise.h - a daemon that dies by a signal is started again (supervise.c).  Main thread, before
 * any other is made. */
#ifndef EDDY_FS_DAEMON_SUPERVISE_H
#define EDDY_FS_DAEMON_SUPERVISE_H

#include <stdbool.h>

#include "transport/base.h"

/* What a daemon is started for. */
enum start {
    START_FIRST,    /* directories.c has checked and cleared */
    START_AGAIN,    /* mount again, where the dead mount still is */
    START_RECOVERY, /* the mount is not wanted any more: flush what is left, without it */
};

/* Becomes the supervisor; returns in each daemon that it starts, and never in the supervisor, which
 * ends with the last daemon's code. */
enum start supervise(enum log_level level);
/* The daemon tells its supervisor, if it has one, that the mount answers. */
void supervise_ready(void);
/* The number that pass_on gave the signal, if the supervisor passed it on; else 0. */
struct supervise_signal {
    int sender, value; /* si_pid, si_value of a queued signal */
};
unsigned supervise_passed(struct supervise_signal s);
/* How many times this mount's daemon was started again.  Any thread. */
unsigned supervise_restarts(void);

#endif
