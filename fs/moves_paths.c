/* moves_paths.c - the path hints of unflushed files, when a file or a directory above them is renamed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/moves_int.h"
#include "placement/pfs/pfs_fid.h"
#include "placement/pfs/pfs_node.h"
#include "placement/store/store_open.h"

/* The path of a file that was below one path, and is below another one now. */
struct path_move {
    const char *from, *to;
};

struct path_moves {
    struct path_move move[2];
    unsigned n;
};

/* Malloc'd; NULL: it was not below. */
static char *moved_path(const struct path_move *m, const char *path)
{
    size_t len = strlen(m->from);
    char *moved;
    if (strncmp(path, m->from, len) || path[len] != '/')
        return NULL;
    if (asprintf(&moved, "%s%s", m->to, path + len) < 0)
        die("out of memory");
    return moved;
}

/* Changes a path by one move at most: if two directories changed places, the second move would undo the
 * first. */
static int move_path(void *arg, struct file *f)
{
    const struct path_moves *moves = arg;
    char *path = file_path(f), *moved = NULL;
    for (unsigned n = 0; n < moves->n && !moved; n++)
        moved = moved_path(&moves->move[n], path);
    if (moved)
        file_set_path(f, moved);
    free(moved);
    free(path);
    return 0;
}

/* The path hint of a file that moved; for a directory, the move of all paths below it. */
static void path_follows(const struct statx *stx, const char *from, const char *to,
                         struct path_moves *moves)
{
    if (S_ISDIR(stx->stx_mode))
        moves->move[moves->n++] = (struct path_move){from, to};
    struct file *f = S_ISREG(stx->stx_mode) ? file_find(fid_of(stx)) : NULL;
    if (!f)
        return;
    file_set_path(f, to);
    file_put(f);
}

void moves_paths_follow(const struct side *from, const struct side *to, const char *from_path,
                        const char *to_path, bool exchange)
{
    struct path_moves moves = {.n = 0};
    path_follows(&from->was, from_path, to_path, &moves);
    if (exchange)
        path_follows(&to->was, to_path, from_path, &moves);
    int err = moves.n ? store_each_claimed(move_path, &moves) : 0;
    if (err)
        log_warn("paths of unflushed files do not follow a rename: %s: %s", from_path,
                 strerror(-err));
}

struct longer {
    const char *from;
    size_t grows; /* bytes by which each path below `from` becomes longer */
};

static int stays_short(void *arg, struct file *f)
{
    const struct longer *l = arg;
    char *path = file_path(f);
    size_t len = strlen(l->from);
    bool below = !strncmp(path, l->from, len) && path[len] == '/';
    bool fits = !below || strlen(path) + l->grows <= PATH_BYTES_MAX;
    free(path);
    return fits ? 0 : -ENAMETOOLONG;
}

int moves_paths_fit(const struct side *from, const struct side *to)
{
    char *from_path = moves_name_path(from->dir, from->name);
    size_t from_len = strlen(from_path);
    size_t to_len = pfs_path_len(to->dir->node) + 1 + strlen(to->name);
    int err = 0;
    if (S_ISDIR(from->was.stx_mode) && to_len > from_len)
        err = store_each_claimed(stays_short, &(struct longer){from_path, to_len - from_len});
    else if (S_ISREG(from->was.stx_mode) && to_len > PATH_BYTES_MAX)
        err = -ENAMETOOLONG;
    free(from_path);
    return err;
}
