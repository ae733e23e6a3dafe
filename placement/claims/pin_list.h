/* pin_list.h - the list of pins (pins.h).  Any thread. */
#ifndef EDDY_PLACEMENT_CLAIMS_PIN_LIST_H
#define EDDY_PLACEMENT_CLAIMS_PIN_LIST_H

#include "placement/store/file.h"

/* One open at another node.  So the messages about it may come twice. */
struct pin_id {
    uint64_t node, incarnation, number;
};

struct pin {
    struct pin *next;
    struct pin_id id;
    bool writer;    /* claim_change_begin was called */
    struct file *f; /* referenced, open on the PFS */
    uint64_t since_ms;
    bool seen; /* in this node's view */
};

/* Returns what the caller has to end, or NULL: one of the same open that was there; or p itself, if no new ones are
 * taken. */
struct pin *pin_list_put(struct pin *p);
/* Takes it out; NULL: there is none. */
struct pin *pin_list_take(const struct pin_id *id, const struct file *f);
/* Takes out all of which fn says true, as a list; fn takes no lock. */
struct pin *pin_list_take_all(bool (*fn)(struct pin *p, const void *arg), const void *arg);
bool pin_list_is_empty(void);
/* Are new ones refused from now on? */
void pin_list_refuse(bool refused);
/* Calls fn for each pin of the file; fn takes no lock. */
void pin_list_of(const struct file *f, void (*fn)(void *arg, const struct pin_id *id), void *arg);

#endif
