/* eddy_progress.c - one line on a terminal that shows the progress of long work. */
#include <stdio.h>
#include <unistd.h>

#include "tools/eddy_files.h"
#include "transport/base.h"

#define SHOW_MS 200

static bool shown;

/* The rate of the last seconds: an average that forgets what is older than about 3 s. */
static void measure(struct progress *p, uint64_t now, uint64_t done)
{
    if (!p->last_ms || done < p->last_bytes) {
        p->last_ms = now;
        p->last_bytes = done;
        return;
    }
    double seconds = (double)(now - p->last_ms) / 1000;
    if (seconds < 0.1)
        return;
    double rate = (double)(done - p->last_bytes) / seconds;
    double weight = seconds >= 3 || p->rate <= 0 ? 1 : seconds / 3;
    p->rate += (rate - p->rate) * weight;
    p->last_ms = now;
    p->last_bytes = done;
}

void progress_show(struct progress *p, uint64_t done, uint64_t total)
{
    char a[24], b[24], c[24];
    uint64_t now = boot_ms();
    if (!isatty(STDERR_FILENO))
        return;
    measure(p, now, done);
    if (shown && now - p->shown_ms < SHOW_MS)
        return;
    p->shown_ms = now;
    fprintf(stderr, "\r\033[K%s: %s of %s", p->what, size_format(done, a, sizeof(a)),
            size_format(total, b, sizeof(b)));
    if (p->rate >= 1) {
        fprintf(stderr, ", %s/s", size_format((uint64_t)p->rate, c, sizeof(c)));
        if (total > done)
            fprintf(stderr, ", %.0f s left", (double)(total - done) / p->rate + 0.5);
    }
    fflush(stderr);
    shown = true;
}

void progress_clear(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}
