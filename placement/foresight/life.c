/* life.c - the table of life.h. */
#include "placement/foresight/life.h"

#define NO LIFE_STATES /* it does not happen */
#define INIT LIFE_INIT
#define WRITING LIFE_WRITING
#define WRITTEN LIFE_WRITTEN
#define FLUSHED LIFE_FLUSHED
#define GONE LIFE_GONE
#define READING LIFE_READING
#define AHEAD LIFE_AHEAD
#define CONSUMED LIFE_CONSUMED

/* WRITTEN stays WRITTEN when it is admitted or consumed: it may not leave before it is flushed. */
static const unsigned char table[LIFE_STATES][LIFE_EVENTS] = {
    /*               WRITE    CLOSE    FLUSH    FLUSH_W. ADMIT    HERE     CONSUME   GIVE_UP  EVICT OTHER REMOVE */
    [LIFE_INIT]     = {WRITING, NO,      NO,      NO,      NO,      NO,      NO,       NO,      NO,   GONE, INIT},
    [LIFE_WRITING]  = {WRITING, WRITTEN, NO,      NO,      NO,      NO,      NO,       NO,      NO,   GONE, INIT},
    [LIFE_WRITTEN]  = {WRITING, NO,      FLUSHED, AHEAD,   WRITTEN, NO,      WRITTEN,  WRITTEN, NO,   GONE, INIT},
    [LIFE_FLUSHED]  = {WRITING, NO,      NO,      NO,      AHEAD,   NO,      CONSUMED, NO,      GONE, GONE, INIT},
    [LIFE_GONE]     = {WRITING, NO,      NO,      NO,      READING, FLUSHED, CONSUMED,   NO,      NO,   GONE, INIT},
    [LIFE_READING]  = {WRITING, NO,      NO,      NO,      NO,      AHEAD,   CONSUMED, GONE,    NO,   GONE, INIT},
    [LIFE_AHEAD]    = {WRITING, NO,      NO,      NO,      NO,      NO,      CONSUMED, FLUSHED, GONE, GONE, INIT},
    [LIFE_CONSUMED] = {WRITING, NO,      NO,      NO,      AHEAD,   NO,      CONSUMED, NO,      GONE, GONE, INIT},
};

bool life_step(enum life *state, enum life_event e)
{
    enum life next = table[*state][e];
    if (next == NO)
        return false;
    *state = next;
    return true;
}

const char *life_name(enum life state)
{
    static const char *const names[LIFE_STATES] = {"INIT", "WRITING", "WRITTEN", "FLUSHED",
                                                   "GONE", "READING", "AHEAD",   "CONSUMED"};
    return names[state];
}
