#include "mcplink/envelope.h"

#include "fake.h"

static void encode(void)
{
    char out[128];
    CHECK_INT(mcplink_envelope_encode(out, sizeof out, "s", "{}", 2), 29);
    CHECK_TEXT(out, "{\"provider\":\"s\",\"payload\":{}}");
    CHECK_INT(mcplink_envelope_encode(out, 30, "s", "{}", 2), 29);
    CHECK_INT(mcplink_envelope_encode(out, 29, "s", "{}", 2), MCPLINK_ERR_TOO_LARGE);
    CHECK(mcplink_envelope_encode(out, sizeof out, "q\"b\\n\n\x01\xC3\xA9/", "1", 1) > 0);
    CHECK_TEXT(out, "{\"provider\":\"q\\\"b\\\\n\\n\\u0001\xC3\xA9/\",\"payload\":1}");
    CHECK_INT(mcplink_envelope_encode(out, sizeof out, "", "1", 1), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_envelope_encode(out, sizeof out, "s", "", 0), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_envelope_encode(NULL, 0, "s", "1", 1), MCPLINK_ERR_ARG);
}

static void registration(void)
{
    char out[160];
    CHECK(mcplink_envelope_register(out, sizeof out, "s", 0) > 0);
    CHECK_TEXT(out, "{\"provider\":\"s\",\"payload\":{\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\"}}");
    CHECK(mcplink_envelope_register(out, sizeof out, "s", 1) > 0);
    CHECK_TEXT(out, "{\"provider\":\"s\",\"payload\":{\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\","
                    "\"params\":{\"aggregate\":true}}}");
    CHECK_INT(mcplink_envelope_register(out, 40, "s", 1), MCPLINK_ERR_TOO_LARGE);
}

static void decoded(const char *text, const char *name, const char *payload)
{
    mcplink_envelope e;
    CHECK_INT(mcplink_envelope_decode(text, strlen(text), &e), MCPLINK_OK);
    CHECK_BYTES(e.name, e.name_len, name);
    CHECK_BYTES(e.payload, e.payload_len, payload);
}

static void decode(void)
{
    decoded("{\"provider\":\"s\",\"payload\":{}}", "s", "{}");
    decoded(" {\t\"payload\" : [1, \"]}\"] ,\r\n\"x\":{\"provider\":\"no\"}, \"provider\" : \"s\\\"t\" } \n", "s\\\"t",
            "[1, \"]}\"]");
    decoded("{\"provider\":\"s\",\"payload\":null}", "s", "null");
    decoded("{\"provider\":\"s\",\"payload\":-1.5e+3}", "s", "-1.5e+3");
    decoded("{\"provider\":\"s\",\"payload\":\"a\\\\\"}", "s", "\"a\\\\\"");
    decoded("{\"provider\":\"s\",\"payload\":{\"a\":{\"b\":[{}]}},\"payload\":2}", "s", "2");
    decoded("{\"pro\\u0076ider\":\"s\",\"payload\":true}", "s", "true");
}

static void not_envelopes(void)
{
    static const char *const bad[] = {"",
                                      "null",
                                      "[]",
                                      "{}",
                                      "{\"provider\":\"s\"}",
                                      "{\"payload\":{}}",
                                      "{\"provider\":\"\",\"payload\":{}}",
                                      "{\"provider\":1,\"payload\":{}}",
                                      "{\"provider\":null,\"payload\":{}}",
                                      "{\"provider\":\"s\",\"payload\":}",
                                      "{\"provider\":\"s\",\"payload\":{}",
                                      "{\"provider\":\"s\",\"payload\":{}}x",
                                      "{\"provider\":\"s\",\"payload\":{}}{}",
                                      "{\"provider\":\"s\",\"payload\":{},}",
                                      "{\"provider\":\"s\" \"payload\":{}}",
                                      "{\"provider\":\"s\",\"payload\":\"open}",
                                      "{\"provider\":\"s\",\"payload\":\"\\",
                                      "{\"provider\":\"s\",\"payload\":[\"a]}",
                                      "{provider:\"s\",\"payload\":1}",
                                      "{\"provider\":\"s\nt\",\"payload\":1}"};
    mcplink_envelope e;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (mcplink_envelope_decode(bad[i], strlen(bad[i]), &e) != MCPLINK_ERR_NOT_ENVELOPE) {
            test_fail(bad[i], __FILE__, __LINE__);
        }
    }
    CHECK_INT(mcplink_envelope_decode(NULL, 0, &e), MCPLINK_ERR_ARG);
    static const char whole[] = "{\"provider\":\"s\",\"payload\":{\"a\":[1,\"\\u0041\"]}}";
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        CHECK_INT(mcplink_envelope_decode(whole, len, &e), MCPLINK_ERR_NOT_ENVELOPE);
    }
}

static int is_error(const char *payload, int32_t *code)
{
    mcplink_tunnel_error e;
    memset(&e, 0, sizeof e);
    int got = mcplink_envelope_error(payload, strlen(payload), &e);
    *code = e.code;
    return got;
}

static void tunnel_errors(void)
{
    int32_t code;
    CHECK_INT(is_error("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"m\"}}", &code), 1);
    CHECK_INT(code, -32000);
    CHECK_INT(is_error("{\"error\":{\"message\":\"m\",\"code\":-32001}}", &code), 1);
    CHECK_INT(code, -32001);
    CHECK_INT(is_error("{\"error\":{\"code\":5,\"message\":7}}", &code), 1);
    CHECK_INT(is_error("{\"id\":1,\"error\":{\"code\":-32000}}", &code), 0);
    CHECK_INT(is_error("{\"id\":\"x\",\"error\":{\"code\":-32000}}", &code), 0);
    CHECK_INT(is_error("{\"id\":null,\"error\":{\"code\":\"-32000\"}}", &code), 0);
    CHECK_INT(is_error("{\"id\":null,\"error\":{\"code\":-}}", &code), 0);
    CHECK_INT(is_error("{\"id\":null,\"error\":{\"code\":99999999999}}", &code), 0);
    CHECK_INT(is_error("{\"id\":null,\"error\":{}}", &code), 0);
    CHECK_INT(is_error("{\"id\":null,\"error\":[]}", &code), 0);
    CHECK_INT(is_error("{\"id\":null,\"result\":{}}", &code), 0);
    CHECK_INT(is_error("{\"method\":\"x\",\"error\":{\"code\":1}}", &code), 0);
    CHECK_INT(is_error("[]", &code), 0);
    CHECK_INT(mcplink_envelope_error(NULL, 0, NULL), 0);
}

static int same(const char *spelled, const char *name)
{
    return mcplink_envelope_is(spelled, strlen(spelled), name);
}

static void names(void)
{
    CHECK_INT(same("pump-1", "pump-1"), 1);
    CHECK_INT(same("pump-1", "pump-12"), 0);
    CHECK_INT(same("pump-12", "pump-1"), 0);
    CHECK_INT(same("\\\"\\\\\\/\\n\\r\\t\\b\\f", "\"\\/\n\r\t\b\f"), 1);
    CHECK_INT(same("\\u0041\\u00e9\\u20AC\\ud83d\\ude00", "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), 1);
    CHECK_INT(same("\xC3\xA9", "\xC3\xA9"), 1);
    CHECK_INT(same("\\ud83d", "\xEF\xBF\xBD"), 1);
    CHECK_INT(same("\\ude00x", "\xEF\xBF\xBDx"), 1);
    CHECK_INT(mcplink_envelope_is("\\ud83d\\ude00", 6, "\xEF\xBF\xBD"), 1); /* never beyond the given length */
    CHECK_INT(mcplink_envelope_is("\\ud83d\\ude00", 11, "\xEF\xBF\xBD\\ude0"), 1);
    CHECK_INT(mcplink_envelope_is("\\u0041", 5, "\\u004"), 1);
    CHECK_INT(mcplink_envelope_is("\\n", 1, "\\"), 1);
    CHECK_INT(same("a\\u0000", "a"), 0);
    CHECK_INT(same("", ""), 1);
    CHECK_INT(mcplink_envelope_is(NULL, 0, ""), 0);
}

static void unescape(void)
{
    char text[] = "a\\n\\u00e9\\ud83d\\ude00\\q\\u12\\";
    size_t n = mcplink_json_unescape(text, sizeof text - 1);
    CHECK_BYTES(text, n, "a\n\xC3\xA9\xF0\x9F\x98\x80\\q\\u12\\");
}

const test_case envelope_cases[] = {{"spec 04 2.8: encode", encode},
                                    {"spec 04 2.8: the registration", registration},
                                    {"spec 04 2.8: decode", decode},
                                    {"spec 04 2.8: not envelopes", not_envelopes},
                                    {"R-43 tunnel errors", tunnel_errors},
                                    {"D-11 names in any spelling", names},
                                    {"D-15 unescape", unescape},
                                    {NULL, NULL}};
