/* view.h - the nodes of a session: a member, an absent node, a view of all; as text in the session directory (view.c,
 * nodes.c). */
#ifndef EDDY_TRANSPORT_VIEW_H
#define EDDY_TRANSPORT_VIEW_H

#include "transport/base.h"

#define SESSION_MAX_MEMBERS 16384
#define NODE_NAME_MAX       64
#define NODE_ADDR_MAX       64
#define WEIGHT_MAX          (1u << 30)

struct member {
    uint64_t id; /* of the cache directory */
    uint64_t incarnation;
    char name[NODE_NAME_MAX + 1];
    char addr[NODE_ADDR_MAX]; /* "127.0.0.1:40123" or "[::1]:40123": where the hello is answered */
    uint32_t weight;          /* size of its cache in MiB: its share of the ring */
};

struct absent {
    uint64_t id, incarnation;
    char name[NODE_NAME_MAX + 1];
};

/* A view: never changed after it was made or read; never freed. */
struct view {
    uint64_t number;
    uint32_t nmembers, nabsent;
    struct member *members; /* sorted by id */
    struct absent *absents; /* sorted by id */
    bool closed;            /* the session is over; no view comes after this one (session_end.c) */
};

/* text <-> node file and view, for tests and the fuzzer.  -EPROTO when malformed. */
int node_parse(const char *text, size_t len, struct member *out);
char *node_print(const struct member *m, size_t *len); /* malloc'd */
int view_parse(const char *text, size_t len, struct view **out);
char *view_print(const struct view *v, size_t *len); /* malloc'd */
void view_free(struct view *v);                      /* tests only */
/* It was a member, did not leave cleanly, and has not come back. */
bool view_absent(const struct view *v, uint64_t id);

#endif
