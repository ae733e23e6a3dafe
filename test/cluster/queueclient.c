/* queueclient.c - libeddy as programs use it; queueclient MOUNT WHAT [ARGUMENT...]:
 *
 *   errors OTHER     what each function refuses; OTHER: a path that is in no mount
 *   names DIR        hints by relative paths, through links, and below directories that do not exist: the files are ahead
 *   fork             a forked child has no queue, and does not keep the parent's alive
 *   threads          several threads append, wait and ask at once
 *   queues N         N processes with a queue each, for the same files
 *   memory           appends until there is no memory left for hints, and says how many it took
 *
 * Prints what is wrong; exit code 1 then.  The mount's directory "files" has file0 to file9. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/lib/eddy.h"

#define FILES 10

static const char *mount;
static bool wrong;

#define EXPECT(call, value)                                                                        \
    do {                                                                                           \
        long long got_ = (long long)(call), want_ = (long long)(value);                            \
        if (got_ != want_) {                                                                       \
            printf("line %d: %s: %lld, expected %lld\n", __LINE__, #call, got_, want_);            \
            wrong = true;                                                                          \
        }                                                                                          \
    } while (0)

/* Good for the next 15 calls of the thread. */
static char *in_mount(const char *format, int n)
{
    static __thread char paths[16][4096];
    static __thread unsigned at;
    char name[256], *path = paths[at++ % 16];
    snprintf(name, sizeof(name), format, n);
    snprintf(path, sizeof(paths[0]), "%s/%s", mount, name);
    return path;
}

static eddy_queue *open_one(void)
{
    eddy_queue *q = NULL;
    int err = eddy_queue_open(mount, 0, &q);
    if (err) {
        printf("eddy_queue_open: %s\n", strerror(-err));
        exit(1);
    }
    return q;
}

static struct eddy_queue_stats stats_of(eddy_queue *q)
{
    struct eddy_queue_stats s;
    EXPECT(eddy_queue_stats(q, &s, sizeof(s)), 0);
    return s;
}

static void errors(const char *other)
{
    eddy_queue *q = (eddy_queue *)1;
    EXPECT(eddy_queue_open(other, 0, &q), -ENODEV);
    EXPECT(q == NULL, 1);
    EXPECT(eddy_queue_open(mount, 1u << 31, &q), -EINVAL);
    EXPECT(eddy_queue_open(NULL, 0, &q), -EINVAL);
    EXPECT(eddy_queue_append(NULL, mount, 0, 0), -EINVAL);
    eddy_queue_close(NULL);
    q = open_one();
    EXPECT(eddy_queue_append(q, "", 0, 0), -EINVAL);
    EXPECT(eddy_queue_append(q, "..", 0, 0), -EINVAL);
    EXPECT(eddy_queue_append(q, in_mount("files/", 0), 0, 0), -EINVAL);
    EXPECT(eddy_queue_append(q, in_mount("not/there/../file", 0), 0, 0), -EINVAL);
    EXPECT(eddy_queue_append(q, other, 0, 0), -EXDEV);
    EXPECT(eddy_queue_append(q, in_mount("files/file0", 0), UINT64_MAX, 1), -EINVAL);
    EXPECT(eddy_queue_append_many(q, NULL, 1), -EINVAL);
    EXPECT(eddy_queue_consumed(q, 0), -ENOENT);
    EXPECT(eddy_queue_wait(q, 0, 0), -ENOENT);
    EXPECT(eddy_queue_wait(q, EDDY_QUEUE_ALL_CONSUMED, 0), 0);
    struct eddy_hint h[2] = {{in_mount("files/file0", 0), 0, 0}, {other, 0, 0}};
    EXPECT(eddy_queue_append_many(q, h, 2), -EXDEV);
    EXPECT(stats_of(q).hints, 0);
    EXPECT(eddy_queue_append_many(q, h, 1), 0);
    EXPECT(eddy_queue_append(q, h[0].path, 0, 0), 1);
    EXPECT(eddy_queue_wait(q, 1, 50), -ETIMEDOUT); /* it is not started */
    EXPECT(eddy_queue_cancel(q, 1), 0);
    EXPECT(eddy_queue_wait(q, 1, -1), 0);
    EXPECT(eddy_queue_start(q), 0);
    EXPECT(eddy_queue_wait(q, 0, 20000), 0);
    EXPECT(eddy_queue_stop(q), 0);
    EXPECT(eddy_queue_wait(q, EDDY_QUEUE_ALL_CONSUMED, 50), -ETIMEDOUT);
    EXPECT(eddy_queue_consumed(q, 0), 0);
    EXPECT(eddy_queue_wait(q, EDDY_QUEUE_ALL_CONSUMED, 20000), 0);
    EXPECT(stats_of(q).consumed, 1);
    EXPECT(stats_of(q).cancelled, 1);
    uint64_t first = 0;
    EXPECT(eddy_queue_stats(q, (struct eddy_queue_stats *)&first, sizeof(first)), 0);
    EXPECT(first, 2);
    eddy_queue_close(q);
}

static void make(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    EXPECT(write(fd, path, strlen(path)), strlen(path));
    close(fd);
}

static void names(const char *dir)
{
    eddy_queue *q = open_one();
    EXPECT(chdir(in_mount("files", 0)), 0);
    EXPECT(eddy_queue_append(q, "file0", 0, 0), 0);
    EXPECT(eddy_queue_append(q, "./file1", 0, 0), 1);
    EXPECT(eddy_queue_append(q, "../files//file2", 0, 0), 2);
    char link[4096], below[4200], *new_dir = in_mount("new", 0), *deep = in_mount("new/deep", 0);
    snprintf(link, sizeof(link), "%s/link", dir);
    snprintf(below, sizeof(below), "%s/file3", link);
    EXPECT(symlink(in_mount("files", 0), link), 0);
    EXPECT(eddy_queue_append(q, below, 0, 0), 3);
    EXPECT(eddy_queue_append(q, in_mount("new/deep/file4", 0), 0, 0), 4);
    EXPECT(eddy_queue_append(q, in_mount("files/file5", 0), 0, 1), 5);
    EXPECT(eddy_queue_start(q), 0);
    for (int i = 0; i < 6; i++)
        if (i != 4)
            EXPECT(eddy_queue_wait(q, i, 20000), 0);
    EXPECT(mkdir(new_dir, 0755), 0);
    EXPECT(mkdir(deep, 0755), 0);
    make(in_mount("new/deep/file4", 0));
    EXPECT(eddy_queue_wait(q, 4, 20000), 0);
    EXPECT(stats_of(q).ahead, 6);
    eddy_queue_close(q);
}

/* The child lives on; only it would keep the connection. */
static void forked(void)
{
    eddy_queue *q = open_one(), *own;
    int fds[2];
    EXPECT(eddy_queue_append(q, in_mount("files/file0", 0), 0, 0), 0);
    EXPECT(pipe(fds), 0);
    pid_t pid = fork();
    if (!pid) {
        char c;
        close(fds[1]);
        EXPECT(eddy_queue_append(q, in_mount("files/file1", 0), 0, 0), -ECHILD);
        EXPECT(eddy_queue_start(q), -ECHILD);
        EXPECT(eddy_queue_wait(q, 0, -1), -ECHILD);
        eddy_queue_close(q);
        own = open_one();
        EXPECT(eddy_queue_append(own, in_mount("files/file1", 0), 0, 0), 0);
        eddy_queue_close(own);
        printf("%s\n", wrong ? "wrong" : "child ready");
        fflush(stdout);
        EXPECT(read(fds[0], &c, 1), 0);
        _exit(wrong);
    }
    close(fds[0]);
    eddy_queue_close(q); /* now the mount has no queue, as the test checks */
    char line[16];
    EXPECT(read(0, line, sizeof(line)) > 0, 1);
    close(fds[1]);
    int status;
    EXPECT(waitpid(pid, &status, 0), pid);
    EXPECT(status, 0);
}

static void *append_and_wait(void *arg)
{
    eddy_queue *q = arg;
    for (int i = 0; i < 200; i++) {
        int64_t seq = eddy_queue_append(q, in_mount("files/file%d", i % FILES), 0, 0);
        EXPECT(seq >= 0, 1);
        if (i % 10 == 0)
            EXPECT(eddy_queue_wait(q, seq, 20000), 0);
        if (i % 3 == 0)
            EXPECT(eddy_queue_wait(q, EDDY_QUEUE_ALL_CONSUMED, 1), -ETIMEDOUT);
        stats_of(q);
    }
    return NULL;
}

#define MANY 10000 /* of one call: more than one message takes */

static struct eddy_hint many[MANY];

static void *append_many(void *arg)
{
    return (void *)(intptr_t)eddy_queue_append_many(arg, many, MANY);
}

/* The numbers of one call follow each other, whatever other threads do. */
static void threads_that_append_many(void)
{
    eddy_queue *q = open_one();
    pthread_t t[4];
    bool had[4] = {0};
    char *path = in_mount("never-made", 0);
    for (int i = 0; i < MANY; i++)
        many[i].path = path;
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, append_many, q);
    for (int i = 0; i < 4; i++) {
        void *first;
        pthread_join(t[i], &first);
        EXPECT((intptr_t)first % MANY, 0);
        EXPECT((intptr_t)first / MANY < 4 && !had[(intptr_t)first / MANY % 4], 1);
        had[(intptr_t)first / MANY % 4] = true;
    }
    EXPECT(stats_of(q).hints, 4 * MANY);
    eddy_queue_close(q);
}

static void threads(void)
{
    threads_that_append_many();
    eddy_queue *q = open_one();
    pthread_t t[8];
    EXPECT(eddy_queue_append(q, in_mount("never-made", 0), 0, 0), 0);
    EXPECT(eddy_queue_start(q), 0);
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, append_and_wait, q);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    EXPECT(stats_of(q).hints, 1601);
    EXPECT(eddy_queue_cancel(q, 0), 0);
    EXPECT(eddy_queue_wait(q, EDDY_QUEUE_ALL_CONSUMED, 20000), 0);
    eddy_queue_close(q);
}

static int read_all_ahead(void)
{
    char buf[65536];
    eddy_queue *q = open_one();
    for (int i = 0; i < FILES; i++)
        EXPECT(eddy_queue_append(q, in_mount("files/file%d", i), 0, 0), i);
    EXPECT(eddy_queue_start(q), 0);
    for (int i = 0; i < FILES; i++) {
        EXPECT(eddy_queue_wait(q, i, 60000), 0);
        int fd = open(in_mount("files/file%d", i), O_RDONLY);
        ssize_t n;
        while ((n = read(fd, buf, sizeof(buf))) > 0)
            ;
        EXPECT(n, 0);
        close(fd);
        EXPECT(eddy_queue_consumed(q, i), 0);
    }
    EXPECT(eddy_queue_wait(q, EDDY_QUEUE_ALL_CONSUMED, 60000), 0);
    eddy_queue_close(q);
    return wrong;
}

static void queues(int n)
{
    for (int i = 0; i < n; i++)
        if (!fork())
            exit(read_all_ahead());
    for (int status; wait(&status) > 0;)
        EXPECT(status, 0);
}

static void memory(void)
{
    static struct eddy_hint h[100000];
    eddy_queue *q = open_one();
    int64_t n = 0;
    char *path = in_mount("files/file0", 0);
    for (size_t i = 0; i < 100000; i++)
        h[i].path = path;
    while ((n = eddy_queue_append_many(q, h, 100000)) >= 0)
        ;
    EXPECT(n, -ENOBUFS);
    struct eddy_queue_stats s = stats_of(q);
    EXPECT(s.hints >= 100000, 1);
    printf("%llu\n", (unsigned long long)s.hints);
    eddy_queue_close(q);
    q = open_one();
    EXPECT(eddy_queue_append_many(q, h, 100), 0);
    eddy_queue_close(q);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    mount = argv[1];
    const char *what = argv[2], *arg = argc > 3 ? argv[3] : "";
    if (!strcmp(what, "errors"))
        errors(arg);
    else if (!strcmp(what, "names"))
        names(arg);
    else if (!strcmp(what, "fork"))
        forked();
    else if (!strcmp(what, "threads"))
        threads();
    else if (!strcmp(what, "queues"))
        queues(atoi(arg));
    else if (!strcmp(what, "memory"))
        memory();
    else
        return 2;
    return wrong;
}
