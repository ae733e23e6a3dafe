/* pattern.c - recognising streams in the reads of one open file.
 *
 * Each read is looked up among the streams, the surest match first:
 *
 *   it begins where a strided stream's next record does      that stream moves on
 *   it carries on where a stream's record ended              the record grows
 *   it lies in a strided stream's record                     a re-read
 *   it is near a sequential stream's end                     out of order, or a gap
 *   none of these                                            a new stream
 *
 * A sequential stream is recognised after START bytes in order, if the gaps between them are smaller than the
 * bytes read: the kernel sends a window of requests at once, and threads bring them here in any order.  The
 * first read of a stream counts only at the beginning of the file: elsewhere it may be a random one.  If
 * streams keep ending (others take their places), the next ones must become longer than those were: records
 * at random offsets are no sequence, however large they are.
 *
 * A read that matches no stream is also compared with earlier ones: it begins a stride if it and three
 * earlier reads have the same distance, one after the other, whatever reads were between them.  (Four points
 * are needed: with three, one random read in a hundred in a small file would look like a stride.)  Reads that
 * continue a record are not remembered, so only the beginnings of records are compared.  Near a stream that
 * is not recognised yet, IN_A_ROW equal distances are needed, with no other remembered read in between.
 *
 * The window starts at one chunk and doubles with each chunk or record that is entered.
 */
#include "placement/chunks/pattern.h"

#include <stddef.h>
#include <string.h>

#include "transport/base.h"

#define SLACK    (4u << 20)   /* how far out of order the kernel's read-ahead may come */
#define START    (256u << 10) /* bytes in order */
#define USUAL    (4u << 20)   /* limit of pattern.usual */
#define IN_A_ROW 5
#define RECENT   64 /* a stream without one of the last 64 reads gets no share of the window */

void pattern_init(struct pattern *p, uint64_t chunk, unsigned window)
{
    *p = (struct pattern){.chunk = chunk, .window = MAX(window, 1u)};
}

/* ---- how far ahead ---- */

/* The window's share of one stream, in chunks. */
static unsigned share(const struct pattern *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < PATTERN_STREAMS; i++) {
        const struct pattern_stream *s = &p->streams[i];
        n += s->used && s->window && p->clock - s->used < RECENT;
    }
    return MAX(p->window / MAX(n, 1u), 1u);
}

static void widen(const struct pattern *p, struct pattern_stream *s)
{
    s->window = s->window ? MIN(2 * s->window, share(p)) : 1;
}

/* True: the stream reads from each chunk on its way.  Then the window is counted in chunks, else in
 * records. */
static bool is_dense(const struct pattern *p, const struct pattern_stream *s)
{
    return s->step <= (int64_t)p->chunk && s->step >= -(int64_t)p->chunk;
}

static bool is_backward(const struct pattern_stream *s)
{
    return s->step < 0;
}

/* The chunk that a dense stream is at. */
static uint64_t here(const struct pattern *p, const struct pattern_stream *s)
{
    return is_backward(s) ? s->begin / p->chunk : (s->end - 1) / p->chunk;
}

static unsigned records_ahead(const struct pattern *p, const struct pattern_stream *s)
{
    uint64_t chunks = (s->record + p->chunk - 1) / p->chunk;
    return (unsigned)MIN(MAX(s->window / MAX(chunks, 1u), 1u), PATTERN_AHEAD);
}

static bool wants(const struct pattern *p, const struct pattern_stream *s)
{
    if (!s->window)
        return false;
    if (!is_dense(p, s))
        return s->asked < records_ahead(p, s);
    if (!s->any_asked)
        return true;
    uint64_t at = here(p, s);
    return is_backward(s) ? at > 0 && s->asked > at - MIN(at, s->window)
                          : s->asked < at + s->window;
}

/* ---- looking a read up ---- */

static struct pattern_stream *next_record_at(struct pattern *p, uint64_t off)
{
    for (unsigned i = 0; i < PATTERN_STREAMS; i++) {
        struct pattern_stream *s = &p->streams[i];
        if (s->used && s->step && off == s->begin + (uint64_t)s->step)
            return s;
    }
    return NULL;
}

/* The stream that the read continues without a gap; the one with the least overlap. */
static struct pattern_stream *continued_by(struct pattern *p, uint64_t off, uint64_t end)
{
    struct pattern_stream *best = NULL;
    for (unsigned i = 0; i < PATTERN_STREAMS; i++) {
        struct pattern_stream *s = &p->streams[i];
        if (s->used && off >= s->begin && off <= s->end && end > s->end &&
            (!best || s->end < best->end))
            best = s;
    }
    return best;
}

static struct pattern_stream *record_around(struct pattern *p, uint64_t off, uint64_t end)
{
    for (unsigned i = 0; i < PATTERN_STREAMS; i++) {
        struct pattern_stream *s = &p->streams[i];
        if (s->used && s->step && off >= s->begin && end <= s->end)
            return s;
    }
    return NULL;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static struct pattern_stream *sequential_near(struct pattern *p, uint64_t off)
{
    struct pattern_stream *best = NULL;
    for (unsigned i = 0; i < PATTERN_STREAMS; i++) {
        struct pattern_stream *s = &p->streams[i];
        if (s->used && !s->step && distance(off, s->end) <= SLACK &&
            (!best || distance(off, s->end) < distance(off, best->end)))
            best = s;
    }
    return best;
}

/* A free place, or the place of the stream that was read least recently. */
static struct pattern_stream *take_place(struct pattern *p)
{
    struct pattern_stream *best = &p->streams[0];
    for (unsigned i = 1; i < PATTERN_STREAMS; i++)
        if (p->streams[i].used < best->used)
            best = &p->streams[i];
    if (best->used)
        p->usual = MIN(MAX(p->usual / 2, best->end - best->begin), USUAL);
    return best;
}

/* ---- strides ---- */

/* True: `off` is among the oldest n remembered offsets, at *at. */
static bool was_before(const struct pattern *p, unsigned n, uint64_t off, unsigned *at)
{
    for (unsigned i = n; i-- > 0;)
        if (p->past[i] == off) {
            *at = i;
            return true;
        }
    return false;
}

/* The distance of this read and three earlier ones, one after the other; 0: there is none. */
static int64_t find_step(const struct pattern *p, uint64_t off)
{
    for (unsigned i = p->npast; i-- > 0;) {
        uint64_t step = off - p->past[i]; /* modulo 2^64: backward too */
        unsigned at;
        if (step && was_before(p, i, p->past[i] - step, &at) &&
            was_before(p, at, p->past[i] - 2 * step, &at))
            return (int64_t)step;
    }
    return 0;
}

/* The distance of this read and the last remembered ones, IN_A_ROW distances in a row; 0: they differ.  Near
 * a stream that may yet be recognised, requests of a read-ahead that come out of order can look like a
 * stride, so more of them are needed. */
static int64_t find_near_step(const struct pattern *p, uint64_t off)
{
    if (p->npast < IN_A_ROW)
        return 0;
    const uint64_t *last = &p->past[p->npast - 1];
    uint64_t step = off - *last;
    for (unsigned i = 1; i < IN_A_ROW; i++)
        if (last[-(int)i + 1] - last[-(int)i] != step)
            return 0;
    return (int64_t)step;
}

/* Keeps one entry per offset: re-reads must not push the others out. */
static void remember(struct pattern *p, uint64_t off)
{
    unsigned drop = 0;
    if (!was_before(p, p->npast, off, &drop) && p->npast < PATTERN_PAST) {
        p->past[p->npast++] = off;
        return;
    }
    memmove(&p->past[drop], &p->past[drop + 1], (p->npast - drop - 1) * sizeof(p->past[0]));
    p->past[p->npast - 1] = off;
}

/* The stream whose record began there; the new stride takes its place. */
static struct pattern_stream *begun_at(struct pattern *p, uint64_t begin)
{
    for (unsigned i = 0; i < PATTERN_STREAMS; i++)
        if (p->streams[i].used && p->streams[i].begin == begin)
            return &p->streams[i];
    return NULL;
}

static void enter_record(const struct pattern *p, struct pattern_stream *s, uint64_t off,
                         uint64_t end)
{
    bool dense = is_dense(p, s), first = !s->window;
    uint64_t before = first ? 0 : here(p, s);
    s->record = MAX(s->record, MAX(end - off, s->end - s->begin));
    s->begin = off;
    s->end = end;
    if (!dense)
        s->asked -= MIN(s->asked, 1u);
    if (first || !dense || here(p, s) != before)
        widen(p, s);
}

static void begin_stride(const struct pattern *p, struct pattern_stream *s,
                         const struct pattern_stream *last, int64_t step, uint64_t off,
                         uint64_t end)
{
    uint64_t record = last ? last->end - last->begin : 0;
    if (last && record > distance(off, last->begin))
        record = 0; /* not one record: several that were near each other were one stream until now */
    *s = (struct pattern_stream){.step = step, .record = record};
    enter_record(p, s, off, end);
}

/* ---- one read ---- */

static void judge_sequence(struct pattern *p, struct pattern_stream *s, uint64_t before)
{
    bool enters = (s->end - 1) / p->chunk != (before - 1) / p->chunk;
    if (s->read < START + p->usual || s->gaps > s->read)
        return;
    if (!s->window || enters)
        widen(p, s);
}

/* A record that grows far beyond the length of its stream's records becomes a sequential stream. */
static void grow_record(struct pattern *p, struct pattern_stream *s, uint64_t end)
{
    uint64_t before = s->end;
    s->end = end;
    if (!s->step) {
        s->read += end - before;
        judge_sequence(p, s, before);
    } else if (end - s->begin >= s->record + START) {
        *s = (struct pattern_stream){.begin = s->begin, .end = end, .read = end - s->begin};
        judge_sequence(p, s, before);
    }
}

/* The read is late itself, or is after a gap that a late one may close. */
static void read_near(struct pattern *p, struct pattern_stream *s, uint64_t off, uint64_t end)
{
    uint64_t before = s->end;
    if (off > s->end) {
        s->gaps += off - s->end;
        s->read += end - off;
        s->end = end;
    } else {
        s->gaps -= MIN(s->gaps, end - off);
        s->begin = MIN(s->begin, off);
    }
    judge_sequence(p, s, before);
}

/* A read that matches no stream by its offset.  Out-of-order reads near a recognised sequential stream make
 * no stride. */
static struct pattern_stream *elsewhere(struct pattern *p, uint64_t off, uint64_t end)
{
    struct pattern_stream *s = sequential_near(p, off);
    int64_t step = !s ? find_step(p, off) : s->window ? 0 : find_near_step(p, off);
    remember(p, off);
    if (step) {
        struct pattern_stream *last = begun_at(p, off - (uint64_t)step);
        s = last ? last : s ? s : take_place(p);
        begin_stride(p, s, last, step, off, end);
    } else if (s) {
        read_near(p, s, off, end);
    } else {
        s = take_place(p);
        *s = (struct pattern_stream){.begin = off, .end = end, .read = off ? 0 : end};
        judge_sequence(p, s, off + 1);
    }
    return s;
}

struct pattern_stream *pattern_saw(struct pattern *p, uint64_t off, uint64_t len)
{
    struct pattern_stream *s;
    uint64_t end = off + len;
    if (!len || end < off)
        return NULL;
    p->clock++;
    if ((s = next_record_at(p, off)))
        enter_record(p, s, off, end);
    else if ((s = continued_by(p, off, end)))
        grow_record(p, s, end);
    else if (!(s = record_around(p, off, end)))
        s = elsewhere(p, off, end);
    s->used = p->clock;
    return wants(p, s) ? s : NULL;
}

/* ---- what it wants ---- */

static unsigned want_forward(const struct pattern *p, struct pattern_stream *s, uint64_t chunks,
                             struct pattern_ahead *out)
{
    uint64_t at = here(p, s), first = s->any_asked ? MAX(at, s->asked) + 1 : at + 1;
    s->asked = at + s->window;
    s->any_asked = true;
    if (first >= chunks || first > s->asked)
        return 0;
    *out = (struct pattern_ahead){first, MIN(s->asked, chunks - 1)};
    return 1;
}

static unsigned want_backward(const struct pattern *p, struct pattern_stream *s, uint64_t chunks,
                              struct pattern_ahead *out)
{
    uint64_t at = here(p, s), until = at - MIN(at, s->window);
    unsigned n = 0;
    for (uint64_t i = s->any_asked ? MIN(at, s->asked) : at; i > until && n < PATTERN_AHEAD; i--)
        if (i - 1 < chunks)
            out[n++] = (struct pattern_ahead){i - 1, i - 1};
    s->asked = until;
    s->any_asked = true;
    return n;
}

static unsigned want_records(const struct pattern *p, struct pattern_stream *s, uint64_t size,
                             struct pattern_ahead *out)
{
    unsigned n = 0, ahead = records_ahead(p, s);
    for (unsigned i = (unsigned)s->asked + 1; i <= ahead; i++) {
        int64_t off;
        if (__builtin_mul_overflow(s->step, (int64_t)i, &off) ||
            __builtin_add_overflow((int64_t)s->begin, off, &off) || off < 0 ||
            (uint64_t)off >= size)
            break;
        uint64_t last = MIN((uint64_t)off + s->record, size) - 1;
        out[n++] = (struct pattern_ahead){(uint64_t)off / p->chunk, last / p->chunk};
    }
    s->asked = ahead;
    return n;
}

unsigned pattern_want(struct pattern *p, struct pattern_stream *s, uint64_t size,
                      struct pattern_ahead out[PATTERN_AHEAD])
{
    uint64_t chunks = size / p->chunk + (size % p->chunk > 0);
    if (!wants(p, s))
        return 0;
    if (!is_dense(p, s))
        return want_records(p, s, size, out);
    return is_backward(s) ? want_backward(p, s, chunks, out) : want_forward(p, s, chunks, out);
}
