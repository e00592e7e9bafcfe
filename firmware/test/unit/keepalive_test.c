#include "fake.h"
#include "mcplink/provider.h"

static mcplink_provider p;
static const char *json;
static size_t json_len;

static int poll(int32_t timeout_ms)
{
    return mcplink_provider_poll(&p, &json, &json_len, timeout_ms);
}

static void up(uint32_t interval, uint32_t pong)
{
    fake_reset();
    mcplink_provider_config c;
    memset(&c, 0, sizeof c);
    c.link = fake_link_config();
    c.link.ping_interval_ms = interval;
    c.link.pong_timeout_ms = pong;
    c.name = "pump-1";
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(mcplink_provider_is_connected(&p), 1);
}

static unsigned pings(void)
{
    unsigned n = 0;
    int op;
    while ((op = fake_frame()) >= 0) {
        CHECK_INT(op, MCPLINK_OP_PING);
        CHECK_INT(frame_len, 0);
        n++;
    }
    return n;
}

static void pings_at_the_interval(void)
{
    up(0, 0);
    CHECK_INT(poll(29999), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(pings(), 0);
    CHECK_INT(poll(1), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(pings(), 1);
    fake_push_frame(0x8A, "", 0);
    CHECK_INT(poll(30000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(pings(), 1);
    CHECK_INT(mcplink_provider_is_connected(&p), 1);
}

/* From inside one long poll. */
static void pings_within_a_poll(void)
{
    up(1000, 100000);
    CHECK_INT(poll(10500), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(pings(), 10);
}

static void off(void)
{
    up(MCPLINK_PING_OFF, 0);
    CHECK_INT(poll(1000000000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(pings(), 0);
    CHECK_INT(mcplink_provider_is_connected(&p), 1);
}

static void silence_is_noticed(void)
{
    up(0, 0);
    uint32_t before = net.now;
    seen_count = 0;
    CHECK_INT(poll(1000000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.now - before, 60000);
    CHECK_INT(seen_count, 1);
    CHECK_INT(seen[0].e.type, MCPLINK_EVENT_DISCONNECTED);
    CHECK_INT(seen[0].e.error, MCPLINK_ERR_TIMEOUT);
    CHECK_TEXT(seen[0].detail, "no pong");
    CHECK_INT(seen[0].e.close_code, 0);
    CHECK_INT(net.is_open, 0);
    CHECK_INT(mcplink_provider_is_connected(&p), 0);
}

static void no_limit_still_notices(void)
{
    up(0, 0);
    seen_count = 0;
    CHECK_INT(poll(-1), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(seen_count, 1);
}

/* Any byte counts, also half a frame. */
static void any_byte_keeps_alive(void)
{
    up(1000, 0);
    fake_push("\x81\x15", 2);
    for (unsigned i = 0; i < 20; i++) {
        fake_push("x", 1);
        CHECK_INT(poll(1500), MCPLINK_ERR_TIMEOUT);
    }
    CHECK_INT(mcplink_provider_is_connected(&p), 1);
}

static void own_pong_timeout(void)
{
    up(10000, 4000);
    uint32_t before = net.now;
    CHECK_INT(poll(100000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.now - before, 12000); /* the ping at 10 s had half the time */
    CHECK_INT(mcplink_provider_is_connected(&p), 0);
}

/* Pings more often than the peer is given to answer do not put the end off. */
static void pings_do_not_put_it_off(void)
{
    up(1000, 10000);
    uint32_t before = net.now;
    CHECK_INT(poll(100000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.now - before, 10000);
    CHECK_INT(mcplink_provider_is_connected(&p), 0);
}

/* A task that was away gives the peer a chance to answer first. */
static void late_poll(void)
{
    up(0, 0);
    net.now += 500000;
    CHECK_INT(poll(100), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(mcplink_provider_is_connected(&p), 1);
    CHECK_INT(pings(), 1);
    fake_push_frame(0x8A, "", 0);
    CHECK_INT(poll(100), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(poll(29000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(mcplink_provider_is_connected(&p), 1);
}

/* However long a link was too busy to wait in vain, silence after that is noticed. */
static void silence_after_weeks(void)
{
    up(0, 0);
    for (unsigned i = 0; i < 4; i++) {
        net.now += 0x30000000u;
        fake_push_text("{}");
        CHECK_INT(poll(0), MCPLINK_OK);
    }
    uint32_t before = net.now;
    CHECK_INT(poll(1000000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.now - before, 60000);
    CHECK_INT(mcplink_provider_is_connected(&p), 0);
}

static void ping_that_cannot_be_sent(void)
{
    up(1000, 0);
    net.send_error = MCPLINK_ERR_TRANSPORT;
    seen_count = 0;
    CHECK_INT(poll(2000), MCPLINK_ERR_TRANSPORT);
    CHECK_INT(seen[0].e.type, MCPLINK_EVENT_DISCONNECTED);
}

const test_case keepalive_cases[] = {{"R-40 an empty ping at the interval", pings_at_the_interval},
                                     {"R-40 pings within one long poll", pings_within_a_poll},
                                     {"D-05 keepalive off", off},
                                     {"R-41 D-03 silence is noticed", silence_is_noticed},
                                     {"R-41 a poll without limit notices too", no_limit_still_notices},
                                     {"R-22 R-41 any byte keeps the link alive", any_byte_keeps_alive},
                                     {"R-41 pong_timeout_ms", own_pong_timeout},
                                     {"R-41 more pings do not put the end off", pings_do_not_put_it_off},
                                     {"R-41 a late poll asks before it drops", late_poll},
                                     {"R-41 silence after weeks of traffic", silence_after_weeks},
                                     {"R-40 a ping that cannot be sent", ping_that_cannot_be_sent},
                                     {NULL, NULL}};
