/* The agent in a bare loop, over the library's scripted port: no threads, no clock
 * but the script's. */
#include "agent_cases.h"
#include "fake.h"
#include "mcplink_agent.h"
#include "os_bare.h"

static mcplink_agent agent;
static mcplink_os_bare bare;
static char reply[64], pool[64], heard[64];
static mcplink_agent_event events[8];
static unsigned event_count;
static int32_t answer;
static int from_handler; /* what the handler got for calling stop */

static int32_t handle(void *user, const char *json, size_t len, char *out, size_t cap)
{
    (void)user;
    if (len < sizeof heard) {
        memcpy(heard, json, len);
        heard[len] = '\0';
    }
    from_handler = mcplink_agent_stop(&agent);
    CHECK_INT(mcplink_agent_configure(&agent, &agent.config.provider, handle, NULL), MCPLINK_ERR_STATE);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_ERR_STATE);
    if (answer > 0 && (size_t)answer <= cap) {
        memset(out, 'r', (size_t)answer);
    }
    return answer;
}

static void on_event(void *user, const mcplink_agent_event *event)
{
    (void)user;
    if (event_count < 8) {
        events[event_count++] = *event;
    }
}

static mcplink_agent_config config(void)
{
    mcplink_agent_config c;

    fake_reset();
    memset(&c, 0, sizeof c);
    memset(events, 0, sizeof events);
    event_count = 0;
    answer = 0;
    heard[0] = '\0';
    mcplink_os_bare_init(&bare, &c.os, net.port.sleep_ms, net.port.ctx);
    c.provider.link = fake_link_config();
    c.provider.link.retry_no_jitter = 1;
    c.provider.name = "pump-1";
    c.port = net.port;
    c.handler = handle;
    c.on_event = on_event;
    c.reply = reply;
    c.reply_cap = sizeof reply;
    c.outbox = pool;
    c.outbox_cap = sizeof pool;
    return c;
}

static void begin(void)
{
    mcplink_agent_config c = config();

    CHECK_INT(mcplink_agent_init(&agent, &c), MCPLINK_OK);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
}

static void connect(void)
{
    begin();
    mcplink_agent_step(&agent, 10);
    CHECK_INT(mcplink_agent_is_connected(&agent), 1);
    CHECK_INT(events[0].type, MCPLINK_EVENT_CONNECTED);
}

static mcplink_agent_stats stats(void)
{
    mcplink_agent_stats s;

    mcplink_agent_get_stats(&agent, &s);
    return s;
}

static void incomplete(void)
{
    mcplink_agent_config c = config();
    mcplink_agent_config broken = c;

    CHECK_INT(mcplink_agent_init(NULL, &c), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_agent_init(&agent, NULL), MCPLINK_ERR_ARG);
    broken.handler = NULL;
    CHECK_INT(mcplink_agent_init(&agent, &broken), MCPLINK_ERR_ARG);
    broken = c;
    broken.outbox = NULL;
    CHECK_INT(mcplink_agent_init(&agent, &broken), MCPLINK_ERR_ARG);
    broken = c;
    broken.os.join = NULL;
    CHECK_INT(mcplink_agent_init(&agent, &broken), MCPLINK_ERR_ARG);
    broken = c;
    broken.provider.name = "";
    CHECK_INT(mcplink_agent_init(&agent, &broken), MCPLINK_OK);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_ERR_ARG);
    CHECK(test_contains(mcplink_agent_detail(&agent), "slot name"));
    CHECK_INT(mcplink_agent_stop(&agent), MCPLINK_OK);
}

static void serves(void)
{
    connect();
    answer = 3;
    fake_push_text("{\"id\":1}");
    mcplink_agent_step(&agent, 10);
    CHECK_TEXT(heard, "{\"id\":1}");
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_TEXT(frame_payload, "rrr");
    CHECK_INT(from_handler, MCPLINK_ERR_STATE);
    for (answer = 0; answer >= -1; answer--) {
        fake_push_text("{}");
        mcplink_agent_step(&agent, 10);
        CHECK_INT(fake_frame(), -1);
    }
    answer = sizeof reply + 1;
    fake_push_text("{}");
    mcplink_agent_step(&agent, 10);
    CHECK_INT(fake_frame(), -1);
    CHECK_INT(stats().handled, 4);
    CHECK_INT(stats().dropped, 2);
}

static void sends(void)
{
    begin();
    CHECK_INT(mcplink_agent_send(&agent, "early", 5), MCPLINK_ERR_STATE);
    connect();
    CHECK_INT(mcplink_agent_send(&agent, "one", 3), MCPLINK_OK);
    CHECK_INT(mcplink_agent_send(&agent, "two", 3), MCPLINK_OK);
    CHECK_INT(mcplink_agent_send(&agent, "", 0), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_agent_send(&agent, pool, sizeof pool), MCPLINK_ERR_TOO_LARGE);
    mcplink_agent_step(&agent, 10);
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_TEXT(frame_payload, "one");
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_TEXT(frame_payload, "two");
    CHECK_INT(stats().sent, 2);
}

/* Nothing queued outlives the connection, whichever way it ends. */
static void loses_queue(void)
{
    connect();
    CHECK_INT(mcplink_agent_send(&agent, "one", 3), MCPLINK_OK);
    CHECK_INT(mcplink_agent_send(&agent, "two", 3), MCPLINK_OK);
    net.send_error = MCPLINK_ERR_TRANSPORT;
    net.send_fail_at = net.sends + 2;
    mcplink_agent_step(&agent, 10);
    CHECK_INT(events[1].type, MCPLINK_EVENT_DISCONNECTED);
    CHECK_INT(events[1].error, MCPLINK_ERR_TRANSPORT);
    CHECK_INT(mcplink_agent_is_connected(&agent), 0);
    CHECK_INT(mcplink_agent_send(&agent, "late", 4), MCPLINK_ERR_STATE);
    CHECK_INT(stats().sent, 1);
    CHECK_INT(stats().lost, 1);
    net.send_error = 0;
    while (!mcplink_agent_is_connected(&agent)) {
        mcplink_agent_step(&agent, 500);
    }
    mcplink_agent_step(&agent, 10);
    CHECK_INT(fake_frame(), -1);
    CHECK_INT(mcplink_agent_send(&agent, "three", 5), MCPLINK_OK);
    CHECK_INT(mcplink_agent_stop(&agent), MCPLINK_OK);
    CHECK_INT(stats().lost, 2);
}

/* A handler that queues more than it is asked gets its reply out first, and the link
 * is polled between. */
static int32_t busy(void *user, const char *json, size_t len, char *out, size_t cap)
{
    (void)user;
    (void)cap;
    CHECK_INT(mcplink_agent_send(&agent, "notice", 6), MCPLINK_OK);
    memcpy(out, json, len);
    return (int32_t)len;
}

static void reply_before_notice(void)
{
    mcplink_agent_config c = config();

    c.handler = busy;
    CHECK_INT(mcplink_agent_init(&agent, &c), MCPLINK_OK);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
    mcplink_agent_step(&agent, 10);
    fake_push_text("a");
    fake_push_text("b");
    mcplink_agent_step(&agent, 10);
    mcplink_agent_step(&agent, 10);
    mcplink_agent_step(&agent, 10);
    const char *const want[] = {"a", "notice", "b", "notice"};
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
        CHECK_TEXT(frame_payload, want[i]);
    }
}

static void events_are_copies(void)
{
    connect();
    fake_push_close(1008, "Slot already held");
    mcplink_agent_step(&agent, 10);
    CHECK_INT(events[1].type, MCPLINK_EVENT_DISCONNECTED);
    CHECK_INT(events[1].close_code, 1008);
    memset(rx, 'x', sizeof rx);
    CHECK_TEXT(events[1].reason, "Slot already held");
    CHECK_INT(events[1].next_retry_ms, 1000);
    CHECK_INT(events[1].attempts, 1);
    CHECK_INT(events[0].connects, 1);
}

/* While the network is down nothing is attempted, so the window stays where it was. */
static void gate(void)
{
    mcplink_agent_config c = config();

    c.wait_for_network = 1;
    CHECK_INT(mcplink_agent_init(&agent, &c), MCPLINK_OK);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
    for (int i = 0; i < 100; i++) {
        mcplink_agent_step(&agent, 1000);
    }
    CHECK_INT(net.opens, 0);
    CHECK_INT(net.slept, 100000);
    mcplink_agent_network(&agent, 1);
    mcplink_agent_step(&agent, 1000);
    CHECK_INT(net.opens, 1);
    CHECK_INT(mcplink_agent_is_connected(&agent), 1);
    /* The connection stands until it fails by itself. */
    mcplink_agent_network(&agent, 0);
    fake_push_text("{}");
    mcplink_agent_step(&agent, 10);
    CHECK_INT(stats().handled, 1);
    fake_push_close(1001, "");
    for (int i = 0; i < 100; i++) {
        mcplink_agent_step(&agent, 1000);
    }
    CHECK_INT(net.opens, 1);
    CHECK_INT(event_count, 2);
    mcplink_agent_network(&agent, 1);
    mcplink_agent_step(&agent, 10);
    CHECK_INT(events[2].type, MCPLINK_EVENT_CONNECTED);
}

/* Steps wait for the attempt that is due, and for no longer than they may. */
static void waits_for_due(void)
{
    mcplink_agent_config c = config();

    c.provider.link.retry_initial_ms = 300;
    CHECK_INT(mcplink_agent_init(&agent, &c), MCPLINK_OK);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
    net.open_error = MCPLINK_ERR_TRANSPORT;
    mcplink_agent_step(&agent, 200);
    CHECK_INT(net.slept, 200);
    mcplink_agent_step(&agent, 200);
    CHECK_INT(net.slept, 300);
    CHECK_INT(net.opens, 1);
    mcplink_agent_step(&agent, 0);
    CHECK_INT(net.opens, 2);
    CHECK_INT(net.slept, 300);
    CHECK_INT(events[1].type, MCPLINK_EVENT_RETRY_FAILED);
    CHECK_INT(events[1].attempts, 2);
    CHECK_INT(events[1].window_ms, 600);
}

static int others; /* messages that another handler got */

static int32_t other_handler(void *user, const char *json, size_t len, char *out, size_t cap)
{
    (void)json;
    (void)len;
    (void)out;
    (void)cap;
    ++*(int *)user;
    return 0;
}

static void restarts(void)
{
    mcplink_provider_config other = config().provider;

    connect();
    other.name = "pump-2";
    CHECK_INT(mcplink_agent_configure(&agent, &other, handle, NULL), MCPLINK_ERR_STATE);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_ERR_STATE);
    CHECK_INT(mcplink_agent_stop(&agent), MCPLINK_OK);
    CHECK_INT(fake_frame(), MCPLINK_OP_CLOSE);
    CHECK_INT(event_count, 1);
    CHECK_INT(mcplink_agent_stop(&agent), MCPLINK_OK);
    mcplink_agent_step(&agent, 10);
    CHECK_INT(net.opens, 1);
    CHECK(test_contains(fake_request(), "GET /provider/pump-1 "));
    CHECK_INT(mcplink_agent_configure(&agent, &other, NULL, NULL), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_agent_configure(&agent, &other, other_handler, &others), MCPLINK_OK);
    CHECK_INT(mcplink_agent_start(&agent), MCPLINK_OK);
    mcplink_agent_step(&agent, 10);
    CHECK_INT(net.opens, 2);
    CHECK(test_contains(fake_request(), "GET /provider/pump-2 "));
    fake_push_text("{}");
    mcplink_agent_step(&agent, 10);
    CHECK_INT(others, 1);
    CHECK_INT(event_count, 2);
    CHECK_INT(mcplink_agent_is_connected(&agent), 1);
    CHECK_INT(mcplink_agent_stop(&agent), MCPLINK_OK);
}

const test_case bare_cases[] = {
    {"agent: incomplete configurations", incomplete},
    {"spec 04 7 agent: handler and reply", serves},
    {"spec 04 7 agent: send", sends},
    {"spec 04 7 agent: nothing queued survives a disconnection", loses_queue},
    {"agent: the reply comes before what the handler queued", reply_before_notice},
    {"spec 04 7 agent: events are copies", events_are_copies},
    {"spec 04 7 agent: IP gate", gate},
    {"agent: waits for the next attempt", waits_for_due},
    {"spec 04 7.1 agent: stop and start again", restarts},
    {NULL, NULL},
};
