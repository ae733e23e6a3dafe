/* test_life.c - the life of what a hint names: every pair of a state and an event is walked. */
#include "placement/foresight/life.h"

#include <check.h>
#include <string.h>

#include "suite.h"

/* The story, written once more, one step a line; every other pair does not happen. */
static const struct {
    enum life from;
    enum life_event event;
    enum life to;
} story[] = {
    {LIFE_WRITING, LIFE_CLOSE, LIFE_WRITTEN},
    {LIFE_WRITTEN, LIFE_FLUSH, LIFE_FLUSHED},
    {LIFE_WRITTEN, LIFE_FLUSH_WANTED, LIFE_AHEAD},
    {LIFE_WRITTEN, LIFE_ADMIT, LIFE_WRITTEN},
    {LIFE_WRITTEN, LIFE_CONSUME, LIFE_WRITTEN},
    {LIFE_WRITTEN, LIFE_GIVE_UP, LIFE_WRITTEN},
    {LIFE_FLUSHED, LIFE_ADMIT, LIFE_AHEAD},
    {LIFE_FLUSHED, LIFE_CONSUME, LIFE_CONSUMED},
    {LIFE_FLUSHED, LIFE_EVICT, LIFE_GONE},
    {LIFE_GONE, LIFE_ADMIT, LIFE_READING},
    {LIFE_GONE, LIFE_HERE, LIFE_FLUSHED},
    {LIFE_GONE, LIFE_CONSUME, LIFE_CONSUMED},
    {LIFE_READING, LIFE_HERE, LIFE_AHEAD},
    {LIFE_READING, LIFE_CONSUME, LIFE_CONSUMED},
    {LIFE_READING, LIFE_GIVE_UP, LIFE_GONE},
    {LIFE_AHEAD, LIFE_CONSUME, LIFE_CONSUMED},
    {LIFE_AHEAD, LIFE_GIVE_UP, LIFE_FLUSHED},
    {LIFE_AHEAD, LIFE_EVICT, LIFE_GONE},
    {LIFE_CONSUMED, LIFE_ADMIT, LIFE_AHEAD},
    {LIFE_CONSUMED, LIFE_CONSUME, LIFE_CONSUMED},
    {LIFE_CONSUMED, LIFE_EVICT, LIFE_GONE},
};

/* LIFE_STATES: it does not happen. */
static enum life told(enum life from, enum life_event e)
{
    switch (e) { /* whatever the state */
    case LIFE_WRITE:
        return LIFE_WRITING;
    case LIFE_REMOVE:
        return LIFE_INIT;
    case LIFE_OTHER_VERSION:
        return LIFE_GONE;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof(story) / sizeof(*story); i++)
        if (story[i].from == from && story[i].event == e)
            return story[i].to;
    return LIFE_STATES;
}

START_TEST(every_pair_is_as_the_story_tells)
{
    for (int from = 0; from < LIFE_STATES; from++)
        for (int e = 0; e < LIFE_EVENTS; e++) {
            enum life state = from, to = told(from, e);
            bool happened = life_step(&state, e);
            ck_assert_msg(happened == (to != LIFE_STATES), "%s, event %d", life_name(from), e);
            ck_assert_msg(state == (happened ? to : (enum life)from), "%s, event %d: %s",
                          life_name(from), e, life_name(state));
        }
}
END_TEST

START_TEST(each_state_has_a_name_and_is_reached)
{
    bool reached[LIFE_STATES] = {[LIFE_INIT] = true};
    for (int round = 0; round < LIFE_STATES; round++)
        for (int from = 0; from < LIFE_STATES; from++)
            for (int e = 0; e < LIFE_EVENTS; e++) {
                enum life state = from;
                if (reached[from] && life_step(&state, e))
                    reached[state] = true;
            }
    for (int s = 0; s < LIFE_STATES; s++) {
        ck_assert_msg(reached[s], "%s", life_name(s));
        ck_assert_uint_gt(strlen(life_name(s)), 0);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("life");
    tcase_add_test(t, every_pair_is_as_the_story_tells);
    tcase_add_test(t, each_state_has_a_name_and_is_reached);
    return run_case("life", t);
}
