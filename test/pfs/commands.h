/* The commands to a faultfs, while it runs or by --fault when it starts: lines of text. */
#ifndef FAULTFS_COMMANDS_H
#define FAULTFS_COMMANDS_H

#include <stdio.h>

/* The lines that there are, for the usage text. */
extern const char commands_text[];

/*
 * Does what the line says and writes the answer to `out`: a fault's number, a list, or the reason of a
 * refusal and what to write instead. Returns 0, or -EINVAL if the line is not one of commands_text. Any
 * thread.
 */
int commands_do(const char *line, FILE *out);

#endif
