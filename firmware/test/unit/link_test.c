/* Defaults, events, states of the link engine, through a provider. */
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

static void start(const mcplink_provider_config *c)
{
    CHECK_INT(mcplink_provider_init(&p, &net.port, c), MCPLINK_OK);
}

static void start_default(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    start(&c);
}

static int poll(int32_t timeout_ms)
{
    return mcplink_provider_poll(&p, &json, &json_len, timeout_ms);
}

static void defaults(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    start(&c);
    CHECK_INT(p.link.config.retry_initial_ms, 1000);
    CHECK_INT(p.link.config.retry_max_ms, 30000);
    CHECK_INT(p.link.config.ping_interval_ms, 30000);
    CHECK_INT(p.link.config.pong_timeout_ms, 60000);
    c.link.retry_initial_ms = 4000000000u; /* a floor above the ceiling is clamped */
    c.link.retry_max_ms = 10;              /* a maximum below the floor is raised */
    start(&c);
    CHECK_INT(p.link.config.retry_initial_ms, 3600000);
    CHECK_INT(p.link.config.retry_max_ms, 3600000);
    c.link.retry_initial_ms = 500;
    c.link.retry_max_ms = 4000000000u;
    start(&c);
    CHECK_INT(p.link.config.retry_max_ms, 3600000);
    CHECK_INT(net.opens, 0);
    CHECK_INT(p.link.state, MCPLINK_LINK_WAITING);
}

/* Each setting reaches the socket. */
static void settings_arrive(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    c.link.port = 4321;
    c.link.tls = 1;
    c.link.connect_timeout_ms = 1234;
    c.link.handshake_timeout_ms = 777;
    c.link.send_timeout_ms = 555;
    start(&c);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.host_port, 4321);
    CHECK_INT(net.tls, 1);
    CHECK_INT(net.open_timeout, 1234);
    CHECK_INT(net.send_timeout, 555);
    start(&c);
    net.head = "";
    uint32_t before = net.now;
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.now - before, 777);
    CHECK_INT(mcplink_link_init(NULL, &net.port, &c.link, "/p", NULL, NULL), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_link_init(&p.link, &net.port, NULL, "/p", NULL, NULL), MCPLINK_ERR_ARG);
}

static void first_poll_connects(void)
{
    start_default();
    net.now += 77;
    CHECK_INT(mcplink_provider_is_connected(&p), 0);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(mcplink_provider_is_connected(&p), 1);
    CHECK_INT(seen_count, 1);
    CHECK_INT(seen[0].e.type, MCPLINK_EVENT_CONNECTED);
    CHECK_INT(seen[0].e.error, MCPLINK_OK);
    CHECK_INT(seen[0].e.down_ms, 77);
    CHECK_INT(seen[0].e.next_retry_ms, 0);
    CHECK_INT(seen[0].e.connects, 1);
    CHECK_INT(seen[0].e.at_ms, 1077);
    CHECK_TEXT(seen[0].reason, "");
    CHECK_TEXT(seen[0].detail, "");
    CHECK_TEXT(seen[0].slot, "");
    CHECK_INT(p.link.connects, 1);
}

static void messages(void)
{
    start_default();
    (void)poll(0);
    CHECK_INT(poll(20), MCPLINK_ERR_TIMEOUT);
    fake_push_text("{\"id\":1}");
    CHECK_INT(poll(20), MCPLINK_OK);
    CHECK_BYTES(json, json_len, "{\"id\":1}");
    CHECK_INT(mcplink_provider_send(&p, "{\"id\":2}", 8), MCPLINK_OK);
    CHECK_BYTES(json, json_len, "{\"id\":1}"); /* send leaves it alone */
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_TEXT(frame_payload, "{\"id\":2}");
    CHECK_INT(p.link.messages_in, 1);
    CHECK_INT(p.link.messages_out, 1);
    CHECK_INT(mcplink_provider_send(&p, NULL, 0), MCPLINK_OK);
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_INT(frame_len, 0);
    CHECK_INT(seen_count, 1);
}

static int woken_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    (void)ctx;
    (void)buf;
    (void)len;
    (void)timeout_ms;
    return ++net.recvs == 1 ? MCPLINK_ERR_TIMEOUT : MCPLINK_ERR_TRANSPORT;
}

/* A port that is woken ends its wait early, and the poll with it. */
static void woken(void)
{
    start_default();
    (void)poll(0);
    net.port.recv = woken_recv;
    net.recvs = 0;
    CHECK_INT(poll(1000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.recvs, 1);
    net.recvs = 0;
    CHECK_INT(poll(-1), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.recvs, 1);
}

static void states_and_arguments(void)
{
    start_default();
    CHECK_INT(mcplink_provider_send(&p, "x", 1), MCPLINK_ERR_STATE);
    CHECK_INT(mcplink_provider_send(&p, NULL, 1), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_provider_send(NULL, "x", 1), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_provider_poll(NULL, &json, &json_len, 0), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_provider_poll(&p, NULL, &json_len, 0), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_provider_is_connected(NULL), 0);
    mcplink_provider_stop(NULL);
    CHECK_INT(mcplink_provider_init(NULL, &net.port, NULL), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_provider_init(&p, &net.port, NULL), MCPLINK_ERR_ARG);
    mcplink_provider_config c = config();
    CHECK_INT(mcplink_provider_init(&p, NULL, &c), MCPLINK_ERR_ARG);
    CHECK_TEXT(mcplink_provider_detail(&p), "port incomplete");
    CHECK_INT(poll(0), MCPLINK_ERR_STATE);
}

static void stop_is_silent(void)
{
    start_default();
    (void)poll(0);
    mcplink_provider_stop(&p);
    CHECK_INT(fake_frame(), MCPLINK_OP_CLOSE);
    CHECK_BYTES(frame_payload, frame_len, "\x03\xE8");
    CHECK_INT(net.is_open, 0);
    CHECK_INT(seen_count, 1);
    CHECK_INT(poll(1000), MCPLINK_ERR_STATE);
    CHECK_INT(net.opens, 1);
    mcplink_provider_stop(&p);
    CHECK_INT(net.closes, 1);
}

static void disconnected_event(void)
{
    start_default();
    (void)poll(0);
    net.now += 100;
    fake_push_close(1001, "going away");
    CHECK_INT(poll(1000), MCPLINK_ERR_CLOSED);
    CHECK_INT(seen_count, 2);
    CHECK_INT(seen[1].e.type, MCPLINK_EVENT_DISCONNECTED);
    CHECK_INT(seen[1].e.error, MCPLINK_ERR_CLOSED);
    CHECK_INT(seen[1].e.close_code, 1001);
    CHECK_INT(seen[1].e.http_status, 0);
    CHECK_INT(seen[1].e.attempts, 1);
    CHECK_TEXT(seen[1].reason, "going away");
    CHECK_TEXT(seen[1].detail, "");
    CHECK_INT(p.link.disconnects, 1);
    CHECK_INT(p.link.state, MCPLINK_LINK_WAITING);

    net.now += 5000; /* the outage ends */
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(seen[2].e.type, MCPLINK_EVENT_CONNECTED);
    CHECK_INT(seen[2].e.down_ms, 5000);
    CHECK_INT(seen[2].e.connects, 2);
}

static void three_accounts(void)
{
    start_default();
    net.head = "HTTP/1.1 401 Unauthorized\r\n\r\n";
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(seen[0].e.type, MCPLINK_EVENT_RETRY_FAILED);
    CHECK_INT(seen[0].e.error, MCPLINK_ERR_HANDSHAKE);
    CHECK_INT(seen[0].e.http_status, 401);
    CHECK_INT(seen[0].e.close_code, 0);
    CHECK_TEXT(seen[0].detail, "HTTP 401");
    CHECK_TEXT(seen[0].reason, "");
    start_default();
    (void)poll(0);
    fake_push("\x81\x85", 2);
    CHECK_INT(poll(10), MCPLINK_ERR_PROTOCOL);
    CHECK_INT(seen[1].e.error, MCPLINK_ERR_PROTOCOL);
    CHECK_INT(seen[1].e.close_code, 0);
    CHECK_TEXT(seen[1].detail, "masked frame, header 81 85");
    CHECK_TEXT(seen[1].reason, "");
}

static void loss_while_sending(void)
{
    start_default();
    (void)poll(0);
    net.send_error = MCPLINK_ERR_TRANSPORT;
    CHECK_INT(mcplink_provider_send(&p, "x", 1), MCPLINK_ERR_TRANSPORT);
    CHECK_INT(seen[1].e.type, MCPLINK_EVENT_DISCONNECTED);
    CHECK_INT(p.link.messages_out, 0);
    CHECK_INT(mcplink_provider_send(&p, "x", 1), MCPLINK_ERR_STATE);
}

static void dropped(void)
{
    start_default();
    mcplink_link_drop(&p.link, MCPLINK_ERR_TRANSPORT); /* it is down */
    CHECK_INT(seen_count, 0);
    (void)poll(0);
    mcplink_link_drop(&p.link, MCPLINK_ERR_TRANSPORT);
    CHECK_INT(net.is_open, 0);
    CHECK_INT(seen_count, 2);
    CHECK_INT(seen[1].e.type, MCPLINK_EVENT_DISCONNECTED);
    CHECK_INT(seen[1].e.error, MCPLINK_ERR_TRANSPORT);
}

static int refusing_hook(mcplink_link *link)
{
    (void)link;
    return MCPLINK_ERR_STATE;
}

/* A connection whose hook fails, though it could send, is closed. */
static void hook_fails(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    CHECK_INT(mcplink_link_init(&p.link, &net.port, &c.link, "/p", NULL, refusing_hook), MCPLINK_OK);
    CHECK_INT(mcplink_link_poll(&p.link, &json, &json_len, 0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(seen[0].e.type, MCPLINK_EVENT_RETRY_FAILED);
    CHECK_INT(seen[0].e.error, MCPLINK_ERR_STATE);
    CHECK_INT(fake_frame(), MCPLINK_OP_CLOSE);
    CHECK_BYTES(frame_payload, frame_len, "\x03\xE8");
    CHECK_INT(net.is_open, 0);
}

static void no_sink(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    c.link.on_event = NULL;
    start(&c);
    net.open_error = MCPLINK_ERR_TRANSPORT;
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(p.link.attempts, 1);
}

static void waiting_sleeps(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    c.link.retry_no_jitter = 1;
    start(&c);
    net.open_error = MCPLINK_ERR_TRANSPORT;
    CHECK_INT(poll(200), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.sleeps, 0); /* the event comes before any wait, and carries it */
    CHECK_INT(seen[0].e.next_retry_ms, 1000);
    CHECK_INT(seen[0].sleeps, 0);
    CHECK_INT(poll(200), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.slept, 200);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.sleeps, 1);
    CHECK_INT(poll(-1), MCPLINK_ERR_TIMEOUT); /* no limit: until due */
    CHECK_INT(net.slept, 1000);
    CHECK_INT(net.opens, 1);
    CHECK_INT(poll(200), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.opens, 2);
    net.port.sleep_ms = NULL; /* without it poll returns at once */
    uint32_t before = net.now;
    CHECK_INT(poll(200), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.now - before, 0);
}

/* One poll while connecting stays within its timeout. */
static void stepwise(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    c.link.stepwise = 1;
    start(&c);
    net.open_ms = 450;
    unsigned polls = 0;
    while (!mcplink_provider_is_connected(&p) && polls < 20) {
        uint32_t before = net.now;
        CHECK_INT(poll(100), MCPLINK_ERR_TIMEOUT);
        CHECK(net.now - before <= 100);
        polls++;
    }
    CHECK_INT(net.opens, 5);
    CHECK_INT(seen_count, 1);
    CHECK_INT(seen[0].e.down_ms, 450);

    start(&c); /* stopped half-way */
    net.open_ms = 450;
    CHECK_INT(poll(100), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(p.link.state, MCPLINK_LINK_CONNECTING);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT); /* without blocking, and without giving up */
    CHECK_INT(p.link.state, MCPLINK_LINK_CONNECTING);
    unsigned closes = net.closes;
    mcplink_provider_stop(&p);
    CHECK_INT(net.closes, closes + 1);
    CHECK_INT(poll(100), MCPLINK_ERR_STATE);
}

static void pause_through_the_provider(void)
{
    start_default();
    (void)poll(0);
    fake_push_text("message");
    net.pause_at = net.in_pos + 4;
    CHECK_INT(poll(10), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(poll(10), MCPLINK_OK);
    CHECK_BYTES(json, json_len, "message");
}

const test_case link_cases[] = {{"R-34 defaults and clamps", defaults},
                                {"spec 04 2.5: each setting reaches the socket", settings_arrive},
                                {"spec 04 2.5: the first poll connects", first_poll_connects},
                                {"spec 04 2.5: messages and counters", messages},
                                {"spec 04 2.5: a wait that ends early", woken},
                                {"spec 04 2.2: states and arguments", states_and_arguments},
                                {"R-47 stop closes with 1000, without an event", stop_is_silent},
                                {"R-23 spec 04 2.6: DISCONNECTED and the next CONNECTED", disconnected_event},
                                {"R-04 spec 04 5: three accounts, never merged", three_accounts},
                                {"spec 04 2.6: loss while sending", loss_while_sending},
                                {"spec 04 2.6: a link that is dropped", dropped},
                                {"R-30 a hook that fails", hook_fails},
                                {"spec 04 2.6: no event callback", no_sink},
                                {"R-37 waiting sleeps after the event", waiting_sleeps},
                                {"D-14 stepwise connecting", stepwise},
                                {"R-27 a pause through the provider", pause_through_the_provider},
                                {NULL, NULL}};
