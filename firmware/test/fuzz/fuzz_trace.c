/* traceparent, telemetry, URL encoding, header and host checks. */
#include "fuzz_port.h"
#include "mcplink/telemetry.h"
#include "mcplink/traceparent.h"
#include "mcplink/ws.h"

static void checks(char *text)
{
    mcplink_ws_config c;
    static uint8_t rx[MCPLINK_RX_MIN];
    memset(&c, 0, sizeof c);
    c.rx_buffer = rx;
    c.rx_capacity = sizeof rx;
    c.host = c.path = c.segment = c.extra_headers = text;
    (void)mcplink_ws_check(&c, NULL);
    c.host = "h";
    (void)mcplink_ws_check(&c, NULL);
    c.path = "/";
    (void)mcplink_ws_check(&c, NULL);
    c.segment = NULL;
    if (mcplink_ws_check(&c, NULL) == MCPLINK_OK) {
        REQUIRE(strstr(text, "\r\n\r\n") == NULL && text[0] != '\r');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mcplink_traceparent t;
    char back[56];
    char *text = malloc(size + 1);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    if (mcplink_traceparent_parse(&t, text, size) == MCPLINK_OK) {
        REQUIRE(mcplink_traceparent_format(back, sizeof back, &t) == 55);
        REQUIRE(memcmp(back, text, 55) == 0);
    }
    size_t cap = size > 0 ? 3 * (size_t)data[0] + 1 : 1;
    char *out = malloc(cap);
    int n = mcplink_telemetry_encode(out, cap, text, size);
    REQUIRE(n < 0 || ((size_t)n < cap && out[n] == '\0'));
    n = mcplink_url_encode(out, cap, text);
    REQUIRE(n < 0 || ((size_t)n < cap && strlen(out) == (size_t)n));
    free(out);
    checks(text);
    free(text);
    return 0;
}
