#include "fake.h"
#include "mcplink/mux.h"

static mcplink_mux m;
static mcplink_mux_slot slots[2];
static const char *json;
static size_t json_len, slot;

#define REGISTER(name) \
    "{\"provider\":\"" name "\",\"payload\":{\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\"}}"
#define REGISTER_ALL(name) \
    "{\"provider\":\"" name \
    "\",\"payload\":{\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\",\"params\":{\"aggregate\":true}}}"
#define REFUSAL(name, code, text) \
    "{\"provider\":\"" name "\",\"payload\":{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":" code \
    ",\"message\":\"" text "\"}}}"

static mcplink_mux_config config(void)
{
    mcplink_mux_config c;
    memset(&c, 0, sizeof c);
    memset(slots, 0, sizeof slots);
    slots[0].name = "a";
    slots[0].aggregate = 1;
    slots[1].name = "b \"2\"";
    c.link = fake_link_config();
    c.slots = slots;
    c.slot_count = 2;
    return c;
}

static int poll(int32_t timeout_ms)
{
    return mcplink_mux_poll(&m, &slot, &json, &json_len, timeout_ms);
}

static void up(void)
{
    fake_reset();
    mcplink_mux_config c = config();
    CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_OK);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(mcplink_mux_is_connected(&m), 1);
}

static void check_sent(const char *want)
{
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_TEXT(frame_payload, want);
}

static void registers_all(void)
{
    up();
    CHECK(test_contains(fake_request(), "GET /providers HTTP/1.1\r\n"));
    check_sent(REGISTER_ALL("a"));
    check_sent(REGISTER("b \\\"2\\\""));
    CHECK_INT(fake_frame(), -1);
    CHECK_INT(seen_count, 1);
    net.end = MCPLINK_ERR_CLOSED; /* and again on the next open */
    CHECK_INT(poll(0), MCPLINK_ERR_CLOSED);
    net.end = MCPLINK_ERR_TIMEOUT;
    net.now += 1000;
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    check_sent(REGISTER_ALL("a"));
    check_sent(REGISTER("b \\\"2\\\""));
    CHECK_INT(m.link.messages_out, 0);
}

static void registration_fails(void)
{
    fake_reset();
    mcplink_mux_config c = config();
    CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_OK);
    net.send_error = MCPLINK_ERR_TRANSPORT;
    net.send_fail_at = 3; /* the request and the first slot pass */
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(seen_count, 1);
    CHECK_INT(seen[0].e.type, MCPLINK_EVENT_RETRY_FAILED);
    CHECK_INT(net.is_open, 0);
}

static void traffic(void)
{
    up();
    (void)fake_frame();
    (void)fake_frame();
    fake_push_text("{\"provider\":\"b \\u00222\\u0022\",\"payload\":{\"id\":\"brk-7\"}}");
    CHECK_INT(poll(10), MCPLINK_OK);
    CHECK_INT(slot, 1);
    CHECK_BYTES(json, json_len, "{\"id\":\"brk-7\"}");
    CHECK_INT(mcplink_mux_send(&m, 1, "{\"id\":\"brk-7\",\"result\":{}}", 26), MCPLINK_OK);
    check_sent("{\"provider\":\"b \\\"2\\\"\",\"payload\":{\"id\":\"brk-7\",\"result\":{}}}");
    CHECK_INT(m.link.messages_in, 1);
    CHECK_INT(m.link.messages_out, 1);
}

static void long_payload(void)
{
    static char text[900];
    memset(text, ' ', sizeof text);
    memcpy(text, "{}", 2);
    up();
    (void)fake_frame();
    (void)fake_frame();
    CHECK_INT(mcplink_mux_send(&m, 0, text, sizeof text), MCPLINK_OK);
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_INT(frame_len, sizeof text + 27);
    CHECK(memcmp(frame_payload, "{\"provider\":\"a\",\"payload\":{} ", 29) == 0);
    CHECK_TEXT(frame_payload + frame_len - 2, " }");
}

static void unknown_slot(void)
{
    up();
    fake_push_text("{\"provider\":\"zz\",\"payload\":[1]}");
    CHECK_INT(poll(10), MCPLINK_OK);
    CHECK(slot == MCPLINK_SLOT_UNKNOWN);
    CHECK_BYTES(json, json_len, "[1]");
    fake_push_text(REFUSAL("zz", "-32000", "x")); /* not ours to be refused */
    CHECK_INT(poll(10), MCPLINK_OK);
    CHECK(slot == MCPLINK_SLOT_UNKNOWN);
    CHECK_INT(m.refusals, 0);
}

static void not_an_envelope(void)
{
    up();
    fake_push_text("{\"jsonrpc\":\"2.0\"}");
    fake_push_text("{\"provider\":\"a\",\"payload\":1}");
    CHECK_INT(poll(10), MCPLINK_ERR_NOT_ENVELOPE);
    CHECK_BYTES(json, json_len, "{\"jsonrpc\":\"2.0\"}");
    CHECK(slot == MCPLINK_SLOT_UNKNOWN);
    CHECK_INT(m.bad_frames, 1);
    CHECK_INT(mcplink_mux_is_connected(&m), 1);
    CHECK_INT(seen_count, 1);
    CHECK_INT(poll(10), MCPLINK_OK);
    CHECK_BYTES(json, json_len, "1");
}

static void refusal(void)
{
    up();
    fake_push_text(REFUSAL("a", "-32001", "Slot \\\"a\\\" is protected:\\n\\u00e9\\ud83d\\ude00"));
    fake_push_text("{\"provider\":\"a\",\"payload\":2}");
    CHECK_INT(poll(0), MCPLINK_OK); /* the same poll goes on */
    CHECK_BYTES(json, json_len, "2");
    CHECK_INT(seen_count, 2);
    CHECK_INT(seen[1].e.type, MCPLINK_EVENT_SLOT_REFUSED);
    CHECK_INT(seen[1].e.error, MCPLINK_ERR_STATE);
    CHECK_INT(seen[1].e.rpc_code, -32001);
    CHECK_INT(seen[1].e.next_retry_ms, 0);
    CHECK_TEXT(seen[1].slot, "a");
    CHECK_TEXT(seen[1].reason, "Slot \"a\" is protected:\n\xC3\xA9\xF0\x9F\x98\x80"); /* D-15 */
    CHECK_INT(m.refusals, 1);
    CHECK_INT(m.link.messages_in, 1);
}

static void refusal_proves_nothing(void)
{
    up();
    m.link.attempts = 3;
    fake_push_text(REFUSAL("a", "-32000", ""));
    CHECK_INT(poll(10), MCPLINK_ERR_TIMEOUT);
    CHECK_TEXT(seen[1].reason, "");
    CHECK_INT(m.link.attempts, 3);
}

static void errors_with_an_id_are_traffic(void)
{
    up();
    fake_push_text("{\"provider\":\"a\",\"payload\":{\"id\":7,\"error\":{\"code\":-32601,\"message\":\"x\"}}}");
    CHECK_INT(poll(10), MCPLINK_OK);
    CHECK_INT(slot, 0);
    CHECK_INT(m.refusals, 0);
}

static void registers_again(void)
{
    up();
    (void)fake_frame();
    (void)fake_frame();
    fake_push_text(REFUSAL("a", "-32000", "held"));
    CHECK_INT(poll(10), MCPLINK_ERR_TIMEOUT);
    uint32_t wait = seen[1].e.next_retry_ms;
    CHECK(wait >= 15000 && wait <= 45000);
    CHECK_INT(poll((int32_t)wait - 12), MCPLINK_ERR_TIMEOUT);
    while (fake_frame() == MCPLINK_OP_PING) {
    }
    CHECK_INT(fake_frame(), -1);
    fake_push_frame(0x8A, "", 0);
    CHECK_INT(poll(100), MCPLINK_ERR_TIMEOUT); /* from inside a poll */
    check_sent(REGISTER_ALL("a"));
    CHECK_INT(poll(1000), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(fake_frame(), -1);
    fake_push_text(REFUSAL("a", "-32000", "held")); /* still held: again */
    CHECK_INT(poll(10), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(m.refusals, 2);
    CHECK_INT(slots[0].refused, 1);
}

/* The wait is half to one and a half of the setting, which is clamped. */
static void registration_wait(void)
{
    static const struct {
        uint32_t setting;
        int random;
        uint32_t wait;
    } cases[] = {{0, 0, 15000}, {0, 255, 45000}, {200, 255, 300}, {UINT32_MAX, 0, MCPLINK_TIME_MAX / 2},
                 {UINT32_MAX, 255, MCPLINK_TIME_MAX / 2 * 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_reset();
        mcplink_mux_config c = config();
        c.reregister_ms = cases[i].setting;
        CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_OK);
        CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
        net.fixed_random = cases[i].random;
        fake_push_text(REFUSAL("a", "-32000", "held"));
        CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
        CHECK_INT(seen[1].e.next_retry_ms, cases[i].wait);
    }
}

static void forbidden_is_left(void)
{
    up();
    (void)fake_frame();
    (void)fake_frame();
    fake_push_text(REFUSAL("a", "-32001", "no"));
    for (unsigned i = 0; i < 10; i++) {
        CHECK_INT(poll(20000), MCPLINK_ERR_TIMEOUT);
        fake_push_frame(0x8A, "", 0);
    }
    int op;
    while ((op = fake_frame()) >= 0) {
        CHECK_INT(op, MCPLINK_OP_PING);
    }
}

static void split_envelope(void)
{
    static const char text[] = "{\"provider\":\"a\",\"payload\":{\"k\":\"v\"}}";
    for (size_t cut = 1; cut < sizeof text - 1; cut++) {
        up();
        fake_push_frame(0x01, text, cut);
        fake_push_frame(0x80, text + cut, sizeof text - 1 - cut);
        CHECK_INT(poll(10), MCPLINK_OK);
        CHECK_BYTES(json, json_len, "{\"k\":\"v\"}");
    }
}

static void stop_frees_all(void)
{
    up();
    (void)fake_frame();
    (void)fake_frame();
    mcplink_mux_stop(&m);
    CHECK_INT(fake_frame(), MCPLINK_OP_CLOSE);
    CHECK_INT(net.is_open, 0);
    CHECK_INT(mcplink_mux_is_connected(&m), 0);
    CHECK_INT(poll(0), MCPLINK_ERR_STATE);
    CHECK_INT(mcplink_mux_send(&m, 0, "1", 1), MCPLINK_ERR_STATE);
}

static void configuration(void)
{
    static char name[MCPLINK_NAME_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    fake_reset();
    mcplink_mux_config c = config();
    slots[1].name = "";
    CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_ERR_ARG);
    CHECK_TEXT(mcplink_mux_detail(&m), "slot name is empty");
    CHECK_INT(poll(0), MCPLINK_ERR_ARG);
    slots[1].name = name;
    CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_ERR_TOO_LARGE);
    slots[1].name = name + 1; /* the longest there may be */
    CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_OK);
    slots[1].name = "c"; /* as long as the other's, and another */
    CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_OK);
    slots[1].name = "a";
    CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_ERR_ARG);
    CHECK_TEXT(mcplink_mux_detail(&m), "two slots have the same name");
    c.slot_count = 0;
    CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_ERR_ARG);
    CHECK_TEXT(mcplink_mux_detail(&m), "no slots");
    CHECK_INT(mcplink_mux_init(NULL, &net.port, &c), MCPLINK_ERR_ARG);
    c.slot_count = 1;
    c.path = "/tunnels";
    CHECK_INT(mcplink_mux_init(&m, &net.port, &c), MCPLINK_OK);
    CHECK_INT(poll(0), MCPLINK_ERR_TIMEOUT);
    CHECK(test_contains(fake_request(), "GET /tunnels HTTP/1.1\r\n"));
    CHECK_INT(mcplink_mux_send(&m, 1, "1", 1), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_mux_send(&m, 0, "", 0), MCPLINK_ERR_ARG);
    net.send_error = MCPLINK_ERR_CLOSED;
    CHECK_INT(mcplink_mux_send(&m, 0, "1", 1), MCPLINK_ERR_CLOSED);
    CHECK_INT(seen[1].e.type, MCPLINK_EVENT_DISCONNECTED);
    CHECK_INT(seen[1].e.close_code, 1006);
}

const test_case mux_cases[] = {{"R-42 every slot is registered, in order", registers_all},
                               {"R-42 a registration that cannot be sent", registration_fails},
                               {"spec 04 2.7: traffic of a slot", traffic},
                               {"spec 04 2.7: a payload longer than a chunk", long_payload},
                               {"R-44 an unknown slot", unknown_slot},
                               {"R-45 D-12 a frame that is no envelope", not_an_envelope},
                               {"R-43 D-15 a refusal is an event", refusal},
                               {"R-38 R-43 a refusal proves nothing", refusal_proves_nothing},
                               {"R-43 errors with an id are traffic", errors_with_an_id_are_traffic},
                               {"R-46 D-17 a refused slot is registered again", registers_again},
                               {"R-46 the wait for a registration", registration_wait},
                               {"R-46 a forbidden slot is left", forbidden_is_left},
                               {"R-27 an envelope in two fragments", split_envelope},
                               {"R-47 stop frees every slot", stop_frees_all},
                               {"D-09 configurations", configuration},
                               {NULL, NULL}};
