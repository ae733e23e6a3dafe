/* flush_env.h - for tests of write-back: a flusher with a real store over a plain directory. */
#ifndef EDDY_TEST_FLUSH_ENV_H
#define EDDY_TEST_FLUSH_ENV_H

#include "pfs_env.h"

#include "flush/decide.h"
#include "flush/flush.h"
#include "flush/flush_events.h"
#include "flush/flush_recover.h"
#include "flush/flush_status.h"
#include "placement/claims/claim_forget.h"
#include "placement/claims/claim_give.h"
#include "placement/pfs/pfs.h"
#include "placement/pfs/pfs_data.h"
#include "placement/store/kernel_io.h"
#include "placement/store/store_open.h"
#include "placement/store/store_read.h"
#include "transport/loop.h"

#include <signal.h>

#define NO_LULL (24u * 3600 * 1000) /* a wait interval that does not come: only who asks flushes */

/* As fs/daemon/steps.c does. */
static inline void connect_flush(bool on)
{
    store_on_dirty(on ? flush_dirtied : NULL);
    store_on_deleted(on ? flush_deleted : NULL);
    store_on_unsynced(on ? flush_list_changed : NULL);
    store_on_kernel_io(on ? flush_kernel_opened : NULL, on ? flush_kernel_wrote : NULL);
    claim_on_forgotten(on ? flush_forgotten : NULL);
}

static inline void start(uint64_t wait_ms)
{
    struct flush_config c = {.policy = FLUSH_IDLE, .wait_ms = wait_ms, .writers = 4};
    ck_assert_int_eq(flush_start(&c), 0);
    connect_flush(true);
    ck_assert_int_eq(flush_recover(), 0);
}

static inline void stop_flush(void)
{
    connect_flush(false);
    flush_stop();
}

static inline void setup(void)
{
    signal(SIGXFSZ, SIG_IGN);
    env_make();
    env_open_store();
    env_open_pfs();
    ck_assert_int_eq(pools_start(), 0);
}

static inline void setup_user(void)
{
    env_make();
    env_be_user();
    env_open_store();
    env_open_pfs();
    ck_assert_int_eq(pools_start(), 0);
}

static inline void teardown(void)
{
    stop_flush();
    pools_stop();
    pfs_close();
    store_close(false);
    env_remove();
}

/* Waits for a condition; a test that never sees it fails. */
#define UNTIL(cond)                                                                                \
    do {                                                                                           \
        for (int i_ = 0; !(cond); i_++) {                                                          \
            if (i_ > 20000)                                                                        \
                ck_abort_msg("waited 20 s for " #cond);                                            \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

static inline bool dirty(struct file *f)
{
    struct file_info info;
    store_info(f, &info);
    return info.dirty;
}

static inline uint64_t pending(void)
{
    struct flush_status s;
    flush_status(&s);
    return s.pending_files;
}

static inline void shut(struct file *f)
{
    pfs_release(f);
    claim_drop_unlinked(f);
    file_put(f);
}

/* Files "f0", "f1" ... */
static inline void create_files(struct file **f, int n)
{
    char name[16];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        f[i] = env_create(name, 0644);
    }
}

static char page[1 << 20];

static inline void fill_page(char seed)
{
    for (size_t i = 0; i < sizeof(page); i++)
        page[i] = (char)(seed + i * 7 + (i >> 9));
}

#endif
