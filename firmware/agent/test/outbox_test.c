#include "agent_cases.h"
#include "mcplink_outbox.h"

static uint8_t pool[32];
static mcplink_outbox box;

static int put(const char *text) { return mcplink_outbox_put(&box, text, strlen(text)); }

static void check_front(const char *want)
{
    size_t len = 0;
    const char *at = mcplink_outbox_front(&box, &len);

    CHECK(at != NULL);
    if (at != NULL) {
        CHECK_BYTES(at, len, want);
    }
}

static void order(void)
{
    size_t len;

    mcplink_outbox_init(&box, pool, sizeof pool);
    CHECK(mcplink_outbox_front(&box, &len) == NULL);
    CHECK_INT(put("one"), MCPLINK_OK);
    CHECK_INT(put("three"), MCPLINK_OK);
    CHECK_INT(put(""), MCPLINK_OK);
    check_front("one");
    mcplink_outbox_pop(&box);
    check_front("three");
    mcplink_outbox_pop(&box);
    check_front("");
    mcplink_outbox_pop(&box);
    CHECK(mcplink_outbox_front(&box, &len) == NULL);
    mcplink_outbox_pop(&box);
    CHECK_INT(box.count, 0);
}

static void bounds(void)
{
    mcplink_outbox_init(&box, pool, sizeof pool);
    CHECK_INT(mcplink_outbox_put(&box, "0123456789012345678901234567x", 29), MCPLINK_ERR_TOO_LARGE);
    CHECK_INT(mcplink_outbox_put(&box, "0123456789012345678901234567", 28), MCPLINK_OK);
    CHECK_INT(put(""), MCPLINK_ERR_TIMEOUT);
    check_front("0123456789012345678901234567");
    mcplink_outbox_pop(&box);
    mcplink_outbox_init(&box, pool, 3);
    CHECK_INT(put(""), MCPLINK_ERR_TOO_LARGE);
}

/* What does not fit at the end lies at the start, behind a mark where one fits and
 * without one where it does not. */
static void wraps(size_t last)
{
    char text[16];

    memset(text, 'l', sizeof text);
    mcplink_outbox_init(&box, pool, sizeof pool);
    CHECK_INT(put("first-one"), MCPLINK_OK);                           /* 0..13 */
    CHECK_INT(mcplink_outbox_put(&box, text, last), MCPLINK_OK);       /* 13..17+last */
    CHECK_INT(put("too long-for-it"), MCPLINK_ERR_TIMEOUT);
    mcplink_outbox_pop(&box);
    CHECK_INT(put("wrapped--"), MCPLINK_OK);                           /* 0..13 */
    CHECK_INT(put(""), MCPLINK_ERR_TIMEOUT);
    mcplink_outbox_pop(&box);
    check_front("wrapped--");
    CHECK_INT(put("after"), MCPLINK_OK);
    mcplink_outbox_pop(&box);
    check_front("after");
    mcplink_outbox_pop(&box);
    CHECK_INT(box.count, 0);
}

static void wraps_behind_mark(void) { wraps(9); }
static void wraps_without_mark(void) { wraps(13); }
static void wraps_at_the_end(void) { wraps(15); }

/* Against a plain list, with sizes and turns drawn at random: same messages, same
 * order, nothing refused that fits beside what is there. */
static void like_a_list(void)
{
    static char list[64][32];
    static size_t lens[64];
    size_t head = 0, tail = 0, turn, i;
    uint32_t seed = 1;

    mcplink_outbox_init(&box, pool, sizeof pool);
    for (turn = 0; turn < 20000; turn++) {
        seed = seed * 1664525u + 1013904223u;
        size_t len = seed >> 27;
        size_t got = 0;
        const char *at;

        if (seed >> 24 & 1u) {
            char *text = list[tail % 64];

            for (i = 0; i < len; i++) {
                text[i] = (char)('a' + (turn + i) % 26);
            }
            lens[tail % 64] = len;
            int rc = mcplink_outbox_put(&box, text, len);
            CHECK(rc == MCPLINK_OK || (rc == MCPLINK_ERR_TOO_LARGE) == (len > 28));
            CHECK(head != tail || rc != MCPLINK_ERR_TIMEOUT);
            tail += rc == MCPLINK_OK;
            continue;
        }
        at = mcplink_outbox_front(&box, &got);
        CHECK((at == NULL) == (head == tail));
        if (at != NULL) {
            CHECK_INT(got, lens[head % 64]);
            CHECK(got == lens[head % 64] && memcmp(at, list[head % 64], got) == 0);
            mcplink_outbox_pop(&box);
            head++;
        }
        CHECK_INT(box.count, tail - head);
    }
    CHECK(tail > 1000);
}

const test_case outbox_cases[] = {
    {"spec 04 7.1 outbox: first in, first out", order},
    {"spec 04 7.1 outbox: too large and full are different", bounds},
    {"spec 04 7.1 outbox: wraps behind a mark", wraps_behind_mark},
    {"spec 04 7.1 outbox: wraps without room for a mark", wraps_without_mark},
    {"spec 04 7.1 outbox: wraps at the very end", wraps_at_the_end},
    {"spec 04 7.1 outbox: behaves like a list", like_a_list},
    {NULL, NULL},
};
