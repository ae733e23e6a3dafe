/* lockcount.c - adds one to a counter in a file, many times, under flock or fcntl: `lockcount
 * flock|fcntl FILE TIMES`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int lock(int fd, int by_flock, short type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET};
    if (by_flock)
        return flock(fd, type == F_UNLCK ? LOCK_UN : LOCK_EX);
    return fcntl(fd, F_SETLKW, &l);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int by_flock = !strcmp(argv[1], "flock"), fd = open(argv[2], O_RDWR | O_CREAT, 0644);
    if (fd < 0) {
        perror(argv[2]);
        return 1;
    }
    for (int i = atoi(argv[3]); i > 0; i--) {
        char text[32] = "";
        if (lock(fd, by_flock, F_WRLCK) || pread(fd, text, sizeof(text) - 1, 0) < 0) {
            perror("lock or read");
            return 1;
        }
        int n = snprintf(text, sizeof(text), "%08ld\n", atol(text) + 1);
        if (pwrite(fd, text, (size_t)n, 0) != n || lock(fd, by_flock, F_UNLCK)) {
            perror("write or unlock");
            return 1;
        }
    }
    return close(fd) ? 1 : 0;
}
