/* fuzz_session.c - any bytes in any file of a session directory: the first byte says which file
 * gets the rest. Opening, probing and reading lists either work or give an error; nothing else may
 * happen. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/marks.h"
#include "transport/session.h"
#include "transport/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char base[] = "/tmp/eddy-fuzz-session-XXXXXX";

static const char *const files[] = {
    "settings",    "secret", "probes/fids", "nodes/0000000000000001", "dirty/0000000000000001",
    "views/000001"};

static void must(bool ok)
{
    if (!ok)
        abort();
}

static const struct session_config config = {.dir = base, .name = "s", .chunk_size = 1 << 20};

static void remove_base(void)
{
    static const char *const rest[] = {"probes/p0", "probes/p1", "probes/p2", "probes", "nodes",
                                       "views",     "forgotten", "dirty",     "."};
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "%s/s/%s", base, files[i]);
        unlink(path);
    }
    for (size_t i = 0; i + 1 < ARRAY_LEN(rest); i++) {
        snprintf(path, sizeof(path), "%s/s/%s", base, rest[i]);
        remove(path);
    }
    snprintf(path, sizeof(path), "%s/s", base);
    rmdir(path);
    rmdir(base);
}

static int fid_of(int fd, struct fid *out)
{
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    *out = (struct fid){.hi = st.st_ino, .lo = 1};
    return 0;
}

static void begin(void)
{
    char err[512];
    log_open("/dev/null", LOG_LEVEL_ERROR, "fuzz");
    must(mkdtemp(base));
    must(!session_open(&config, err, sizeof(err)));
    session_close();
    atexit(remove_base);
}

static void put(const char *file, const void *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/s/%s", base, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void take_away(const char *file)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/s/%s", base, file);
    unlink(path);
}

static int see(void *arg, const char *name, uint64_t node, const char *node_name, struct fid fid,
               const char *path)
{
    (void)arg;
    (void)fid;
    must(!strcmp(name, "s") && node == 1 && node_name[0]);
    must(path[0] && strlen(path) <= 4096);
    return 0;
}

static void use_all(void)
{
    char err[512];
    struct member node;
    struct view *v;
    uint64_t number;
    if (!session_probe(fid_of, err, sizeof(err)))
        err[0] = 0;
    if (!session_read_node(1, &node))
        must(node.id == 1 && name_is_plain(node.name) && node.addr[0]);
    if (!session_newest(&number) && number && !session_read_view(number, &v))
        view_free(v);
    session_each_dirty(base, see, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool begun;
    char err[512];
    if (!begun)
        begin();
    begun = true;
    if (!size)
        return 0;
    const char *file = files[data[0] % ARRAY_LEN(files)];
    put(file, data + 1, size - 1);
    if (!session_open(&config, err, sizeof(err))) {
        use_all();
        session_close();
    }
    take_away(file);
    return 0;
}
