#include "fake.h"

static mcplink_event event(mcplink_event_type type)
{
    mcplink_event e;
    memset(&e, 0, sizeof e);
    e.type = type;
    e.reason = e.detail = e.slot = "";
    return e;
}

static void check_line(const mcplink_event *e, const char *want)
{
    char line[256];
    CHECK_INT(mcplink_event_format(e, line, sizeof line), strlen(want));
    CHECK_TEXT(line, want);
}

static void lines(void)
{
    mcplink_event e = event(MCPLINK_EVENT_CONNECTED);
    e.down_ms = 12;
    e.connects = 1;
    check_line(&e, "event CONNECTED down_ms=12 connects=1");

    e = event(MCPLINK_EVENT_DISCONNECTED);
    e.error = MCPLINK_ERR_CLOSED;
    e.close_code = 1008;
    e.reason = "Slot: \"s\"";
    e.next_retry_ms = 733;
    check_line(&e, "event DISCONNECTED error=\"closed by the peer\" code=1008 "
                   "reason=\"Slot: \\\"s\\\"\" next_retry_ms=733");

    e = event(MCPLINK_EVENT_RETRY_FAILED);
    e.error = MCPLINK_ERR_HANDSHAKE;
    e.http_status = 401;
    e.detail = "HTTP 401";
    e.attempts = 3;
    e.next_retry_ms = 512;
    check_line(&e, "event RETRY_FAILED error=\"handshake refused\" http_status=401 detail=\"HTTP 401\" attempts=3 "
                   "next_retry_ms=512");

    e = event(MCPLINK_EVENT_SLOT_REFUSED);
    e.slot = "a b";
    e.rpc_code = -32000;
    e.reason = "held";
    check_line(&e, "event SLOT_REFUSED slot=\"a b\" rpc_code=-32000 reason=\"held\"");
    e.rpc_code = INT32_MIN;
    check_line(&e, "event SLOT_REFUSED slot=\"a b\" rpc_code=-2147483648 reason=\"held\"");
}

/* A peer cannot forge a line. */
static void escaping(void)
{
    mcplink_event e = event(MCPLINK_EVENT_DISCONNECTED);
    e.error = MCPLINK_ERR_CLOSED;
    e.close_code = 1000;
    e.reason = "a\nevent CONNECTED\x7F\\\xC3\xA9";
    check_line(&e, "event DISCONNECTED error=\"closed by the peer\" code=1000 "
                   "reason=\"a\\x0aevent CONNECTED\\x7f\\\\\xC3\xA9\" next_retry_ms=0");
}

static void cut(void)
{
    char line[20];
    mcplink_event e = event(MCPLINK_EVENT_CONNECTED);
    CHECK_INT(mcplink_event_format(&e, line, sizeof line), 19);
    CHECK_TEXT(line, "event CONNECTED dow");
    CHECK_INT(mcplink_event_format(&e, line, 0), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_event_format(NULL, line, 20), MCPLINK_ERR_ARG);
}

const test_case event_cases[] = {{"spec 04 5: one line per event", lines},
                                 {"spec 04 5: quotes and control characters", escaping},
                                 {"spec 04 5: a line that does not fit", cut},
                                 {NULL, NULL}};
