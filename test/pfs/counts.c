#include "counts.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUCKETS     16384 /* a power of two; tests have some ten thousand files */
#define INTERVAL_NS 50000000LL
/* The writer sleeps at least this many times as long as writing took. */
#define SHARE 20

static const char *const op_names[OP_COUNT] = {
#define X(name, data, changes) [OP_##name] = #name,
    OPS(X)
#undef X
};

static const bool op_data[OP_COUNT] = {
#define X(name, data, changes) [OP_##name] = data,
    OPS(X)
#undef X
};

static const bool op_change[OP_COUNT] = {
#define X(name, data, changes) [OP_##name] = changes,
    OPS(X)
#undef X
};

static atomic_ullong ops[OP_COUNT];
static atomic_ullong read_bytes, write_bytes, copy_bytes;
static atomic_ullong changes;

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static struct file_counts *files[BUCKETS]; /* by hash of the path, under files_lock */

static const char *stats_path;
static char *temporary_path;
static pthread_t writer;
static atomic_bool stopping;

bool op_moves_data(enum op op)
{
    return op_data[op];
}

bool op_changes(enum op op)
{
    return op_change[op];
}

const char *op_name(enum op op)
{
    return op_names[op];
}

void count_op(enum op op)
{
    ops[op]++;
    changes++;
}

void count_read(struct file_counts *file, uint64_t bytes)
{
    read_bytes += bytes;
    if (file) {
        file->reads++;
        file->read_bytes += bytes;
    }
    changes++;
}

void count_write(struct file_counts *file, uint64_t bytes)
{
    write_bytes += bytes;
    if (file) {
        file->writes++;
        file->write_bytes += bytes;
    }
    changes++;
}

void count_copy(uint64_t bytes)
{
    copy_bytes += bytes;
    changes++;
}

static size_t bucket_of(const char *path)
{
    uint64_t hash = 14695981039346656037ULL; /* FNV-1a */

    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * 1099511628211ULL;
    return (hash ^ hash >> 32) & (BUCKETS - 1);
}

struct file_counts *counts_of(const char *path)
{
    size_t bucket = bucket_of(path);
    struct file_counts *file;

    pthread_mutex_lock(&files_lock);
    for (file = files[bucket]; file; file = file->next)
        if (strcmp(file->path, path) == 0)
            break;
    if (!file) {
        size_t length = strlen(path) + 1;

        file = calloc(1, sizeof(*file) + length);
        if (file) {
            memcpy(file->path, path, length);
            file->next = files[bucket];
            files[bucket] = file;
        }
    }
    pthread_mutex_unlock(&files_lock);
    return file;
}

static void print_json_string(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            putc(c, out);
    }
    putc('"', out);
}

static void print_files(FILE *out)
{
    const char *separator = "";

    pthread_mutex_lock(&files_lock);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct file_counts *file = files[i]; file; file = file->next) {
            fprintf(out, "%s\n    ", separator);
            print_json_string(out, file->path);
            fprintf(out,
                    ": {\"reads\": %llu, \"read_bytes\": %llu, \"writes\": %llu, "
                    "\"write_bytes\": %llu}",
                    (unsigned long long)file->reads, (unsigned long long)file->read_bytes,
                    (unsigned long long)file->writes, (unsigned long long)file->write_bytes);
            separator = ",";
        }
    }
    pthread_mutex_unlock(&files_lock);
}

static void print_counts(FILE *out, unsigned long long asked)
{
    fprintf(out, "{\n  \"asked\": %llu,\n", asked);
    fprintf(out, "  \"read_bytes\": %llu,\n", (unsigned long long)read_bytes);
    fprintf(out, "  \"write_bytes\": %llu,\n", (unsigned long long)write_bytes);
    fprintf(out, "  \"copy_bytes\": %llu,\n", (unsigned long long)copy_bytes);
    for (int op = 0; op < OP_COUNT; op++)
        fprintf(out, "  \"%s\": %llu,\n", op_names[op], (unsigned long long)ops[op]);
    fprintf(out, "  \"files\": {");
    print_files(out);
    fprintf(out, "\n  }\n}\n");
}

static int write_counts(unsigned long long asked)
{
    FILE *out = fopen(temporary_path, "we");

    if (!out)
        return -errno;
    print_counts(out, asked);
    if (fclose(out) != 0 || rename(temporary_path, stats_path) != 0)
        return -errno;
    return 0;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *write_when_changed(void *unused)
{
    unsigned long long asked = 0, written = 0;
    int64_t pause = INTERVAL_NS;
    sigset_t usr1;

    (void)unused;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    while (!stopping) {
        struct timespec wait = {.tv_sec = pause / 1000000000LL, .tv_nsec = pause % 1000000000LL};
        bool signalled = sigtimedwait(&usr1, NULL, &wait) == SIGUSR1;
        unsigned long long seen = changes;
        int64_t start = now_ns();

        if (signalled)
            asked++;
        else if (seen == written)
            continue;
        int err = write_counts(asked);
        if (err)
            fprintf(stderr, "faultfs: cannot write %s: %s\n", stats_path, strerror(-err));
        written = seen;
        pause = (now_ns() - start) * SHARE;
        if (pause < INTERVAL_NS)
            pause = INTERVAL_NS;
    }
    write_counts(asked);
    return NULL;
}

int counts_start(const char *stats_file)
{
    int err;

    stats_path = stats_file;
    if (asprintf(&temporary_path, "%s.new", stats_file) < 0)
        return -ENOMEM;
    err = write_counts(0);
    if (!err)
        err = -pthread_create(&writer, NULL, write_when_changed, NULL);
    return err;
}

void counts_stop(void)
{
    if (!stats_path)
        return;
    stopping = true;
    pthread_kill(writer, SIGUSR1);
    pthread_join(writer, NULL);
    free(temporary_path);
    stats_path = NULL;
}
