/* eddy_busy.c - which processes keep a mount busy.
 *
 * They are found by the mount's number, which the kernel shows for descriptors in /proc/PID/fdinfo without a
 * look at the mount, and by the device number of mapped files.  Paths are no help: a mount may lie over
 * the directory that its daemon has open.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/eddy.h"
#include "tools/eddy_mounts.h"

/* cwd, root, exe: links that lead into the mount. */
static bool link_is_in(const char *pid, const char *name, unsigned id)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return false;
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    bool is = mount_id_is(path, id);
    close(fd);
    return is;
}

static unsigned open_files_in(const char *pid, unsigned id)
{
    char path[320];
    unsigned n = 0;
    snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (struct dirent *d; (d = readdir(dir));) {
        snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, d->d_name);
        n += isdigit((unsigned char)d->d_name[0]) && mount_id_is(path, id);
    }
    closedir(dir);
    return n;
}

static bool maps_file_in(const char *pid, const struct mounted *m)
{
    char path[64], *line = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%s/maps", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (!found && getline(&line, &size, f) > 0) {
        unsigned major, minor;
        found = sscanf(line, "%*s %*s %*s %x:%x", &major, &minor) == 2 && major == m->major &&
                minor == m->minor;
    }
    free(line);
    fclose(f);
    return found;
}

static void name_of(const char *pid, char name[64])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/comm", pid);
    FILE *f = fopen(path, "re");
    if (!f || !fgets(name, 64, f))
        strcpy(name, "?");
    if (f)
        fclose(f);
    name[strcspn(name, "\n")] = '\0';
}

static bool complain_of(const char *pid, const struct mounted *m)
{
    char name[64], files[48] = "";
    bool cwd = link_is_in(pid, "cwd", m->id), root = link_is_in(pid, "root", m->id),
         exe = link_is_in(pid, "exe", m->id);
    unsigned open_files = open_files_in(pid, m->id);
    bool maps = maps_file_in(pid, m);
    if (!cwd && !root && !exe && !open_files && !maps)
        return false;
    if (open_files)
        snprintf(files, sizeof(files), ", %u open file%s", open_files, open_files == 1 ? "" : "s");
    name_of(pid, name);
    complain("  process %s (%s)%s%s%s%s%s", pid, name, cwd ? ", works in it" : "",
             root ? ", has its root there" : "", exe ? ", runs from it" : "", files,
             maps && !exe ? ", maps a file of it" : "");
    return true;
}

unsigned complain_of_users(const struct mounted *m)
{
    unsigned n = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return 0;
    for (struct dirent *d; (d = readdir(proc));)
        if (isdigit((unsigned char)d->d_name[0]) && strtol(d->d_name, NULL, 10) != getpid())
            n += complain_of(d->d_name, m);
    closedir(proc);
    return n;
}
