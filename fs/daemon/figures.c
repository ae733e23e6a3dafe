/* figures.c - see figures.h. */
#include "fs/daemon/figures.h"

#include "flush/flush_status.h"
#include "fs/daemon/last_view.h"
#include "fs/request.h"
#include "placement/claims/claim_life.h"
#include "placement/claims/home.h"
#include "placement/claims/look.h"
#include "placement/foresight/foresight.h"
#include "placement/pfs/pfs.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_open.h"
#include "transport/members.h"

struct gauges {
#define X(name, help) uint64_t name;
    GAUGES(X)
#undef X
};

static void gauge_store(struct gauges *g)
{
    struct store_usage u;
    store_usage(&u);
    g->cache_size_bytes = u.limit;
    g->cache_used_bytes = u.used;
    g->cache_content_bytes = u.content;
    g->cache_files = u.files;
    g->dirty_bytes = u.dirty;
}

static void gauge_flush(struct gauges *g)
{
    struct flush_status s;
    flush_status(&s);
    g->pending_files = s.pending_files;
    g->failed_files = s.failed_files;
    g->oldest_dirty_ms = s.oldest_ms;
}

static void gauge_files(struct gauges *g)
{
    struct home_status h;
    struct foresight_status f;
    home_status(&h);
    foresight_status(&f, false);
    g->open_files = look_open_files();
    g->passthrough_files = kernel_io_open_files();
    g->claims = claim_held();
    g->locks = h.locks;
    g->lost_files = h.lost;
    g->hints_waiting = f.hints;
    g->hint_queues = f.queues;
}

static void gauge_nodes(struct gauges *g)
{
    const struct view *v = last_view();
    g->nodes = v ? v->nmembers : 0;
    for (uint32_t i = 0; v && i < v->nmembers; i++)
        g->nodes_suspected += members_suspected(v->members[i].id);
    g->joined = members_view() != NULL;
}

void figures_take(struct figure out[FIGURES])
{
    struct gauges g = {0};
    gauge_store(&g);
    gauge_flush(&g);
    gauge_files(&g);
    gauge_nodes(&g);
    g.requests_waiting = requests_waiting();
    g.pfs_silent_ms = pfs_waiting_ms();
#define X(name, help) *out++ = (struct figure){#name, help, true, counted(name)};
    COUNTERS(X)
#undef X
#define X(name, help) *out++ = (struct figure){#name, help, false, g.name};
    GAUGES(X)
#undef X
}
