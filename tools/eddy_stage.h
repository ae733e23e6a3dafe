/* eddy_stage.h - what eddy_stage.c and eddy_stage_ask.c share. */
#ifndef EDDY_TOOLS_EDDY_STAGE_H
#define EDDY_TOOLS_EDDY_STAGE_H

#include <jansson.h>

#include "tools/eddy.h"
#include "tools/eddy_paths.h"

struct stage_asked {
    enum { STAGE_DO, STAGE_CHECK, STAGE_STATUS, STAGE_CANCEL, STAGE_DROP } what;
    bool spread, wait, quiet, json, all;
    int64_t pin_ms; /* 0: none; -1: until unstage */
    const char *list;
    char end; /* of a name in the list */
    uint64_t deadline;
};

/* --status and --cancel, of numbers and paths; returns the exit code. */
int stage_ask_each(char **names, int n, const struct stage_asked *asked);

#endif
