/* option_notes.c - see option_notes.h. */
#include "fs/daemon/option_notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/daemon/options_int.h"

#define NOTES 16

static char *notes[NOTES];
static unsigned nnotes;

void options_note(const char *fmt, ...)
{
    va_list ap;
    char *text;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        die("out of memory");
    if (nnotes < NOTES)
        notes[nnotes++] = options_keep(text);
    else
        free(text);
}

void options_forget_notes(void)
{
    nnotes = 0;
}

void options_each_note(void (*fn)(void *arg, const char *text), void *arg)
{
    for (unsigned i = 0; i < nnotes; i++)
        fn(arg, notes[i]);
}

static void say(void *arg, const char *text)
{
    (void)arg;
    log_warn("%s", text);
}

void options_say_notes(void)
{
    options_each_note(say, NULL);
}
