/* slots.h - the order of a view's members at a place: a pure function of
 * their ids and weights, in integers, the same on every machine.
 *
 * A member's times depend only on its own id and weight.  So a member that leaves only
 * drops out of the orders, and one that joins is only put into them: no more moves than must move.
 */
#ifndef EDDY_PLACEMENT_RING_SLOTS_H
#define EDDY_PLACEMENT_RING_SLOTS_H

#include "transport/view.h"

#define SLOT_BITS      21
#define SLOTS          (1u << SLOT_BITS)
#define SLOTS_AT_PLACE 2 /* look-ups have a line for each of these */
#define BLOCK_BITS     14
#define BLOCK_SLOTS    (1u << BLOCK_BITS) /* slots that are filled together */
#define BLOCKS         (SLOTS / BLOCK_SLOTS)
#define SLOT_ORDER_MAX 8 /* how many members of an order can be asked for */

/* A member and its time at a slot; the earlier one is the smaller number. */
typedef uint32_t visit_t;
#define VISIT_MEMBER_BITS 14
#define VISIT_NONE        UINT32_MAX
_Static_assert(SESSION_MAX_MEMBERS <= 1u << VISIT_MEMBER_BITS, "a member has too few bits");

static inline uint32_t visit_member(visit_t v)
{
    return v & ((1u << VISIT_MEMBER_BITS) - 1);
}

/* The i-th slot of a place on the ring, i < SLOTS_AT_PLACE. */
static inline uint32_t slot_at_place(uint64_t place, unsigned i)
{
    return (uint32_t)(place >> (64 - (i + 1) * SLOT_BITS)) & (SLOTS - 1);
}

struct slots;
struct slots *slots_new(const struct member *members, uint32_t n); /* copies what it needs */
void slots_free(struct slots *s);
size_t slots_bytes(const struct slots *s);

/* When the member arrives at the slot. */
visit_t slots_visit(const struct slots *s, uint32_t m, uint32_t slot);
/* The n-th member of the order at this place, as its position in the list of members.  The cost grows
 * with the number of members.  n < members, n < SLOT_ORDER_MAX. */
uint32_t slots_nth(const struct slots *s, uint64_t place, unsigned n);
/* The first two visits, of two members, to each slot of a block; VISIT_NONE if there are not as
 * many members. */
void slots_first_two(const struct slots *s, uint32_t block, visit_t first[BLOCK_SLOTS],
                     visit_t second[BLOCK_SLOTS]);

#endif
