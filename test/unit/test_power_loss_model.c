/* test_power_loss_model.c - random work on a file, with fsyncs beside which it goes on, flushes, claims that
 * are given away and power losses: each byte is as it was at the last fsync that said that all is well,
 * or as something has made it since; and what went to the PFS for good does not come back in an older
 * state.
 *
 * The disk has of each page, of data and of records, what the last sync brought there, or what the page
 * cache has when the power goes: a number decides.
 */
#define FILE_MAX (512 * KIB)
#define LIMIT    (1536 * KIB)
#include "store_model.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "placement/store/state_int.h"

#define SIZES (FILE_MAX + 1)

static struct rnd dice;
static struct model m;

/* ---- what may be there ---- */

struct may {
    uint64_t value[FILE_MAX][4]; /* a bit for each that the byte may have */
    uint8_t size[SIZES];
};
static struct may may, may_next; /* after a power loss now; if the fsync that runs succeeds */
static uint8_t last[FILE_MAX];   /* the shadow when it was noted last */
static bool syncing;

static void add(struct may *to, size_t i, uint8_t value)
{
    to->value[i][value / 64] |= UINT64_C(1) << value % 64;
}

static void note(void)
{
    may.size[m.size] = may_next.size[m.size] = 1;
    for (size_t page = 0; page < FILE_MAX; page += PAGE) {
        if (!memcmp(last + page, m.shadow + page, PAGE))
            continue;
        for (size_t i = page; i < page + PAGE; i++)
            if (last[i] != m.shadow[i]) {
                add(&may, i, m.shadow[i]);
                add(&may_next, i, m.shadow[i]);
            }
        memcpy(last + page, m.shadow + page, PAGE);
    }
}

static void only_this(struct may *to, const uint8_t *bytes, uint64_t size)
{
    memset(to, 0, sizeof(*to));
    for (size_t i = 0; i < FILE_MAX; i++)
        add(to, i, bytes[i]);
    to->size[size] = 1;
}

/* The PFS had it, with these bytes, and nobody is to see anything older. */
static void settled(const uint8_t *bytes, uint64_t size)
{
    only_this(&may, bytes, size);
    may_next = may;
    memcpy(last, bytes, FILE_MAX);
    note();
}

/* ---- the disk ---- */

struct disk {
    uint8_t *bytes;
    size_t size;
    bool known;
};
static struct disk slabs[2], file;
static const char *const slab_names[2] = {"files.000", "chunks.000"};

static void whole_path(const char *name, char path[300])
{
    snprintf(path, 300, "%s/%s", cache_dir, name);
}

static void data_path(char path[300])
{
    char name[64];
    snprintf(name, sizeof(name), "data/%02x/%016llx%016llx", (unsigned)(fid_n(1).lo & 0xff),
             (unsigned long long)fid_n(1).hi, (unsigned long long)fid_n(1).lo);
    whole_path(name, path);
}

static void slab_path(unsigned n, char path[300])
{
    char name[64];
    snprintf(name, sizeof(name), "slabs/%s", slab_names[n]);
    whole_path(name, path);
}

static void read_whole(const char *path, struct disk *d)
{
    int fd = open(path, O_RDONLY);
    free(d->bytes);
    *d = (struct disk){.known = fd >= 0};
    if (fd < 0)
        return;
    d->size = (size_t)lseek(fd, 0, SEEK_END);
    d->bytes = calloc(1, d->size + 2 * PAGE);
    ck_assert_int_eq(pread(fd, d->bytes, d->size, 0), (ssize_t)d->size);
    close(fd);
}

/* Nobody notes what is synced. */
static void disk_has_nothing(void)
{
    for (unsigned n = 0; n < 2; n++) {
        free(slabs[n].bytes);
        slabs[n] = (struct disk){0};
    }
}

static void disk_has_all(void)
{
    char path[300];
    for (unsigned n = 0; n < 2; n++) {
        slab_path(n, path);
        read_whole(path, &slabs[n]);
    }
    data_path(path);
    read_whole(path, &file);
}

static void some_work(struct model *model, struct rnd *r);
static void some_writes(struct model *model, struct rnd *r);

/* In the middle of a sync of the file, once in a while. */
static void beside(void (*work)(struct model *m, struct rnd *r))
{
    if (!syncing || below(&dice, 3))
        return;
    syncing = false;
    work(&m, &dice);
    syncing = true;
}

/* In place of the C library's.  What is stored while it runs need not get there. */
int fdatasync(int fd)
{
    char path[300], link[40], real[300];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, real, sizeof(real) - 1);
    real[n > 0 ? n : 0] = 0;
    data_path(path);
    if (!strcmp(path, real))
        read_whole(path, &file);
    beside(some_work);
    return 0;
}

int msync(void *p, size_t len, int flags)
{
    (void)flags;
    const struct slabs *kinds[2] = {&state.files, &state.chunks};
    for (unsigned k = 0; k < 2; k++) {
        const struct slab *b = &kinds[k]->slab[0];
        if (!slabs[k].known || (uint8_t *)p < b->map || (uint8_t *)p >= b->map + b->bytes)
            continue;
        size_t at = (size_t)((uint8_t *)p - b->map),
               end = least((at + len + PAGE - 1) / PAGE * PAGE, slabs[k].size);
        memcpy(slabs[k].bytes + at, b->map + at, end - at);
    }
    if (len <= 4 * PAGE) /* for all records locks are held */
        beside(some_writes);
    return 0;
}

/* Each page of it is what the last sync brought there, or what is in the page cache. */
static void lose_pages(const char *path, struct disk *d, bool whole_size)
{
    struct disk now = {0};
    read_whole(path, &now);
    if (!now.known)
        return;
    if (!d->known) { /* its name was not there either */
        if (below(&dice, 2))
            ck_assert_int_eq(unlink(path), 0);
        free(now.bytes);
        return;
    }
    size_t size = whole_size || below(&dice, 2) ? d->size : now.size;
    uint64_t part = below(&dice, 4);
    int fd = open(path, O_RDWR | O_TRUNC);
    ck_assert_int_ge(fd, 0);
    for (size_t at = 0; at < size; at += PAGE) {
        const struct disk *from = below(&dice, 4) < part ? d : &now;
        if (at < from->size)
            ck_assert_int_ge(pwrite(fd, from->bytes + at, least(PAGE, from->size - at), (off_t)at),
                             0);
    }
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    close(fd);
    free(now.bytes);
}

static void another_boot(const char *path)
{
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, "another boot", 13, offsetof(struct slab_header, boot_id)), 13);
    close(fd);
}

/* ---- work ---- */

static void one_of(struct model *model, struct rnd *r)
{
    switch (below(r, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        do_write(model, r);
        break;
    case 4:
    case 5:
        do_append(model, r);
        break;
    case 6:
        do_truncate(model, r);
        break;
    case 7:
        do_punch(model, r);
        break;
    case 8:
        do_evict(r);
        break;
    case 9:
        late_fill(model, r);
        break;
    default:
        do_read(model, r);
        break;
    }
    note();
}

/* What syncs no record, which this thread would wait for itself. */
static void some_writes(struct model *model, struct rnd *r)
{
    void (*meanwhile)(struct model * m, struct rnd * r) = model->meanwhile;
    model->meanwhile = NULL;
    for (uint64_t n = below(r, 3); n; n--) {
        if (below(r, 4))
            do_write(model, r);
        else
            do_punch(model, r);
        note();
    }
    model->meanwhile = meanwhile;
}

static void in_a_flush(struct model *model, struct rnd *r)
{
    model->meanwhile = NULL;
    for (uint64_t n = below(r, 3); n; n--)
        one_of(model, r);
    model->meanwhile = in_a_flush;
}

static void some_work(struct model *model, struct rnd *r)
{
    for (uint64_t n = below(r, 4); n; n--)
        switch (below(r, 8)) {
        case 0:
        case 1:
            if (flush_model(model, r, below(r, 2)))
                settled(model->pfs.bytes, model->pfs.v.size);
            break;
        case 2:
            if (below(r, 4))
                break;
            model->meanwhile = NULL;
            do_give_away(model, r);
            model->meanwhile = in_a_flush;
            settled(model->pfs.bytes, model->pfs.v.size);
            break;
        default:
            one_of(model, r);
        }
}

static void sync_it(void)
{
    note();
    only_this(&may_next, m.shadow, m.size);
    syncing = true;
    ck_assert_int_eq(store_sync(m.f), 0);
    syncing = false;
    may = may_next;
}

/* ---- a power loss ---- */

static void is_right(const uint8_t *have, uint64_t size, bool covered)
{
    for (size_t i = 0; i < FILE_MAX; i++)
        if (!(may.value[i][have[i] / 64] >> have[i] % 64 & 1))
            ck_abort_msg("byte %zu (page %zu) is %u, was %u; size %llu, was %llu", i, i / PAGE,
                         have[i], m.shadow[i], (unsigned long long)size,
                         (unsigned long long)m.size);
    ck_assert_msg(!covered || may.size[size], "size %llu, was %llu", (unsigned long long)size,
                  (unsigned long long)m.size);
}

static void power_loss(void)
{
    static uint8_t have[FILE_MAX];
    char path[300];
    file_put(m.f);
    store_close(false);
    for (unsigned n = 0; n < 2; n++) {
        slab_path(n, path);
        lose_pages(path, &slabs[n], true);
        another_boot(path);
    }
    data_path(path);
    lose_pages(path, &file, false);
    disk_has_nothing();
    open_store(LIMIT, CHUNK);
    m.late_on_its_way = false;
    m.f = file_find(fid_n(1));
    struct file_info info = {.size = m.pfs.v.size};
    if (m.f)
        store_info(m.f, &info);
    bool covered = info.dirty;
    memset(have, 0, sizeof(have));
    if (covered) {
        read_model(&m, have, info.size, 0);
    } else { /* the PFS has it */
        struct version v = m.pfs.v;
        ck_assert_ptr_null(m.f);
        memcpy(have, m.pfs.bytes, v.size);
        m.f = get_file(1, "model");
        ck_assert_int_eq(store_set_claim(m.f, 1, 1, &v), 0);
    }
    is_right(have, info.size, covered);
    memcpy(m.shadow, have, FILE_MAX);
    m.size = info.size;
    settled(m.shadow, m.size);
    disk_has_all();
}

START_TEST(what_was_fsynced_is_there_or_what_came_since)
{
    uint64_t seed = env_number("EDDY_TEST_SEED", random_u64() | 1),
             rounds = env_number("EDDY_TEST_ROUNDS", 150);
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    dice = (struct rnd){seed};
    model_init(&m);
    m.meanwhile = in_a_flush;
    settled(m.shadow, m.size);
    disk_has_all();
    unsigned n = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        for (uint64_t steps = below(&dice, 8); steps; steps--) {
            some_work(&m, &dice);
            if (below(&dice, 2)) {
                sync_it();
                n++;
            }
        }
        power_loss();
    }
    ck_assert_uint_gt(n, 0);
    model_finish(&m, &dice);
    disk_has_nothing();
    free(file.bytes);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("power loss model");
    tcase_add_checked_fixture(t, model_setup, model_teardown);
    tcase_set_timeout(t, 0);
    tcase_add_test(t, what_was_fsynced_is_there_or_what_came_since);
    return run_case("power loss: model", t);
}
