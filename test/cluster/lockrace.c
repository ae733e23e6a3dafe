/* lockrace.c - two threads of a process, one that sets a lock and one that gives it up, as near to
 * each other as can be.
 *
 *     lockrace ROUNDS READY FILE...     makes READY when it is done, and keeps the files open
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t together;
static int fd, rounds;

static void lock(short type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_len = 10};
    if (fcntl(fd, F_SETLK, &l)) {
        fprintf(stderr, "lockrace: fcntl: %s\n", strerror(errno));
        exit(1);
    }
}

static void race(short type)
{
    for (int i = 0; i < rounds; i++) {
        pthread_barrier_wait(&together);
        lock(type);
    }
}

static void *unlocks(void *arg)
{
    (void)arg;
    race(F_UNLCK);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    rounds = atoi(argv[1]);
    pthread_barrier_init(&together, NULL, 2);
    for (int i = 3; i < argc; i++) {
        pthread_t other;
        fd = open(argv[i], O_RDWR);
        if (fd < 0 || pthread_create(&other, NULL, unlocks, NULL))
            return 1;
        race(F_WRLCK);
        pthread_join(other, NULL);
    }
    close(open(argv[2], O_WRONLY | O_CREAT, 0600));
    pause();
    return 0;
}
