#include "fake.h"
#include "mcplink/telemetry.h"
#include "mcplink/traceparent.h"

static void telemetry(void)
{
    char out[160];
    static const char want[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"broker/telemetry\","
        "\"params\":{\"version\":1,\"signal\":\"traces\",\"span\":{\"a\":1}}}";
    CHECK_INT(mcplink_telemetry_encode(out, sizeof out, " \r\n\t{\"a\":1}\n", 12), sizeof want - 1);
    CHECK_TEXT(out, want);
    CHECK_INT(mcplink_telemetry_encode(out, sizeof want, "{\"a\":1}", 7), sizeof want - 1);
    CHECK_INT(mcplink_telemetry_encode(out, sizeof want - 1, "{\"a\":1}", 7), MCPLINK_ERR_TOO_LARGE);
    CHECK_INT(mcplink_telemetry_encode(out, sizeof out, "[1]", 3), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_telemetry_encode(out, sizeof out, "{", 1), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_telemetry_encode(out, sizeof out, "  ", 2), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_telemetry_encode(out, sizeof out, "", 0), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_telemetry_encode(NULL, 0, "{}", 2), MCPLINK_ERR_ARG);
}

static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

static void traceparent(void)
{
    mcplink_traceparent t;
    char out[56];
    CHECK_INT(mcplink_traceparent_parse(&t, good, 55), MCPLINK_OK);
    CHECK_INT(t.trace_id[0], 0x4B);
    CHECK_INT(t.trace_id[15], 0x36);
    CHECK_INT(t.parent_id[7], 0xB7);
    CHECK_INT(t.flags, 1);
    CHECK_INT(mcplink_traceparent_format(out, sizeof out, &t), 55);
    CHECK_TEXT(out, good);
    CHECK_INT(mcplink_traceparent_format(out, 55, &t), MCPLINK_ERR_TOO_LARGE);
    memset(t.parent_id, 0, sizeof t.parent_id);
    CHECK_INT(mcplink_traceparent_format(out, sizeof out, &t), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_traceparent_format(NULL, 56, &t), MCPLINK_ERR_ARG);
}

static void traceparent_refused(void)
{
    static const char *const bad[] = {"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                                      "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                      "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
                                      "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01"};
    mcplink_traceparent t;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_INT(mcplink_traceparent_parse(&t, bad[i], 55), MCPLINK_ERR_PROTOCOL);
    }
    CHECK_INT(mcplink_traceparent_parse(&t, good, 54), MCPLINK_ERR_PROTOCOL);
    CHECK_INT(mcplink_traceparent_parse(&t, good, 56), MCPLINK_ERR_PROTOCOL);
    CHECK_INT(mcplink_traceparent_parse(NULL, good, 55), MCPLINK_ERR_ARG);
}

const test_case trace_cases[] = {{"spec 04 2.9: telemetry", telemetry},
                                 {"spec 04 2.9: traceparent", traceparent},
                                 {"spec 04 2.9: traceparent refused", traceparent_refused},
                                 {NULL, NULL}};
