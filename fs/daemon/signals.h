/* signals.h - SIGTERM, SIGINT and SIGHUP.
 *
 * While the parts are being started, a signal ends the process.  Later the first signal asks the daemon to
 * flush and leave, and a second one makes it leave at once.  A thread of its own waits for the signals,
 * because all other threads may be waiting for a PFS that hangs.
 */
#ifndef EDDY_FS_DAEMON_SIGNALS_H
#define EDDY_FS_DAEMON_SIGNALS_H

/* Call it before any other thread is made, and after daemonising.  leave_now is called in the signals'
 * thread, and ends the process. */
void signals_start(void (*leave_now)(int signal));
/* The parts are started: from now on the first one only asks. */
void signals_ask(void);
/* Readable when one has asked. */
int signals_fd(void);

#endif
