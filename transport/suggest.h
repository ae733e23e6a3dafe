/* suggest.h - options and commands that were mistyped.  Main thread. */
#ifndef EDDY_TRANSPORT_SUGGEST_H
#define EDDY_TRANSPORT_SUGGEST_H

#include <getopt.h>
#include <stddef.h>

#define SUGGEST_WHY 256

/* Which of the n names may be meant by `word`?  The one with the least letters to add, remove, change or exchange with their
 * neighbour, if these are no more than a third of the longer one's; else the one that the word begins with, before a '-'; else
 * NULL.  '_' counts as '-'. */
const char *suggest(const char *word, const char *const *names, size_t n);
/* As getopt_long, which prints nothing: at '?' why says what is wrong with which option, and what may be meant. */
int option_next(int argc, char **argv, const char *shorts, const struct option *longs, char why[SUGGEST_WHY]);

#endif
