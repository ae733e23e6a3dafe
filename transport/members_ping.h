/* members_ping.h - which members answer (members_ping.c).  Network thread. */
#ifndef EDDY_TRANSPORT_MEMBERS_PING_H
#define EDDY_TRANSPORT_MEMBERS_PING_H

#include "transport/members_int.h"

/* members_ping.c */
struct node *members_node_of(uint64_t id, uint64_t incarnation);
bool members_alive(struct node *n, uint64_t t);
/* True: the next view is to be without it: it was suspected for long enough, or is surely dead. */
bool members_dead(const struct node *n, uint64_t t);
/* True: it is suspected, and will be dead within ms if it stays silent. */
bool members_dead_in(const struct node *n, uint64_t t, uint64_t ms);
/* a newer incarnation was heard from: this one is dead */
bool members_superseded(const struct member *m);
/* the first member that is not suspected and stays */
const struct member *members_keeper_of(const struct view *v);
bool members_keeper_is_self(void);
void members_lease_from(uint64_t since_ms);
/* tries it twice, then suspects it; it is silent since since_ms */
void members_probe(struct node *n, uint64_t since_ms);
void members_ping_node(struct node *n, bool probe, uint64_t adopted);
void members_ping_round(uint64_t t);
void members_handle_ping(struct msg *m);
void members_handle_note(struct msg *m);
void members_heard(uint64_t id, uint64_t incarnation, uint64_t view);
void members_went_down(uint64_t id, uint64_t incarnation, int err);

#endif
