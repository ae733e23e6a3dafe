/* served.c - a table by fid, in which a newer file takes the place of an older one.  Only the network thread
 * uses it, so it needs no lock.  References are dropped in libuv's pool: the last one may remove a data file.
 */
#include "placement/chunks/served.h"

#include "placement/pfs/pfs_fid.h"
#include "transport/loop.h"

#define PLACES  256
#define KEEP_MS 1000

static struct {
    struct place {
        struct file *f; /* referenced, or NULL */
        uint64_t used_ms;
    } place[PLACES];
    unsigned n;
    struct loop_timer *timer;
    bool armed, stopped;
} served;

static void put(void *f)
{
    file_put(f);
}

static struct place *place_of(struct fid fid)
{
    return &served.place[fid.lo % PLACES];
}

static void drop(struct place *p)
{
    loop_work(put, NULL, p->f);
    p->f = NULL;
    served.n--;
}

static void on_timer(void *arg)
{
    (void)arg;
    uint64_t now = boot_ms();
    for (unsigned i = 0; i < PLACES; i++)
        if (served.place[i].f && now - served.place[i].used_ms >= KEEP_MS)
            drop(&served.place[i]);
    if (served.n)
        return;
    loop_timer_stop(served.timer);
    served.armed = false;
}

static void arm(void)
{
    if (served.armed)
        return;
    if (!served.timer)
        served.timer = loop_timer_new(on_timer, NULL);
    loop_timer_set(served.timer, KEEP_MS, KEEP_MS);
    served.armed = true;
}

static void keep(void *arg)
{
    struct file *f = arg;
    struct place *p = place_of(f->fid);
    if (served.stopped || p->f == f) {
        loop_work(put, NULL, f);
        return;
    }
    if (p->f)
        drop(p);
    *p = (struct place){.f = f, .used_ms = boot_ms()};
    served.n++;
    arm();
}

struct file *served_find(struct fid fid)
{
    struct place *p = place_of(fid);
    if (!p->f || !fid_eq(p->f->fid, fid))
        return NULL;
    p->used_ms = boot_ms();
    return p->f;
}

void served_keep(struct file *f)
{
    loop_post(keep, f);
}

void served_start(void)
{
    served.stopped = false;
}

static void stop(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < PLACES; i++)
        if (served.place[i].f)
            drop(&served.place[i]);
    if (served.timer)
        loop_timer_free(served.timer);
    served.timer = NULL;
    served.armed = false;
    served.stopped = true;
}

void served_stop(void)
{
    loop_call(stop, NULL);
}
