/* decide.h - whether a dirty file is written to the PFS now.  One decision in one place: a pure
 * function of what is known of the file and of the node; docs/flush.md has the table. */
#ifndef EDDY_FLUSH_DECIDE_H
#define EDDY_FLUSH_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flush_policy {
    FLUSH_IDLE,      /* in lulls */
    FLUSH_IMMEDIATE, /* as soon as it is dirty */
    FLUSH_CLOSE,     /* nearly so; and close returns when the file is on the PFS */
    FLUSH_END,       /* when somebody asks, at the unmount, or at a mark */
};
#define FLUSH_POLICIES 4

/* "idle", "immediate", "close", "end"; len bytes, no NUL needed.  -EINVAL. */
int flush_policy_parse(const char *name, size_t len, enum flush_policy *out);
const char *flush_policy_name(enum flush_policy p);

/* Dirty bytes against the marks (marks.c). */
enum mark_level {
    MARK_NONE,  /* nothing is to be done about them */
    MARK_DRAIN, /* the high mark was reached and the low one is not yet */
    MARK_HIGH,  /* above the high mark */
};

#define NEVER UINT64_MAX

struct situation {
    enum flush_policy policy;
    bool asked;        /* somebody waits for it, or for room */
    uint64_t retry_ms; /* it failed: time until its next try; 0: none, or over */
    enum mark_level level;
    uint64_t lull_ms;  /* lull_due_ms; NEVER: not by itself */
    uint64_t dirty_ms; /* how long it has been dirty */
    uint64_t most_dirty_ms; /* --dirty-age; NEVER: no bound */
};

enum flush_why {
    WHY_NOT, /* not now */
    WHY_ASKED,
    WHY_HIGH, /* at full speed */
    WHY_LULL, /* ... and at idle priority */
    WHY_POLICY,
    WHY_AGE,
    WHY_DRAIN, /* at a rate that follows the writers' */
};

/* *wait_ms, with WHY_NOT: time until the answer may change by itself; NEVER: not before something
 * happens. */
enum flush_why flush_decide(const struct situation *s, uint64_t *wait_ms);

#endif
