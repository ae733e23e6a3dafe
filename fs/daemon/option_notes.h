/* option_notes.h - what is no mistake for certain, and is told in the log and by --show-config.  Main thread only. */
#ifndef EDDY_FS_DAEMON_OPTION_NOTES_H
#define EDDY_FS_DAEMON_OPTION_NOTES_H

/* After 16 of them more are forgotten. */
void options_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void options_forget_notes(void);
void options_each_note(void (*fn)(void *arg, const char *text), void *arg);

#endif
