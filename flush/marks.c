/* marks.c - dirty bytes against the marks. */
#include "flush/marks.h"

#include "transport/base.h"

#define MEASURE_MS  200
#define NEW_SHARE   0.3 /* of a measurement in the rate */
#define EXCESS_S    30.0
#define DRAIN_MIN   (8.0 * (1 << 20)) /* bytes/s: it ends */
#define RATE_MIN    (1.0 * (1 << 20)) /* bytes/s: of a PFS that is not known, or hangs */
#define TURN_MAX_NS 1000000000        /* the longest delay of one write */

uint64_t marks_bytes(uint64_t room, unsigned percent)
{
    return room / 100 * percent;
}

enum mark_level marks_level(struct marks *m, uint64_t dirty, uint64_t room)
{
    bool high = dirty > 0 && dirty >= marks_bytes(room, m->high);
    if (high)
        m->draining = true;
    else if (dirty <= marks_bytes(room, m->low))
        m->draining = false;
    return high ? MARK_HIGH : m->draining ? MARK_DRAIN : MARK_NONE;
}

static double rate(uint64_t now, uint64_t before, uint64_t ms)
{
    return now > before ? (double)(now - before) * 1000.0 / (double)ms : 0;
}

void marks_measure(struct marks *m, const struct marks_sample *now, bool busy)
{
    const struct marks_sample *last = &m->last;
    uint64_t ms = now->at_ms - last->at_ms;
    if (last->at_ms && ms < MEASURE_MS)
        return;
    if (last->at_ms) {
        double in = rate(now->dirty + now->flushed, last->dirty + last->flushed, ms),
               out = rate(now->written, last->written, ms);
        m->in += NEW_SHARE * (in - m->in);
        if (busy)
            m->out = m->out > 0 ? m->out + NEW_SHARE * (out - m->out) : out;
    }
    m->last = *now;
}

double marks_drain_rate(const struct marks *m, uint64_t dirty, uint64_t room)
{
    uint64_t low = marks_bytes(room, m->low);
    double excess = dirty > low ? (double)(dirty - low) : 0;
    return MAX(m->in + excess / EXCESS_S, DRAIN_MIN);
}

bool marks_full(uint64_t dirty, uint64_t len, uint64_t room)
{
    return dirty + len > marks_bytes(room, MARK_FULL);
}

uint64_t marks_slow(struct marks *m, uint64_t len, uint64_t dirty, uint64_t room, uint64_t now_ns)
{
    uint64_t high = marks_bytes(room, m->high), full = marks_bytes(room, MARK_FULL);
    if (dirty <= high || full <= high)
        return now_ns;
    double share = MIN((double)(dirty - high) / (double)(full - high), 1.0);
    return limit_turn(&m->writers, MAX(m->out, RATE_MIN) / share, len, now_ns, TURN_MAX_NS);
}
