/* nodes.c - nodes/: where each node answers.  One file per node, nodes/ID, replaced by rename:
 *
 *     eddyfs node 1
 *     id 00c4f2e91d0a7b35
 *     incarnation 3
 *     name node017
 *     addr 10.0.0.17:40123
 *     weight 65536
 *     boot 5d0b2b61-3c6a-4a51-9a46-1c8a4b0c7f6e
 *
 * The host's boot id is for people; readers skip the lines after the weight.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/session.h"
#include "transport/textfile.h"
#include "transport/view.h"

#define NODE_FILE_MAX 4096

/* ---- text ---- */

int node_parse(const char *text, size_t len, struct member *out)
{
    struct words w = words_of(text, len);
    struct member m = {0};
    words_match(&w, "eddyfs node 1\nid ");
    m.id = words_hex(&w);
    words_match(&w, "\nincarnation ");
    m.incarnation = words_u64(&w, UINT64_MAX);
    words_match(&w, "\nname ");
    words_word(&w, m.name, sizeof(m.name));
    words_match(&w, "\naddr ");
    words_word(&w, m.addr, sizeof(m.addr));
    words_match(&w, "\nweight ");
    m.weight = (uint32_t)words_u64(&w, WEIGHT_MAX);
    words_match(&w, "\n");
    if (w.bad || !m.weight || !name_is_plain(m.name))
        return -EPROTO;
    *out = m;
    return 0;
}

/* Empty if there is none.  Not by textfile_read: files in /proc say that their size is 0. */
static void read_boot_id(char *buf, size_t size)
{
    buf[0] = 0;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, buf, size - 1);
    close(fd);
    buf[n > 0 ? n : 0] = 0;
    buf[strcspn(buf, "\n")] = 0;
}

char *node_print(const struct member *m, size_t *len)
{
    char *text = NULL, boot[64];
    FILE *f = open_memstream(&text, len);
    if (!f)
        die("out of memory for a node's text");
    fprintf(f,
            "eddyfs node 1\nid %016" PRIx64 "\nincarnation %" PRIu64
            "\nname %s\naddr %s\nweight %u\n",
            m->id, m->incarnation, m->name, m->addr, m->weight);
    read_boot_id(boot, sizeof(boot));
    if (boot[0])
        fprintf(f, "boot %s\n", boot);
    if (fclose(f))
        die("out of memory for a node's text");
    return text;
}

/* ---- files ---- */

static int nodes_open(int *fd)
{
    *fd = openat(session_dirfd(), "nodes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *fd < 0 ? -errno : 0;
}

int session_write_node(const struct member *self)
{
    char name[ID_NAME_SIZE];
    struct member again;
    size_t len;
    char *text = node_print(self, &len);
    int fd = -1, err = node_parse(text, len, &again) ? -EINVAL : nodes_open(&fd);
    if (!err) {
        id_print(self->id, name);
        err = textfile_replace(fd, name, text, len);
        close(fd);
    }
    free(text);
    return err;
}

int session_remove_node(uint64_t id)
{
    char name[ID_NAME_SIZE];
    int fd, err = nodes_open(&fd);
    if (err)
        return err;
    id_print(id, name);
    if (unlinkat(fd, name, 0) && errno != ENOENT)
        err = -errno;
    close(fd);
    return err;
}

static int read_node(int dirfd, const char *name, uint64_t id, struct member *m)
{
    char *text;
    size_t len;
    int err = textfile_read(dirfd, name, NODE_FILE_MAX, &text, &len);
    if (err)
        return err;
    err = node_parse(text, len, m);
    free(text);
    return !err && m->id != id ? -EPROTO : err;
}

int session_read_node(uint64_t id, struct member *out)
{
    static _Atomic uint64_t last;
    char name[ID_NAME_SIZE];
    int fd, err = nodes_open(&fd);
    if (err)
        return err;
    id_print(id, name);
    err = read_node(fd, name, id, out);
    close(fd);
    if (err && err != -ENOENT && log_every(&last, 10000))
        log_warn("node file can not be read: nodes/%s: %s: left out", name, strerror(-err));
    return err;
}
