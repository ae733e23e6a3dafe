/* disk.c - reads that the kernel serves from the cache's disk: seen in the disk's own counters, less
 * what this process read.
 *
 * Reads from the page cache are not seen; they do not use the disk.  Reads of the same disk by other
 * processes look the same: the flush waits for them, too, but no longer than
 * the age and the marks allow.  Writes need no counters: the data files show them (sample.c).
 */
#include "flush/flush_int.h"
#include "placement/store/store_open.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define SECTOR UINT64_C(512)

bool disk_busy(struct disk_counts *last, const struct disk_counts *now)
{
    bool known = last->known && now->known;
    uint64_t all = now->read - MIN(last->read, now->read),
             own = now->own - MIN(last->own, now->own);
    *last = *now;
    return known && all >= own + DISK_BUSY;
}

/* Sectors read are the third number (Documentation/block/stat.rst). */
static bool read_of(dev_t dev, uint64_t *bytes)
{
    char path[64];
    uint64_t sectors;
    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat", major(dev), minor(dev));
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool ok = fscanf(f, "%*u %*u %" SCNu64, &sectors) == 1;
    fclose(f);
    *bytes = sectors * SECTOR;
    return ok;
}

void disk_look(struct disk_counts *now)
{
    struct stat st;
    struct rusage r;
    *now = (struct disk_counts){.known = false};
    if (fstat(store_dirfd(), &st) || !read_of(st.st_dev, &now->read) || getrusage(RUSAGE_SELF, &r))
        return;
    now->own = (uint64_t)r.ru_inblock * SECTOR;
    now->known = true;
}
