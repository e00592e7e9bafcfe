#include "fake.h"
#include "mcplink/provider.h"

static mcplink_provider p;
static const char *json;
static size_t json_len;

static mcplink_provider_config config(void)
{
    mcplink_provider_config c;
    memset(&c, 0, sizeof c);
    c.link = fake_link_config();
    c.name = "pump-1";
    return c;
}

static int poll(int32_t timeout_ms)
{
    return mcplink_provider_poll(&p, &json, &json_len, timeout_ms);
}

/* Passes the wait and makes one attempt; gives the newest event. */
static mcplink_event attempt(void)
{
    net.now = p.link.due_ms;
    seen_count = 0;
    (void)poll(0);
    CHECK_INT(seen_count, 1);
    return seen[0].e;
}

static void failing(uint32_t initial, uint32_t max, int no_jitter)
{
    fake_reset();
    mcplink_provider_config c = config();
    c.link.retry_initial_ms = initial;
    c.link.retry_max_ms = max;
    c.link.retry_no_jitter = no_jitter;
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    net.open_error = MCPLINK_ERR_TRANSPORT;
}

static void window_doubles(void)
{
    static const uint32_t want[] = {1000, 2000, 4000, 8000, 10000, 10000};
    failing(1000, 10000, 1);
    for (size_t i = 0; i < 6; i++) {
        mcplink_event e = attempt();
        CHECK_INT(e.type, MCPLINK_EVENT_RETRY_FAILED);
        CHECK_INT(e.window_ms, want[i]);
        CHECK_INT(e.next_window_ms, i < 5 ? want[i + 1] : 10000);
        CHECK_INT(e.next_retry_ms, want[i]);
        CHECK_INT(e.attempts, i + 1);
    }
    static const uint32_t odd[] = {15, 30, 31, 31};
    failing(15, 31, 1);
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(attempt().window_ms, odd[i]);
    }
    failing(1, UINT32_MAX, 1);
    for (unsigned i = 0; i < 40; i++) {
        (void)attempt();
    }
    CHECK_INT(p.link.window_ms, 3600000);
    CHECK_INT(p.link.attempts, 40);
}

static void jitter_spreads(void)
{
    uint32_t low = UINT32_MAX, high = 0, waits[64];
    unsigned distinct = 0;
    for (unsigned device = 0; device < 64; device++) {
        failing(1000, 30000, 0);
        net.seed = device * 2654435761u + 12345u;
        waits[device] = attempt().next_retry_ms;
        CHECK(waits[device] <= 1000);
        low = waits[device] < low ? waits[device] : low;
        high = waits[device] > high ? waits[device] : high;
        unsigned same = 0;
        for (unsigned i = 0; i < device; i++) {
            same += waits[i] == waits[device];
        }
        distinct += same == 0;
    }
    CHECK(distinct >= 32);
    CHECK(high - low > 500);
}

static void without_jitter_all_are_equal(void)
{
    for (unsigned device = 0; device < 64; device++) {
        failing(1000, 30000, 1);
        net.seed = device * 2654435761u;
        CHECK_INT(attempt().next_retry_ms, 1000);
    }
}

static void draw_bounds(void)
{
    failing(1000, 30000, 0);
    net.fixed_random = 0;
    CHECK_INT(mcplink_link_draw(&p.link, 5, 9), 5);
    net.fixed_random = 255;
    CHECK_INT(mcplink_link_draw(&p.link, 5, 9), 9);
    CHECK_INT(mcplink_link_draw(&p.link, 7, 7), 7);
    CHECK(mcplink_link_draw(&p.link, 0, UINT32_MAX) == UINT32_MAX);
}

/* The shortest wait after a close: none, but half the window after a refusal. */
static void shortest_wait(void)
{
    for (unsigned code = 1001; code <= 1008; code += 7) {
        fake_reset();
        mcplink_provider_config c = config();
        c.link.retry_initial_ms = 5;
        CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
        CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
        net.fixed_random = 0;
        fake_push_close(code, "");
        seen_count = 0;
        CHECK_INT(poll(0), MCPLINK_ERR_CLOSED);
        CHECK_INT(seen[0].e.next_retry_ms, code == 1008 ? 3 : 0);
    }
}

static void no_entropy_full_window(void)
{
    failing(1000, 30000, 0);
    net.entropy = 0;
    CHECK_INT(attempt().next_retry_ms, 1000);
    CHECK_INT(attempt().next_retry_ms, 2000);
}

static void clock_wraparound(void)
{
    failing(1000, 30000, 1);
    net.now = 0xFFFFF000u;
    mcplink_provider_config c = config();
    c.link.retry_no_jitter = 1;
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    for (unsigned i = 0; i < 6; i++) {
        (void)attempt();
        unsigned opens = net.opens;
        net.now = p.link.due_ms - 1;
        CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
        CHECK_INT(net.opens, opens);
    }
    CHECK(net.now < 0x80000000u);
    CHECK_INT(net.opens, 6);
}

/* A broker that accepts and then refuses the slot with 1008, for ten minutes. */
static void refused_slot_backs_off(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    fake_script_close(1008, "Slot already held by a live provider");
    uint32_t begin = net.now, last = begin;
    unsigned refusals = 0;
    while (net.now - begin < 600000) {
        seen_count = 0;
        int err = poll(1000);
        if (err != MCPLINK_ERR_CLOSED) {
            continue;
        }
        CHECK_INT(seen[0].e.close_code, 1008);
        CHECK(seen[0].e.next_retry_ms >= seen[0].e.window_ms / 2); /* */
        CHECK(seen[0].e.next_retry_ms <= seen[0].e.window_ms);
        refusals++;
        CHECK_INT(seen[0].e.attempts, refusals);
        CHECK(refusals < 6 || net.now - last >= 8000);
        last = net.now;
    }
    CHECK(refusals >= 20);
    CHECK(refusals <= 46);
    CHECK_INT(p.link.connects, net.opens);
}

static void link_up_after_failures(void)
{
    failing(1000, 30000, 1);
    (void)attempt();
    (void)attempt();
    net.open_error = 0;
    CHECK_INT(attempt().type, MCPLINK_EVENT_CONNECTED);
    CHECK_INT(seen[0].e.window_ms, 4000);
    CHECK_INT(seen[0].e.next_window_ms, 4000);
    CHECK_INT(p.link.window_ms, 4000); /* not proven yet */
    CHECK_INT(p.link.attempts, 2);
}

static void proven_by_message(void)
{
    link_up_after_failures();
    fake_push_frame(0x8A, "", 0);
    CHECK_INT(poll(10), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(p.link.attempts, 2); /* a pong proves nothing */
    fake_push_text("x");
    CHECK_INT(poll(10), MCPLINK_OK);
    CHECK_INT(p.link.window_ms, 1000);
    CHECK_INT(p.link.attempts, 0);
}

/* Each connection has to prove itself anew, and can. */
static void proven_again(void)
{
    proven_by_message();
    net.end = MCPLINK_ERR_CLOSED;
    CHECK_INT(poll(0), MCPLINK_ERR_CLOSED);
    net.end = MCPLINK_ERR_TIMEOUT;
    CHECK_INT(attempt().type, MCPLINK_EVENT_CONNECTED);
    CHECK_INT(p.link.attempts, 1);
    CHECK_INT(p.link.window_ms, 2000);
    fake_push_text("x");
    CHECK_INT(poll(0), MCPLINK_OK);
    CHECK_INT(p.link.attempts, 0);
    CHECK_INT(p.link.window_ms, 1000);
}

static void proven_by_age(void)
{
    link_up_after_failures();
    CHECK_INT(poll(4999), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(p.link.attempts, 2);
    CHECK_INT(poll(1), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(p.link.attempts, 0);
    CHECK_INT(p.link.window_ms, 1000);
    fake_push_close(1001, "");
    seen_count = 0;
    CHECK_INT(poll(0), MCPLINK_ERR_CLOSED);
    CHECK_INT(seen[0].e.window_ms, 1000); /* D-13: the one drawn from, and the next */
    CHECK_INT(seen[0].e.next_window_ms, 2000);
}

/* What a link lasted counts, though nobody has looked at it meanwhile. */
static void proven_by_age_unseen(void)
{
    link_up_after_failures();
    net.now += 5000;
    fake_push_close(1001, "");
    seen_count = 0;
    CHECK_INT(poll(0), MCPLINK_ERR_CLOSED);
    CHECK_INT(seen[0].e.window_ms, 1000);
    CHECK_INT(seen[0].e.attempts, 1);
}

static void unproven_keeps_doubling(void)
{
    link_up_after_failures();
    net.end = MCPLINK_ERR_CLOSED;
    seen_count = 0;
    CHECK_INT(poll(0), MCPLINK_ERR_CLOSED);
    CHECK_INT(seen[0].e.window_ms, 4000);
    CHECK_INT(seen[0].e.attempts, 3);
}

static void policy_without_jitter_or_entropy(void)
{
    link_up_after_failures();
    net.entropy = 1; /* for the echo of the close frame */
    fake_push_close(1008, "no");
    seen_count = 0;
    CHECK_INT(poll(0), MCPLINK_ERR_CLOSED);
    CHECK_INT(seen[0].e.next_retry_ms, 4000);
}

const test_case retry_cases[] = {{"R-34 the window doubles up to its maximum", window_doubles},
                                 {"R-35 64 devices spread", jitter_spreads},
                                 {"R-35 without the draw all are equal", without_jitter_all_are_equal},
                                 {"R-35 the draw reaches both ends", draw_bounds},
                                 {"R-35 R-39 the shortest wait after a close", shortest_wait},
                                 {"R-36 no entropy: the whole window", no_entropy_full_window},
                                 {"R-34 the clock wraps around", clock_wraparound},
                                 {"R-33 R-38 R-39 D-02 a refused slot backs off", refused_slot_backs_off},
                                 {"R-38 proven by the first message", proven_by_message},
                                 {"R-38 the next connection proves itself anew", proven_again},
                                 {"R-38 D-13 proven by five seconds", proven_by_age},
                                 {"R-38 proven by five seconds that nobody saw", proven_by_age_unseen},
                                 {"R-38 D-02 unproven: the window keeps doubling", unproven_keeps_doubling},
                                 {"R-36 R-39 policy close without entropy", policy_without_jitter_or_entropy},
                                 {NULL, NULL}};
