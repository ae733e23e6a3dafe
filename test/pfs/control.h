/*
 * The socket for commands to a running faultfs (commands.h). A connection carries one
 * line, then the answer: "ok" or "error" as its first line, then the text of the answer.
 */
#ifndef FAULTFS_CONTROL_H
#define FAULTFS_CONTROL_H

/* Listens at `path`, which is made anew. Before daemonising. Returns 0 or -errno. */
int control_listen(const char *path);

/* Answers from now on, in a thread of its own. Returns 0 or -errno. */
int control_start(void);

void control_stop(void);

/* The other end: sends the words as one line and prints the answer. Returns an exit code. */
int control_tell(const char *path, char *const *words);

#endif
