/* The answer to the upgrade is the input, and what follows it. */
#include "fuzz_port.h"
#include "mcplink/ws.h"

static int run(const uint8_t *data, size_t size, size_t chunk, size_t *messages)
{
    stream s;
    mcplink_ws ws;
    uint8_t *rx = malloc(MCPLINK_RX_MIN);
    const char *text;
    size_t len;
    mcplink_ws_config c;
    memset(&c, 0, sizeof c);
    c.host = "h";
    c.path = "/providers";
    c.rx_buffer = rx;
    c.rx_capacity = MCPLINK_RX_MIN;
    stream_init(&s, data, size, chunk);
    int err = mcplink_ws_open(&ws, &s.port, &c);
    REQUIRE(err != MCPLINK_ERR_ARG && err != MCPLINK_ERR_STATE);
    while (err == MCPLINK_OK) {
        err = mcplink_ws_receive(&ws, &text, &len, 10);
        if (err == MCPLINK_OK) {
            REQUIRE(len <= MCPLINK_RX_MIN && (const uint8_t *)text == rx);
            (*messages)++;
        } else if (err == MCPLINK_ERR_TIMEOUT) {
            REQUIRE(ws.state == MCPLINK_WS_OPEN);
        } else {
            REQUIRE(ws.state == MCPLINK_WS_CLOSED);
        }
    }
    REQUIRE(memchr(ws.detail, 0, sizeof ws.detail) != NULL);
    free(rx);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t whole = 0, pieces = 0;
    int a = run(data, size, 0, &whole);
    int b = run(data, size, 1, &pieces);
    REQUIRE(a == b && whole == pieces);
    return 0;
}
