#include "faults.h"

#include "limits.h"

#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cleared = PTHREAD_COND_INITIALIZER;
static struct fault *faults; /* in order of their numbers, under the lock */
static unsigned last_number;
static atomic_uint count; /* of faults: mostly 0, and then nothing is looked at */

/* Held from the look at the space until the bytes are written. */
static pthread_mutex_t space_turn = PTHREAD_MUTEX_INITIALIZER;

/* ---- the list ---- */

unsigned faults_add(struct fault *fault)
{
    struct fault **end = &faults;
    unsigned number;

    pthread_mutex_lock(&lock);
    while (*end)
        end = &(*end)->next;
    *end = fault;
    fault->number = number = ++last_number;
    count++;
    pthread_mutex_unlock(&lock);
    return number;
}

static void free_fault(struct fault *fault)
{
    free(fault->text);
    free((char *)fault->pattern);
    free(fault);
}

int faults_clear(unsigned number)
{
    int err = number ? -ENOENT : 0;

    pthread_mutex_lock(&lock);
    for (struct fault **at = &faults, *fault; (fault = *at);) {
        if (number && fault->number != number) {
            at = &fault->next;
            continue;
        }
        *at = fault->next;
        count--;
        err = 0;
        free_fault(fault); /* a request that waits for it looks for it by its number */
    }
    pthread_cond_broadcast(&cleared);
    pthread_mutex_unlock(&lock);
    return err;
}

void faults_list(FILE *out)
{
    pthread_mutex_lock(&lock);
    for (const struct fault *fault = faults; fault; fault = fault->next)
        fprintf(out, "%u hits=%llu waiting=%llu %s\n", fault->number,
                (unsigned long long)fault->hits, (unsigned long long)fault->waiting, fault->text);
    pthread_mutex_unlock(&lock);
}

/* The lock must be held when you call any function below this line, up to the next one. */
/* -------------------------------------------------------------------------------------------- */

static bool path_matches(const struct fault *fault, const char *path)
{
    return !fault->pattern || fnmatch(fault->pattern, path, FNM_EXTMATCH) == 0;
}

static bool meets(const struct fault *fault, enum op op, const char *path)
{
    if (fault->times && fault->hits >= fault->times)
        return false;
    switch (fault->kind) {
    case FAULT_ERROR:
    case FAULT_HANG:
        return fault->ops >> op & 1 && path_matches(fault, path);
    case FAULT_READ_ONLY:
        return op_changes(op) && path_matches(fault, path);
    case FAULT_SHORT:
    case FAULT_SPACE:
        return op == OP_write && path_matches(fault, path);
    default:
        return false;
    }
}

static struct fault *find_number(unsigned number)
{
    struct fault *fault = faults;

    while (fault && fault->number != number)
        fault = fault->next;
    return fault;
}

static void wait_until_cleared(struct fault *fault)
{
    unsigned number = fault->number;

    fault->hits++;
    fault->waiting++;
    while (find_number(number))
        pthread_cond_wait(&cleared, &lock);
}

/* The first fault that makes the request hang or fail at once. */
static struct fault *first_at_once(enum op op, const char *path)
{
    for (struct fault *fault = faults; fault; fault = fault->next) {
        bool at_once = fault->kind == FAULT_HANG || fault->kind == FAULT_READ_ONLY ||
                       (fault->kind == FAULT_ERROR && !fault->late);

        if (at_once && meets(fault, op, path))
            return fault;
    }
    return NULL;
}

static int run_into(enum op op, const char *path)
{
    struct fault *fault;

    while ((fault = first_at_once(op, path)) && fault->kind == FAULT_HANG)
        wait_until_cleared(fault); /* other faults may have come meanwhile */
    if (!fault)
        return 0;
    fault->hits++;
    return fault->kind == FAULT_READ_ONLY ? -EROFS : -fault->error;
}

/* -------------------------------------------------------------------------------------------- */

/* The request's path below the root, or "" where it has none any more. */
static void path_of(const struct node *node, const char *name, char path[PATH_MAX])
{
    size_t length;

    if (node_path(node, path, PATH_MAX) != 0)
        *path = '\0';
    length = strlen(path);
    if (name)
        snprintf(path + length, PATH_MAX - length, "%s%s", length ? "/" : "", name);
}

int fault_check(enum op op, const struct node *node, const char *name)
{
    char path[PATH_MAX];
    int err;

    count_op(op);
    limits_delay(op);
    if (!count)
        return 0;
    path_of(node, name, path);
    pthread_mutex_lock(&lock);
    err = run_into(op, path);
    pthread_mutex_unlock(&lock);
    return err;
}

int fault_check_writable(const struct node *node)
{
    char path[PATH_MAX];
    int err = 0;

    if (!count)
        return 0;
    path_of(node, NULL, path);
    pthread_mutex_lock(&lock);
    for (struct fault *fault = faults; fault && !err; fault = fault->next)
        if (fault->kind == FAULT_READ_ONLY && path_matches(fault, path)) {
            fault->hits++;
            err = -EROFS;
        }
    pthread_mutex_unlock(&lock);
    return err;
}

/* Is there one of that kind? *value, if not NULL: the oldest one's. */
static bool is_set(enum fault_kind kind, uint64_t *value)
{
    const struct fault *fault = NULL;

    if (!count)
        return false;
    pthread_mutex_lock(&lock);
    for (fault = faults; fault && fault->kind != kind; fault = fault->next)
        ;
    if (fault && value)
        *value = fault->bytes;
    pthread_mutex_unlock(&lock);
    return fault;
}

time_t faults_behind(void)
{
    uint64_t seconds = 0;

    is_set(FAULT_BEHIND, &seconds);
    return (time_t)seconds;
}

void faults_shape(struct stat *attr)
{
    time_t behind = faults_behind();
    bool whole = is_set(FAULT_WHOLE_SECONDS, NULL);

    attr->st_atim.tv_sec -= behind;
    attr->st_mtim.tv_sec -= behind;
    attr->st_ctim.tv_sec -= behind;
    if (whole)
        attr->st_atim.tv_nsec = attr->st_mtim.tv_nsec = attr->st_ctim.tv_nsec = 0;
}

/* ---- writes ---- */

/* The bytes that the files of that pattern take up, by any writer. */
static int space_taken(const struct fault *fault, uint64_t *bytes)
{
    char *roots[] = {(char *)nodes_root(), NULL};
    size_t skip = strlen(roots[0]) + 1;
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry;

    if (!walk)
        return -errno;
    *bytes = 0;
    while ((entry = fts_read(walk)))
        if (entry->fts_info == FTS_F && path_matches(fault, entry->fts_path + skip))
            *bytes += (uint64_t)entry->fts_statp->st_blocks * 512;
    fts_close(walk);
    return 0;
}

/* How many of the write's bytes fit, if holes that it fills may take up `room` more. */
static size_t fitting(int fd, size_t size, off_t offset, uint64_t room)
{
    off_t end = offset + (off_t)size, at = offset;

    while (at < end) {
        off_t hole = lseek(fd, at, SEEK_HOLE), data;

        if (hole < 0 || hole < at) /* beyond the end */
            hole = at;
        if (hole >= end)
            break;
        data = lseek(fd, hole, SEEK_DATA);
        if (data < 0 || data > end)
            data = end;
        if ((uint64_t)(data - hole) > room)
            return (size_t)(hole + (off_t)room - offset);
        room -= (uint64_t)(data - hole);
        at = data;
    }
    return size;
}

/* Under the lock: a write runs into this one. */
static int limit_write(struct fault *fault, struct fault_write *write, int fd, off_t offset)
{
    uint64_t taken = 0;
    size_t size = write->size;
    int err = 0;

    if (fault->kind == FAULT_SHORT) {
        size = fault->bytes < size ? (size_t)fault->bytes : size;
    } else if (fault->kind == FAULT_SPACE) {
        err = space_taken(fault, &taken);
        if (err)
            return err;
        size = fitting(fd, size, offset, taken < fault->bytes ? fault->bytes - taken : 0);
    } else {
        size = 0; /* a late error */
    }
    if (size == write->size)
        return 0;
    fault->hits++;
    if (fault->late)
        write->late_error = fault->error;
    else if (size == 0)
        err = -fault->error;
    else
        write->size = size;
    return err;
}

int faults_write_begins(struct fault_write *write, const struct node *node, int fd, size_t size,
                        off_t offset)
{
    char path[PATH_MAX];
    int err = 0;

    *write = (struct fault_write){.size = size};
    if (!count)
        return 0;
    path_of(node, NULL, path);
    pthread_mutex_lock(&space_turn);
    pthread_mutex_lock(&lock);
    for (struct fault *fault = faults; fault && !err && !write->late_error; fault = fault->next) {
        bool late = fault->kind == FAULT_ERROR && fault->late;

        if ((late || fault->kind == FAULT_SHORT || fault->kind == FAULT_SPACE) &&
            meets(fault, OP_write, path)) {
            write->in_turn |= fault->kind == FAULT_SPACE;
            err = limit_write(fault, write, fd, offset);
        }
    }
    pthread_mutex_unlock(&lock);
    if (err)
        write->in_turn = false;
    if (!write->in_turn)
        pthread_mutex_unlock(&space_turn);
    return err;
}

void faults_write_ended(struct fault_write *write)
{
    if (write->in_turn)
        pthread_mutex_unlock(&space_turn);
}
