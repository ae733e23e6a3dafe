/* limit.c - see limit.h. */
#include "transport/limit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base.h"

#define ROOT "/sys/fs/cgroup"

static uint64_t number_in(const char *path)
{
    unsigned long long n = UINT64_MAX;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%llu", &n) != 1) /* "max" */
        n = UINT64_MAX;
    if (f)
        fclose(f);
    return n;
}

/* This process's cgroup, below ROOT; "" is that itself. */
static void own_cgroup(char path[PATH_MAX])
{
    char line[PATH_MAX + 16];
    FILE *f = fopen("/proc/self/cgroup", "re");
    path[0] = 0;
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, "0::/", 4)) {
            line[strcspn(line, "\n")] = 0;
            snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, line + 3);
        }
    if (f)
        fclose(f);
}

uint64_t limit_memory(void)
{
    char group[PATH_MAX], path[PATH_MAX + sizeof(ROOT) + sizeof("/memory.max")];
    uint64_t least = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    own_cgroup(group);
    for (char *end; (end = strrchr(group, '/')); *end = 0) {
        snprintf(path, sizeof(path), ROOT "%s/memory.max", group);
        least = MIN(least, number_in(path));
    }
    return least;
}
