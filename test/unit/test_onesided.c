/* test_onesided.c - memory of other processes, read without them: over UCX's shared memory. */
#include "peer_nodes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/onesided.h"
#include "transport/segments.h"
#include "transport/times.h"
#include "transport/ucx_peer.h"

#define LEN (2u * MIB)

/* The node's memory, which has a pattern.  0: it is connected. */
static int until_connected(uint64_t id)
{
    char byte;
    int err = -ENOTCONN;
    for (uint64_t end = boot_ms() + LONG_MS; err == -ENOTCONN && boot_ms() < end;)
        err = onesided_get(id, 0, &byte, 1);
    return err;
}

/* Answers how long the get took. */
static uint64_t must_get(uint64_t id, uint64_t off, size_t len)
{
    static uint8_t whole[LEN], buf[LEN];
    fill(whole, LEN, id);
    memset(buf, 0, len);
    uint64_t t = boot_ms();
    ck_assert_int_eq(onesided_get(id, off, buf, len), 0);
    t = boot_ms() - t;
    ck_assert(!memcmp(buf, whole + off, len));
    return t;
}

static void must_read_all_sizes(void)
{
    static const size_t sizes[] = {1, 7, 64, 256, 1024, 4096, 65537, MIB, LEN};
    ck_assert_int_eq(until_connected(OTHER), 0);
    ck_assert_uint_eq(onesided_len(OTHER), LEN);
    ck_assert_uint_eq(onesided_connected(), 1);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        must_get(OTHER, 0, sizes[i]);
        must_get(OTHER, LEN - sizes[i], sizes[i]);
    }
    char byte;
    ck_assert_int_eq(onesided_get(OTHER, LEN, &byte, 1), -EINVAL);
    ck_assert_int_eq(onesided_get(OTHER, LEN - 1, &byte, 2), -EINVAL);
    ck_assert_int_eq(onesided_get(OTHER, UINT64_MAX, &byte, 1), -EINVAL);
    must_get(OTHER, 0, 1);
}

START_TEST(bytes_of_every_size_are_right)
{
    struct node n = node_start(OTHER, 1);
    must_read_all_sizes();
    node_finish(&n);
}
END_TEST

START_TEST(a_stopped_node_is_read_all_the_same)
{
    struct node n = node_start(OTHER, 1);
    ck_assert_int_eq(until_connected(OTHER), 0);
    node_pause(&n);
    uint64_t ms = 0;
    for (int i = 0; i < 100; i++)
        ms += must_get(OTHER, (uint64_t)i * 4096, MIB);
    ck_assert_uint_lt(ms, T_SUSPECT);
    kill(n.pid, SIGCONT);
    node_finish(&n);
}
END_TEST

/* Over RDMA nothing is mapped.  Since 1.23 UCX's gets over shared memory need the other side's processor, so nobody is connected then. */
START_TEST(gets_of_ucx_are_right_or_not_used)
{
    struct onesided_config c = {.size = LEN, .id = ME, .by_gets = true};
    char err[512], byte;
    onesided_stop();
    ck_assert_msg(!onesided_start(&c, err, sizeof(err)), "%s", err);
    struct node n = node_start(OTHER, 1);
    if (ucx_is_before(1, 23)) {
        must_read_all_sizes();
    } else {
        for (uint64_t end = boot_ms() + 3000; boot_ms() < end; usleep(1000))
            ck_assert_int_eq(onesided_get(OTHER, 0, &byte, 1), -ENOTCONN);
        must_read(OTHER, 1, true); /* by a message */
    }
    node_finish(&n);
}
END_TEST

/* ---- peers that die ---- */

struct reader {
    pthread_t thread;
    uint64_t id;
    _Atomic bool ends;
    _Atomic unsigned long gets;
    bool right;
};

static void *read_on(void *arg)
{
    struct reader *r = arg;
    uint8_t *buf = malloc(MIB), *whole = malloc(LEN);
    fill(whole, LEN, r->id);
    r->right = true;
    while (!r->ends) {
        if (!onesided_get(r->id, 4096, buf, MIB)) {
            r->right &= !memcmp(buf, whole + 4096, MIB);
            r->gets++;
        }
    }
    free(buf);
    free(whole);
    return NULL;
}

static void adopt(void *v)
{
    onesided_adopted(v);
}

/* The next incarnation is another node's memory, and never taken for the one that died. */
START_TEST(a_node_that_is_killed_while_it_is_read_takes_nobody_along)
{
    enum { KILLS = REPEATS(40) };
    for (unsigned k = 0; k < KILLS; k++) {
        struct node n = node_start(OTHER, 1 + k);
        struct reader r = {.id = OTHER};
        ck_assert_int_eq(until_connected(OTHER), 0);
        pthread_create(&r.thread, NULL, read_on, &r);
        while (r.gets < 2 + k % 5)
            usleep(100);
        node_kill(&n);
        loop_call(adopt, NULL); /* it is in no view any more */
        r.ends = true;
        pthread_join(r.thread, NULL);
        ck_assert(r.right);
        loop_call(adopt, NULL);
        ck_assert_uint_eq(onesided_connected(), 0);
    }
    ck_assert_uint_ge(segments_clean(), 1);
}
END_TEST

START_TEST(another_incarnation_is_connected_anew)
{
    struct member two = {.id = OTHER, .incarnation = 2}, one = {.id = OTHER, .incarnation = 1};
    struct view with_two = {.nmembers = 1, .members = &two}, with_one = {.nmembers = 1, .members = &one};
    struct node n = node_start(OTHER, 1);
    ck_assert_int_eq(until_connected(OTHER), 0);
    onesided_adopted(&with_one);
    ck_assert_uint_eq(onesided_connected(), 1);
    onesided_adopted(&with_two);
    ck_assert_uint_eq(onesided_connected(), 0);
    node_finish(&n);
}
END_TEST

/* ---- peers that have none, or lie ---- */

static void must_not_connect(const char *env)
{
    char byte;
    setenv(MEMORY_ENV, env, 1);
    if (!*env)
        unsetenv(MEMORY_ENV);
    for (unsigned i = 0; i < 5; i++) {
        struct node n = node_start(OTHER, 1 + i);
        ck_assert_int_eq(onesided_get(OTHER, 0, &byte, 1), -ENOTCONN);
        must_read(OTHER, 1, true); /* the answer to the question before has come */
        for (unsigned k = 0; k < 100; k++) {
            ck_assert_int_eq(onesided_get(OTHER, 0, &byte, 1), -ENOTCONN);
            ck_assert_uint_eq(onesided_len(OTHER), 0);
        }
        node_finish(&n);
        loop_call(adopt, NULL);
    }
    char text[20];
    snprintf(text, sizeof(text), "%u", LEN);
    setenv(MEMORY_ENV, text, 1);
}

START_TEST(a_node_without_memory_is_not_read)
{
    must_not_connect("");
}
END_TEST

START_TEST(answers_that_are_wrong_connect_nobody)
{
    must_not_connect("lies");
}
END_TEST

/* ---- memory that killed daemons leave ---- */

START_TEST(what_killed_daemons_left_is_removed_and_what_lives_stays)
{
    char left[SEGMENTS_PATH_MAX], lives[SEGMENTS_PATH_MAX], file[SEGMENTS_PATH_MAX + 20];
    struct stat st;
    int fd = segments_begin(0xdead, left), other = segments_begin(0xa11, lives);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(other, 0);
    ck_assert_int_eq(segments_begin(0xa11, file), -EBUSY);
    snprintf(file, sizeof(file), "%s/ucx_shm_posix_1", left);
    fclose(fopen(file, "w"));
    close(fd); /* as the end of a killed process does */
    ck_assert_uint_ge(segments_clean(), 1);
    ck_assert_int_eq(lstat(left, &st), -1);
    ck_assert_int_eq(lstat(lives, &st), 0);
    segments_end(other, lives);
    ck_assert_int_eq(lstat(lives, &st), -1);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("onesided");
    ADD(bytes_of_every_size_are_right);
    ADD(gets_of_ucx_are_right_or_not_used);
    ADD(a_stopped_node_is_read_all_the_same);
    ADD(a_node_that_is_killed_while_it_is_read_takes_nobody_along);
    ADD(another_incarnation_is_connected_anew);
    ADD(a_node_without_memory_is_not_read);
    ADD(answers_that_are_wrong_connect_nobody);
    ADD(what_killed_daemons_left_is_removed_and_what_lives_stays);
    return s;
}

int main(int argc, char **argv)
{
    char text[20];
    snprintf(text, sizeof(text), "%u", LEN);
    if (argc == 1) /* else it is another node, which has what the test gave it */
        setenv(MEMORY_ENV, text, 1);
    return tests_main(argc, argv, suite);
}
