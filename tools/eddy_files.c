/* eddy_files.c - files whose latest bytes are not on the PFS: collected and shown. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/eddy_files.h"
#include "tools/eddy_talk.h"
#include "transport/base.h"

void time_text(double seconds, char out[TIME_TEXT])
{
    struct tm tm;
    time_t t = seconds >= 0 && seconds < 1e15 ? (time_t)seconds : -1; /* it may come from another user's daemon or file */
    if (t < 0 || !localtime_r(&t, &tm) || !strftime(out, TIME_TEXT, "%Y-%m-%d %H:%M:%S", &tm))
        snprintf(out, TIME_TEXT, "?");
}

void unflushed_add(struct unflushed_list *l, const char *path, uint64_t bytes, const char *reason)
{
    if (!(l->n & (l->n - 1))) /* full: room for twice as many */
        l->files = xrealloc(l->files, (l->n ? 2 * l->n : 1) * sizeof(*l->files));
    l->files[l->n++] =
        (struct unflushed){.path = xstrdup(path), .bytes = bytes, .reason = xstrdup(reason)};
}

void unflushed_add_json(struct unflushed_list *l, const json_t *file)
{
    char reason[512] = "not written yet";
    const char *error = json_text(file, "error"), *borrower = json_text(file, "borrower");
    uint64_t tries = json_u64(file, "tries");
    if (json_is_true(json_object_get(file, "suspect")))
        snprintf(reason, sizeof(reason),
                 "suspect after a power loss: not covered by fsync, never written by itself");
    else if (*borrower)
        snprintf(reason, sizeof(reason), "node %s has borrowed parts of it: start eddyfs there again, or recover its cache directory",
                 borrower);
    else if (*error)
        snprintf(reason, sizeof(reason), "%s, %llu %s, dirty for %llu s", error,
                 (unsigned long long)tries, tries == 1 ? "try" : "tries",
                 (unsigned long long)json_u64(file, "since"));
    unflushed_add(l, json_text(file, "path"), json_u64(file, "bytes"), reason);
}

void unflushed_print(const struct unflushed_list *l)
{
    char size[24];
    progress_clear();
    for (size_t i = 0; i < l->n; i++)
        printf("%s: %s: %s\n", l->files[i].path, size_format(l->files[i].bytes, size, sizeof(size)),
               l->files[i].reason);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct unflushed *)a)->path, ((const struct unflushed *)b)->path);
}

void unflushed_sort(struct unflushed_list *l)
{
    if (l->n)
        qsort(l->files, l->n, sizeof(*l->files), by_path);
}

const char *unflushed_reason(const struct unflushed_list *l, const char *path)
{
    struct unflushed key = {.path = (char *)path};
    struct unflushed *found =
        l->n ? bsearch(&key, l->files, l->n, sizeof(*l->files), by_path) : NULL;
    return found ? found->reason : NULL;
}

void unflushed_free(struct unflushed_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->files[i].path);
        free(l->files[i].reason);
    }
    free(l->files);
    *l = (struct unflushed_list){0};
}

#define ALL_MS 30000

int unflushed_ask(const struct mount_entry *e, uint64_t timeout_ms, struct unflushed_list *l)
{
    struct talk *t;
    bool last = false;
    uint64_t end = boot_ms() + ALL_MS;
    int err = talk_begin(e, "unflushed", NULL, &t);
    if (err)
        return err;
    while (!err && !last) {
        json_t *line, *file;
        err = talk_next(t, MIN(end, boot_ms() + timeout_ms), &line, &last);
        if (err)
            break;
        if ((file = json_object_get(line, "file")))
            unflushed_add_json(l, file);
        json_decref(line);
        if (l->n > CONTROL_FILES_MAX)
            err = -EPROTO; /* no daemon of ours */
    }
    talk_end(t);
    return err;
}
