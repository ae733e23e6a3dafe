/* state.c - commands about the session: the ring, the view, what this node holds; leaving it. */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "placement/claims/claim_life.h"
#include "placement/claims/claim_own.h"
#include "placement/claims/home.h"
#include "placement/ring/ring.h"
#include "transport/members.h"
#include "transport/view.h"

#define LEAVE_MS 20000

void do_ring(struct command *c)
{
    const struct view *v = members_view();
    uint64_t home, next;
    struct fid fid;
    int err = v ? fid_at(word(c, 1), &fid) : -ENOTCONN;

    if (err) {
        answer_code(c, err);
        return;
    }
    home = ring_home(ring_of(v), fid, 0);
    next = ring_home(ring_of(v), fid, 1);
    answer(c, "%s %s", members_name(home), next ? members_name(next) : "-");
}

void do_view(struct command *c)
{
    const struct view *v = members_view();
    char *text = NULL;
    size_t len;
    FILE *f;

    if (!v) {
        answer(c, "none");
        return;
    }
    f = open_memstream(&text, &len);
    if (!f)
        die("out of memory");
    fprintf(f, "%" PRIu64 " ", v->number);
    for (uint32_t i = 0; i < v->nmembers; i++)
        fprintf(f, "%s%s", i ? "," : "", v->members[i].name);
    fprintf(f, " absent ");
    for (uint32_t i = 0; i < v->nabsent; i++)
        fprintf(f, "%s%s", i ? "," : "", v->absents[i].name);
    if (!v->nabsent)
        fprintf(f, "-");
    fclose(f);
    answer(c, "%s lease %d settled %d", text, members_lease(), members_settled());
    free(text);
}

void do_status(struct command *c)
{
    struct home_status h;

    home_status(&h);
    answer(c, "claims %u records %u locks %u lost %u", claim_held(), h.records, h.locks, h.lost);
}

void do_pretend(struct command *c)
{
    uint64_t n = number(c, 1);

    for (uint64_t i = 1; i <= n; i++) {
        struct fid fid = {i * 0x9e3779b97f4a7c15u, i};

        own_add(fid, members_incarnation(), i, 0);
    }
    answer_code(c, 0);
}

void do_leave(void *arg)
{
    struct command *c = arg;
    unsigned held = claim_give_back_all();

    answer_code(c, held ? -EBUSY : members_leave(LEAVE_MS));
}
