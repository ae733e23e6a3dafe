/* waits.c - see waits.h. */
#include "transport/waits.h"

_Thread_local struct waits waits_here;

const char *const wait_names[WAIT_KINDS] = {
#define X(NAME, text) text,
    WAITS_FOR(X)
#undef X
};
