/* fillstore.c - fills a cache directory with many small clean files, as if a daemon had read them.
 *
 *   fillstore CACHE_DIR CACHE_SIZE FILES SIZE
 *
 * Through the store's own functions and without a PFS: the files' identities are made up, so a
 * daemon that starts on the directory knows them all and is never asked for one.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "placement/store/store_open.h"
#include "placement/store/store_version.h"

#define THREADS 4

static uint64_t files, size;
static atomic_ullong next;

static void fail(const char *what, int err)
{
    fprintf(stderr, "fillstore: %s: %s\n", what, strerror(-err));
    exit(1);
}

static void fill_one(uint64_t n, const uint8_t *bytes)
{
    /* Such as a hash gives: all bits differ from file to file. */
    struct fid fid = {XXH3_64bits_withSeed(&n, sizeof(n), 1), XXH3_64bits(&n, sizeof(n))};
    struct version version = {size, 1000000001, 1000000002};
    struct file *f;
    char path[64];
    int err;

    snprintf(path, sizeof(path), "data/%03u/sample-%08u.bin", (unsigned)(n / 1000), (unsigned)n);
    err = file_get(fid, path, &f);
    if (err)
        fail(path, err);
    err = store_set_version(f, &version, NULL);
    if (!err)
        err = store_fill(f, &(struct clean_chunk){.version = version,
                                                  .buf = bytes,
                                                  .len = size,
                                                  .hash = XXH3_64bits(bytes, size),
                                                  .owned = true});
    if (err)
        fail(path, err);
    file_put(f);
}

static void *fill(void *arg)
{
    uint8_t *bytes = calloc(1, size);
    uint64_t n;

    (void)arg;
    while ((n = atomic_fetch_add(&next, 1)) < files)
        fill_one(n, bytes);
    free(bytes);
    return NULL;
}

int main(int argc, char **argv)
{
    struct store_config config = {.chunk_size = 1 << 20};
    pthread_t threads[THREADS];
    char message[512] = "";
    int err;

    if (argc != 5) {
        fprintf(stderr, "usage: fillstore CACHE_DIR CACHE_SIZE FILES SIZE\n");
        return 2;
    }
    config.dir = argv[1];
    config.size = strtoull(argv[2], NULL, 10);
    files = strtoull(argv[3], NULL, 10);
    size = strtoull(argv[4], NULL, 10);
    log_open(NULL, LOG_LEVEL_ERROR, "fillstore");
    err = store_open(&config, message, sizeof(message));
    if (err)
        fail(message, err);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, fill, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    store_close(true);
    return 0;
}
