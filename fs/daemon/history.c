/* history.c - see history.h.
 *
 * ROWS rows at most.  When they are full each second one goes, and from then on a row is made half as often: the figures are
 * counters and levels, so what is between two rows needs no row of its own.
 */
#include "fs/daemon/history.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/daemon/figures.h"
#include "transport/lock.h"

#define ROWS 1024

static const char *const series[] = {
    "read_local_bytes", "read_peer_bytes", "read_pfs_bytes", "written_bytes", "flushed_bytes", "flushed_lull_bytes", "pfs_read_bytes",
    "pfs_write_bytes", "pfs_name_ops", "messages_sent", "served_bytes", "evicted_bytes", "slowed_ms", "dirty_bytes",
    "cache_used_bytes", "open_files", "nodes",
};
#define SERIES ARRAY_LEN(series)

static struct {
    struct lock lock; /* RANK_LEAF */
    pthread_cond_t changed;
    bool runs, ending;
    pthread_t thread;
    time_t began;
    unsigned interval_s, rows;
    size_t figure[SERIES]; /* which one it is */
    uint64_t v[ROWS][SERIES];
} h = {.lock = {.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = RANK_LEAF}};

static void take_row(uint64_t row[SERIES])
{
    struct figure all[FIGURES];
    figures_take(all);
    for (size_t i = 0; i < SERIES; i++)
        row[i] = all[h.figure[i]].value;
}

/* Lock held. */
static void thin_out(void)
{
    for (unsigned i = 2; i < ROWS; i += 2) /* row n is of n intervals after the first one */
        memcpy(h.v[i / 2], h.v[i], sizeof(h.v[0]));
    h.rows = ROWS / 2;
    h.interval_s *= 2;
}

static void *watch(void *arg)
{
    uint64_t row[SERIES], due = boot_ms() + 1000;
    lock_take(&h.lock);
    while (!h.ending) {
        uint64_t now = boot_ms();
        if (now < due) {
            lock_wait(&h.lock, &h.changed, due - now);
            continue;
        }
        lock_drop(&h.lock);
        take_row(row);
        lock_take(&h.lock);
        if (h.rows == ROWS)
            thin_out();
        memcpy(h.v[h.rows++], row, sizeof(row));
        due += h.interval_s * 1000u;
    }
    lock_drop(&h.lock);
    return arg;
}

static void find_figures(void)
{
    struct figure all[FIGURES];
    figures_take(all);
    for (size_t i = 0; i < SERIES; i++) {
        size_t k = 0;
        while (k < FIGURES && strcmp(all[k].name, series[i]))
            k++;
        if (k == FIGURES)
            die("no figure is called %s", series[i]);
        h.figure[i] = k;
    }
}

bool history_began(void)
{
    return h.began;
}

void history_start(void)
{
    find_figures();
    lock_cond_init(&h.changed);
    h.began = time(NULL);
    h.interval_s = 1;
    h.rows = 1;
    take_row(h.v[0]);
    h.ending = false;
    h.runs = !pthread_create(&h.thread, NULL, watch, NULL);
    if (!h.runs)
        log_warn("no thread for the report's history: the report will not tell what happened when");
}

void history_stop(void)
{
    if (!h.runs)
        return;
    lock_take(&h.lock);
    h.ending = true;
    pthread_cond_broadcast(&h.changed);
    lock_drop(&h.lock);
    pthread_join(h.thread, NULL);
    h.runs = false;
}

json_t *history_json(void)
{
    uint64_t now[SERIES];
    json_t *o = json_object(), *all = json_object();
    take_row(now);
    lock_take(&h.lock);
    json_object_set_new(o, "interval_s", json_integer(h.interval_s));
    json_object_set_new(o, "began", json_integer((json_int_t)h.began));
    for (size_t i = 0; i < SERIES; i++) {
        json_t *list = json_array();
        for (unsigned k = 0; k < h.rows; k++)
            json_array_append_new(list, json_integer((json_int_t)h.v[k][i]));
        json_array_append_new(list, json_integer((json_int_t)now[i]));
        json_object_set_new(all, series[i], list);
    }
    lock_drop(&h.lock);
    json_object_set_new(o, "series", all);
    return o;
}
