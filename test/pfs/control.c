#include "control.h"

#include "commands.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_SIZE 4096

static int listener = -1;
static const char *socket_path;

static int address_of(const char *path, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address->sun_path))
        return -ENAMETOOLONG;
    strcpy(address->sun_path, path);
    return 0;
}

int control_listen(const char *path)
{
    struct sockaddr_un address;
    int err = address_of(path, &address);

    if (err)
        return err;
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(path); /* of one that ran before */
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 16) != 0)
        return -errno;
    socket_path = path;
    return 0;
}

static int answer(FILE *stream, const char *line)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    int err;

    if (!out)
        return -errno;
    err = commands_do(line, out);
    if (fclose(out) != 0)
        return -ENOMEM;
    fprintf(stream, "%s\n%s", err ? "error" : "ok", text);
    free(text);
    return 0;
}

static void serve_one(int fd)
{
    FILE *stream = fdopen(fd, "r+");
    char line[LINE_SIZE];
    int err = stream ? 0 : -errno;

    if (!stream)
        close(fd);
    else if (fgets(line, sizeof(line), stream)) {
        line[strcspn(line, "\n")] = '\0';
        fflush(stream); /* from reading to writing */
        err = answer(stream, line);
    }
    if (stream && fclose(stream) != 0)
        err = -errno;
    if (err)
        fprintf(stderr, "faultfs: a command was not answered: %s\n", strerror(-err));
}

static void *serve(void *unused)
{
    (void)unused;
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0)
            serve_one(fd);
        else if (errno != EINTR && errno != ECONNABORTED)
            return NULL;
    }
}

int control_start(void)
{
    sigset_t all, before;
    pthread_t thread;
    int err;

    sigfillset(&all); /* they are for the first thread */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    err = pthread_create(&thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}

void control_stop(void)
{
    if (socket_path)
        unlink(socket_path);
}

static int print_answer(FILE *stream)
{
    char line[LINE_SIZE];
    bool ok = fgets(line, sizeof(line), stream) && strcmp(line, "ok\n") == 0;
    FILE *out = ok ? stdout : stderr;

    if (!ok)
        fputs("faultfs: ", out);
    while (fgets(line, sizeof(line), stream))
        fputs(line, out);
    return ok ? 0 : 1;
}

int control_tell(const char *path, char *const *words)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), code, err = address_of(path, &address);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "r+");

    if (!err && (!stream || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0))
        err = -errno;
    if (err) {
        fprintf(stderr, "faultfs: %s: %s: is a faultfs --control %s running?\n", path,
                strerror(-err), path);
        return 1;
    }
    for (; *words; words++)
        fprintf(stream, "%s%s", *words, words[1] ? " " : "\n");
    fflush(stream);
    code = print_answer(stream);
    fclose(stream);
    return code;
}
