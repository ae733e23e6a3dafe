/* claims.c - commands about files: where one's latest bytes are, its claim, its bytes. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "placement/claims/claim.h"
#include "placement/pfs/pfs_data.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/store/store_hit.h"
#include "placement/store/store_read.h"
#include "placement/store/store_version.h"
#include "placement/store/store_write.h"
#include "transport/members.h"

/* ---- files ---- */

static int look(const char *path, struct statx *stx)
{
    return statx(pfs_fd, path, AT_STATX_FORCE_SYNC, PFS_STATX_MASK, stx) ? -errno : 0;
}

int fid_at(const char *path, struct fid *out)
{
    struct statx stx;
    int err;

    if (!fid_parse(path, out))
        return 0;
    err = look(path, &stx);
    if (!err)
        *out = fid_of(&stx);
    return err;
}

static int file_at(const char *path, struct file **out, struct version *v)
{
    struct statx stx;
    int err = look(path, &stx);

    if (err)
        return err;
    *v = version_of(&stx);
    return file_get(fid_of(&stx), path, out);
}

/* ---- claims ---- */

static void show_where(struct command *c, const struct location *at)
{
    switch (at->where) {
    case WHERE_HERE:
        answer(c, "HERE");
        break;
    case WHERE_PFS:
        answer(c, "PFS");
        break;
    case WHERE_NODE:
        answer(c, "NODE %s %" PRIu64, members_name(at->node), at->size);
        break;
    case WHERE_LOST:
        answer(c, "LOST %s", members_name(at->node));
        break;
    }
}

void do_where(void *arg)
{
    struct command *c = arg;
    struct location at;
    struct fid fid;
    int err = fid_at(word(c, 1), &fid);

    if (!err)
        err = claim_where(fid, LOOK_NONE, &at);
    if (err)
        answer_code(c, err);
    else
        show_where(c, &at);
}

/* The file stays referenced while it is open: close-writer puts it twice. */
void do_open_writer(void *arg)
{
    struct command *c = arg;
    struct location at = {0};
    struct version v;
    struct file *f;
    int err = file_at(word(c, 1), &f, &v);

    if (err) {
        answer_code(c, err);
        return;
    }
    err = store_set_version(f, &v, NULL);
    if (!err || err == -EBUSY)
        err = claim_open_writer(f, &(struct claim_seen){.version = &v, .named = true}, boot_ms() + members_patience(), &at);
    if (err || at.where != WHERE_HERE)
        file_put(f);
    if (err)
        answer_code(c, err);
    else if (at.where == WHERE_HERE)
        answer(c, "HERE");
    else
        answer(c, "NODE %s", members_name(at.node));
}

void do_close_writer(void *arg)
{
    struct command *c = arg;
    struct fid fid;
    struct file *f = NULL;
    int err = fid_at(word(c, 1), &fid);

    if (!err && !(f = file_find(fid)))
        err = -ENOENT;
    if (!err) {
        claim_close_writer(f);
        file_put(f);
        file_put(f); /* open-writer's */
    }
    answer_code(c, err);
}

void do_write(void *arg)
{
    struct command *c = arg;
    const char *text = word(c, 3);
    struct fid fid;
    struct file *f = NULL;
    uint64_t fill;
    int err = fid_at(word(c, 1), &fid);

    if (!err && !(f = file_find(fid)))
        err = -ENOENT;
    if (!err) {
        err = store_write(f, text, strlen(text), number(c, 2), SPACE_CACHE, &fill);
        file_put(f);
    }
    answer_code(c, err);
}

void do_read(void *arg)
{
    struct command *c = arg;
    struct location at;
    struct file *f = NULL;
    char text[4096];
    ssize_t n = 0;
    struct fid fid;
    int err = fid_at(word(c, 1), &fid);

    if (!err && (!claim_here(fid, &at) || !(f = file_find(fid))))
        err = -ENOENT;
    if (!err) {
        n = store_read(f, text, MIN(at.size, sizeof(text)), 0);
        err = n < 0 ? (int)n : 0;
        file_put(f);
    }
    if (err)
        answer_code(c, err);
    else
        answer(c, "\"%.*s\"", (int)n, text);
}
