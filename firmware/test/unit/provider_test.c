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

static void path(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    c.name = "site/pump 1";
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    (void)poll(0);
    CHECK(test_contains(fake_request(), "GET /provider/site%2Fpump%201 HTTP/1.1\r\n"));
    c.prefix = "/tunnel";
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    (void)poll(0);
    CHECK(test_contains(fake_request(), "GET /tunnel/site%2Fpump%201 HTTP/1.1\r\n"));
}

static void names_refused(void)
{
    static char name[MCPLINK_NAME_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    fake_reset();
    mcplink_provider_config c = config();
    c.name = "";
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_ERR_ARG);
    CHECK_TEXT(mcplink_provider_detail(&p), "slot name is empty");
    c.name = NULL;
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_ERR_ARG);
    c.name = name;
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_ERR_TOO_LARGE);
    CHECK_TEXT(mcplink_provider_detail(&p), "slot name too long");
    c = config();
    c.link.extra_headers = "Host: x\r\n";
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_ERR_ARG);
    CHECK_INT(poll(0), MCPLINK_ERR_STATE);
    CHECK_INT(net.opens, 0);
}

static void token(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    c.link.extra_headers = "X-Provider-Token: s3cret\r\n";
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    (void)poll(0);
    CHECK(test_contains(fake_request(), "\r\nX-Provider-Token: s3cret\r\n"));
}

static void check_registration(void)
{
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_TEXT(frame_payload,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\",\"params\":{\"aggregate\":true}}");
}

static void registers_first(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    c.aggregate = 1;
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    (void)poll(0);
    check_registration();
    CHECK_INT(fake_frame(), -1);
    CHECK_INT(p.link.messages_out, 0);
    net.end = MCPLINK_ERR_CLOSED; /* and again after every handshake */
    CHECK_INT(poll(0), MCPLINK_ERR_CLOSED);
    net.end = MCPLINK_ERR_TIMEOUT;
    net.now += 1000;
    (void)poll(0);
    check_registration();
}

static void no_registration(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    (void)poll(0);
    CHECK_INT(fake_frame(), -1);
}

static void unsendable_registration(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    c.aggregate = 1;
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    net.send_error = MCPLINK_ERR_TRANSPORT;
    net.send_fail_at = 2; /* the request passes */
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(seen_count, 1);
    CHECK_INT(seen[0].e.type, MCPLINK_EVENT_RETRY_FAILED);
    CHECK_INT(seen[0].e.error, MCPLINK_ERR_TRANSPORT);
    CHECK_INT(net.is_open, 0);
    CHECK_INT(p.link.connects, 0);
}

/* What the broker sends on its own after a connect is ordinary traffic here. */
static void broker_first(void)
{
    static const char *const frames[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":\"brk-1\",\"method\":\"initialize\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"brk-2\",\"method\":\"resources/subscribe\",\"params\":{\"uri\":\"a:b\"}}"};
    fake_reset();
    mcplink_provider_config c = config();
    c.aggregate = 1;
    for (size_t i = 0; i < 3; i++) {
        fake_script_frame(0x81, frames[i], strlen(frames[i]));
    }
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(poll(0), MCPLINK_OK);
        CHECK_BYTES(json, json_len, frames[i]);
    }
    CHECK_INT(p.link.messages_in, 3);
}

/* CONNECTED first, the refusal after it. */
static void refused_after_connected(void)
{
    fake_reset();
    mcplink_provider_config c = config();
    fake_script_close(1008, "Slot already held by a live provider; call provider_status on _broker. Slot: \"dup\"");
    CHECK_INT(mcplink_provider_init(&p, &net.port, &c), MCPLINK_OK);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(poll(0), MCPLINK_ERR_CLOSED);
    CHECK_INT(seen[0].e.type, MCPLINK_EVENT_CONNECTED);
    CHECK_INT(seen[1].e.type, MCPLINK_EVENT_DISCONNECTED);
    CHECK_INT(seen[1].e.close_code, 1008);
    CHECK_TEXT(seen[1].reason,
               "Slot already held by a live provider; call provider_status on _broker. Slot: \"dup\"");
}

const test_case provider_cases[] = {{"R-02 the path of a slot", path},
                                    {"D-09 D-10 names and headers refused at init", names_refused},
                                    {"R-03 the token", token},
                                    {"R-30 the registration is the first frame", registers_first},
                                    {"R-30 without aggregate nothing is sent", no_registration},
                                    {"R-30 a registration that cannot be sent", unsendable_registration},
                                    {"R-31 R-32 the broker speaks first", broker_first},
                                    {"R-33 CONNECTED, then a refusal", refused_after_connected},
                                    {NULL, NULL}};
