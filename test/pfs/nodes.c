#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 65536 /* a power of two */
#define ROOT_ID 1

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *buckets[BUCKETS]; /* under the lock */
static struct node root = {.id = ROOT_ID, .fd = -1};
static char root_path[PATH_MAX];

static struct node **bucket_of(uint64_t id)
{
    uint64_t mixed = id * 0x9E3779B97F4A7C15ULL;

    return &buckets[mixed >> 48 & (BUCKETS - 1)];
}

/* The lock must be held. */
static struct node *find(uint64_t id)
{
    struct node *node = *bucket_of(id);

    while (node && node->id != id)
        node = node->next;
    return node;
}

int nodes_start(const char *path)
{
    struct stat attr;

    if (!realpath(path, root_path))
        return -errno;
    root.fd = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root.fd < 0 || fstat(root.fd, &attr) != 0)
        return -errno;
    root.device = attr.st_dev;
    return 0;
}

const char *nodes_root(void)
{
    return root_path;
}

struct node *node_get(uint64_t id)
{
    struct node *node;

    if (id == ROOT_ID)
        return &root;
    pthread_mutex_lock(&lock);
    node = find(id);
    pthread_mutex_unlock(&lock);
    return node;
}

/* Distinguishes files that had the same inode number one after the other. */
static uint64_t generation_of(int fd)
{
    struct statx attr;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &attr) != 0 || !(attr.stx_mask & STATX_BTIME))
        return 0;
    return (uint64_t)attr.stx_btime.tv_sec * 1000000000ULL + attr.stx_btime.tv_nsec;
}

/* Takes a reference, and `fd`, for a file that has the attributes `attr`. */
static int adopt(int fd, const struct stat *attr, struct node **result)
{
    struct node *fresh = malloc(sizeof(*fresh));
    struct node *node;
    int err = 0;

    if (!fresh) {
        close(fd);
        return -ENOMEM;
    }
    *fresh = (struct node){
        .id = attr->st_ino,
        .generation = generation_of(fd),
        .device = attr->st_dev,
        .fd = fd,
    };

    pthread_mutex_lock(&lock);
    node = find(attr->st_ino);
    if (!node) {
        struct node **bucket = bucket_of(fresh->id);

        fresh->next = *bucket;
        *bucket = node = fresh;
        fresh = NULL;
    }
    if (node->device == attr->st_dev)
        node->references++;
    else
        err = -EIO;
    pthread_mutex_unlock(&lock);

    if (fresh) {
        close(fresh->fd);
        free(fresh);
    }
    *result = node;
    return err;
}

int node_lookup(struct node *parent, const char *name, struct node **result, struct stat *attr)
{
    int fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int err;

    if (fd < 0)
        return -errno;
    if (fstat(fd, attr) != 0) {
        err = -errno;
        close(fd);
        return err;
    }
    if (attr->st_ino == ROOT_ID) {
        close(fd);
        err = -EIO;
    } else {
        err = adopt(fd, attr, result);
    }
    if (err == -EIO)
        fprintf(stderr,
                "faultfs: %s: its inode number stands for another file too: "
                "use one directory of one file system\n",
                name);
    return err;
}

void node_forget(uint64_t id, uint64_t count)
{
    struct node **link = bucket_of(id);
    struct node *node;

    if (id == ROOT_ID)
        return;
    pthread_mutex_lock(&lock);
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    node = *link;
    if (node && node->references > count) {
        node->references -= count;
        node = NULL;
    } else if (node) {
        *link = node->next;
    }
    pthread_mutex_unlock(&lock);

    if (node) {
        close(node->fd);
        free(node);
    }
}

const char *node_fd_path(const struct node *node, char buffer[FD_PATH_SIZE])
{
    snprintf(buffer, FD_PATH_SIZE, "/proc/self/fd/%d", node->fd);
    return buffer;
}

int node_path(const struct node *node, char *buffer, size_t size)
{
    char link[FD_PATH_SIZE], path[PATH_MAX];
    size_t skip = strlen(root_path);
    ssize_t length = readlink(node_fd_path(node, link), path, sizeof(path) - 1);
    const char *start = path;

    if (length < 0)
        return -errno;
    path[length] = '\0';
    if (strncmp(path, root_path, skip) == 0)
        start += skip;
    start += strspn(start, "/");
    if (strlen(start) >= size)
        return -ENAMETOOLONG;
    strcpy(buffer, start);
    return 0;
}
