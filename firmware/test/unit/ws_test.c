#include "fake.h"

static mcplink_ws ws;

static void up(void)
{
    fake_reset();
    mcplink_ws_config c = fake_ws_config();
    CHECK_INT(mcplink_ws_open(&ws, &net.port, &c), MCPLINK_OK);
    net.sends = 0;
}

static int receive(int32_t timeout_ms, const char *want)
{
    const char *data;
    size_t len;
    int err = mcplink_ws_receive(&ws, &data, &len, timeout_ms);
    if (err == MCPLINK_OK) {
        CHECK_BYTES(data, len, want);
    }
    return err;
}

static void sends_one_frame(void)
{
    char text[] = "{\"a\":1}";
    up();
    CHECK_INT(mcplink_ws_send(&ws, text, 7), MCPLINK_OK);
    CHECK_INT(net.sends, 1); /* header and payload together */
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_TEXT(frame_payload, "{\"a\":1}");
    CHECK_TEXT(text, "{\"a\":1}");
    CHECK_INT(mcplink_ws_send(&ws, NULL, 0), MCPLINK_OK);
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_INT(frame_len, 0);
    CHECK_INT(fake_frame(), -1);
}

static void sends_long_frame(void)
{
    static char text[1500];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + i % 26);
    }
    up();
    CHECK_INT(mcplink_ws_send(&ws, text, sizeof text), MCPLINK_OK);
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK_INT(frame_len, sizeof text);
    CHECK(memcmp(frame_payload, text, sizeof text) == 0);
    net.sends = 0;
    CHECK_INT(mcplink_ws_send(&ws, text, MCPLINK_TX_CHUNK - 8), MCPLINK_OK);
    CHECK_INT(net.sends, 1); /* exactly what fits, and no empty piece behind it */
    CHECK_INT(mcplink_ws_send(&ws, text, MCPLINK_TX_CHUNK - 7), MCPLINK_OK);
    CHECK_INT(net.sends, 3);
}

static void fresh_masks(void)
{
    uint8_t first[4];
    up();
    CHECK_INT(mcplink_ws_send(&ws, "x", 1), MCPLINK_OK);
    CHECK_INT(mcplink_ws_send(&ws, "x", 1), MCPLINK_OK);
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    memcpy(first, frame_mask, 4);
    CHECK_INT(fake_frame(), MCPLINK_OP_TEXT);
    CHECK(memcmp(first, frame_mask, 4) != 0);
    net.entropy = 0;
    CHECK_INT(mcplink_ws_send(&ws, "x", 1), MCPLINK_ERR_TRANSPORT);
    CHECK_TEXT(ws.detail, "no entropy");
    CHECK_INT(fake_frame(), -1);
    CHECK_INT(net.is_open, 0);
}

static void send_is_bounded(void)
{
    static char text[2000];
    up();
    CHECK_INT(mcplink_ws_send(&ws, "x", 1), MCPLINK_OK);
    CHECK_INT(net.send_timeout, 5000);
    net.send_ms = 2000; /* each piece is in time, the whole is not */
    uint32_t before = net.now;
    CHECK_INT(mcplink_ws_send(&ws, text, sizeof text), MCPLINK_ERR_TRANSPORT);
    CHECK_TEXT(ws.detail, "send timed out");
    CHECK(net.now - before <= 6000);
    CHECK_INT(ws.state, MCPLINK_WS_CLOSED);
    up();
    net.send_error = MCPLINK_ERR_TIMEOUT; /* never mistaken for an idle timeout */
    CHECK_INT(mcplink_ws_send(&ws, "x", 1), MCPLINK_ERR_TRANSPORT);
    up();
    net.send_error = 1; /* a short count */
    CHECK_INT(mcplink_ws_send(&ws, "xy", 2), MCPLINK_ERR_TRANSPORT);
    up();
    net.send_error = MCPLINK_ERR_CLOSED;
    CHECK_INT(mcplink_ws_send(&ws, "x", 1), MCPLINK_ERR_CLOSED);
    CHECK_INT(ws.close_code, MCPLINK_CLOSE_ABNORMAL);
}

static void arguments(void)
{
    const char *data;
    size_t len;
    up();
    CHECK_INT(mcplink_ws_send(&ws, NULL, 1), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_ws_send(NULL, "x", 1), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_ws_ping(NULL), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_ws_step(NULL, 0), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_ws_begin(NULL, &net.port, &ws.config), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_ws_receive(&ws, NULL, &len, 0), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_ws_receive(&ws, &data, NULL, 0), MCPLINK_ERR_ARG);
    mcplink_ws_close(&ws, MCPLINK_CLOSE_NORMAL);
    mcplink_ws_close(&ws, MCPLINK_CLOSE_NORMAL);
    mcplink_ws_close(NULL, MCPLINK_CLOSE_NORMAL);
    CHECK_INT(net.closes, 1);
    CHECK_INT(fake_frame(), MCPLINK_OP_CLOSE);
    CHECK_INT(mcplink_ws_send(&ws, "x", 1), MCPLINK_ERR_STATE);
    CHECK_INT(mcplink_ws_ping(&ws), MCPLINK_ERR_STATE);
    CHECK_INT(receive(0, ""), MCPLINK_ERR_STATE);
}

static void receives(void)
{
    up();
    CHECK_INT(receive(50, ""), MCPLINK_ERR_TIMEOUT);
    fake_push_text("one");
    fake_push_frame(0x01, "tw", 2);
    fake_push_frame(0x80, "o", 1);
    CHECK_INT(receive(0, "one"), MCPLINK_OK);
    CHECK_INT(receive(0, "two"), MCPLINK_OK);
    CHECK_INT(receive(0, ""), MCPLINK_ERR_TIMEOUT);
}

static void answers_pings(void)
{
    up();
    fake_push_frame(0x89, "payload", 7);
    fake_push_frame(0x8A, "", 0);
    fake_push_text("after");
    CHECK_INT(receive(100, "after"), MCPLINK_OK);
    CHECK_INT(fake_frame(), MCPLINK_OP_PONG);
    CHECK_TEXT(frame_payload, "payload");
    CHECK_INT(fake_frame(), -1);
}

/* A message of exactly the buffer's size leaves no room to read what may follow
 * before its end: a ping and an empty last fragment. */
static void full_buffer(void)
{
    static char text[1024];
    memset(text, 'f', sizeof text);
    for (size_t chunk = 0; chunk < 4; chunk++) {
        const char *data;
        size_t len;
        up();
        net.chunk = chunk;
        fake_push_frame(0x01, text, sizeof text);
        fake_push_frame(0x89, "0123456789012345678901234567890123456789", 40);
        fake_push_frame(0x80, "", 0);
        fake_push_text("next");
        CHECK_INT(mcplink_ws_receive(&ws, &data, &len, 10000), MCPLINK_OK);
        CHECK(len == sizeof text && memcmp(data, text, len) == 0);
        CHECK_INT(receive(10000, "next"), MCPLINK_OK);
        CHECK_INT(fake_frame(), MCPLINK_OP_PONG);
        CHECK_INT(frame_len, 40);
    }
}

static void violation(const char *bytes, size_t len, int error, int code, const char *detail)
{
    up();
    fake_push(bytes, len);
    CHECK_INT(receive(100, ""), error);
    CHECK_TEXT(ws.detail, detail);
    CHECK_INT(ws.close_code, 0);
    CHECK_INT(fake_frame(), MCPLINK_OP_CLOSE);
    CHECK_INT(frame_len, 2);
    CHECK_INT((uint8_t)frame_payload[0] << 8 | (uint8_t)frame_payload[1], code);
    CHECK_INT(net.is_open, 0);
    CHECK_INT(receive(0, ""), MCPLINK_ERR_STATE);
}

static void violations_are_answered(void)
{
    violation("\xC1\x05", 2, MCPLINK_ERR_PROTOCOL, 1002, "reserved bit set, header c1 05");
    violation("\x82\x05", 2, MCPLINK_ERR_UNSUPPORTED, 1003, "binary frame, header 82 05");
    violation("\x81\x01\xFF", 3, MCPLINK_ERR_PROTOCOL, 1007, "not UTF-8, header 81 01");
    /* as soon as the header is known */
    violation("\x81\x7E\x04\x01", 4, MCPLINK_ERR_TOO_LARGE, 1009, "message too large, header 81 7e");
    violation("\x81\x7F\x00\x00\x00\x01\x00\x00\x00\x10", 10, MCPLINK_ERR_TOO_LARGE, 1009,
              "message too large, header 81 7f");
}

static void closed_by_peer(void)
{
    up();
    fake_push_close(1008, "Slot already held");
    CHECK_INT(receive(100, ""), MCPLINK_ERR_CLOSED);
    CHECK_INT(ws.close_code, 1008);
    CHECK_TEXT(mcplink_ws_reason(&ws), "Slot already held");
    CHECK_INT(fake_frame(), MCPLINK_OP_CLOSE);
    CHECK_BYTES(frame_payload, frame_len, "\x03\xF0"); /* the code only */
    up();
    fake_push("\x88\x00", 2);
    CHECK_INT(receive(100, ""), MCPLINK_ERR_CLOSED);
    CHECK_INT(ws.close_code, 1005);
    CHECK_INT(fake_frame(), MCPLINK_OP_CLOSE);
    CHECK_INT(frame_len, 0);
    up(); /* without a close frame */
    net.end = MCPLINK_ERR_CLOSED;
    CHECK_INT(receive(100, ""), MCPLINK_ERR_CLOSED);
    CHECK_INT(ws.close_code, 1006);
    CHECK_TEXT(mcplink_ws_reason(&ws), "");
    CHECK_INT(fake_frame(), -1);
    up();
    net.end = MCPLINK_ERR_TRANSPORT;
    CHECK_INT(receive(100, ""), MCPLINK_ERR_TRANSPORT);
    CHECK_INT(ws.close_code, 0);
}

/* A timeout may fall before any byte; nothing is lost. */
static void pause_anywhere(void)
{
    size_t end = SIZE_MAX;
    for (size_t pause = 0; pause < end; pause++) {
        static char text[130];
        memset(text, 't', sizeof text);
        up();
        size_t from = net.in_pos;
        fake_push_frame(0x01, text, sizeof text);
        fake_push_frame(0x89, "ping", 4);
        fake_push_frame(0x80, "end", 3);
        end = net.in_len - from;
        net.pause_at = from + pause;
        const char *data;
        size_t len;
        CHECK_INT(mcplink_ws_receive(&ws, &data, &len, 10), MCPLINK_ERR_TIMEOUT);
        CHECK_INT(mcplink_ws_receive(&ws, &data, &len, 10), MCPLINK_OK);
        CHECK_INT(len, 133);
        CHECK(memcmp(data + 130, "end", 3) == 0);
        CHECK_INT(fake_frame(), MCPLINK_OP_PONG);
        CHECK_TEXT(frame_payload, "ping");
    }
}

static void deadline_of_the_call(void)
{
    up();
    fake_push_text("0123456789");
    net.chunk = 1;
    net.ms_per_recv = 10;
    uint32_t before = net.now;
    CHECK_INT(receive(50, ""), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.now - before, 50);
    CHECK_INT(receive(1000, "0123456789"), MCPLINK_OK);
    CHECK_INT(net.now - before, 120);
}

static int bad_count;
static int bad_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    (void)ctx;
    (void)buf;
    (void)timeout_ms;
    return bad_count != 0 ? (int)len + 1 : 0;
}

static void port_contract(void)
{
    for (bad_count = 0; bad_count < 2; bad_count++) {
        up();
        net.port.recv = bad_recv;
        CHECK_INT(receive(100, ""), MCPLINK_ERR_TRANSPORT);
        CHECK_INT(ws.state, MCPLINK_WS_CLOSED);
    }
}

static void pong_cannot_be_sent(void)
{
    up();
    net.send_error = MCPLINK_ERR_TIMEOUT;
    fake_push_frame(0x89, "", 0);
    CHECK_INT(receive(100, ""), MCPLINK_ERR_TRANSPORT);
    CHECK_TEXT(ws.detail, "send timed out");
}

const test_case ws_cases[] = {{"R-10 R-11 one masked frame in one send", sends_one_frame},
                              {"R-10 a long frame", sends_long_frame},
                              {"R-11 a fresh mask per frame, none without entropy", fresh_masks},
                              {"D-04 sends are bounded", send_is_bounded},
                              {"spec 04 2.2: arguments and states", arguments},
                              {"R-16 whole and fragmented messages", receives},
                              {"R-21 R-22 pings are answered and hidden", answers_pings},
                              {"R-20 a message of exactly the buffer's size", full_buffer},
                              {"R-12 R-15 R-20 R-25 D-07 violations are answered", violations_are_answered},
                              {"R-23 closed by the peer", closed_by_peer},
                              {"R-27 a pause before any byte", pause_anywhere},
                              {"R-28 the deadline is for the call", deadline_of_the_call},
                              {"spec 04 2.3: a port that breaks its contract", port_contract},
                              {"D-04 a pong that cannot be sent", pong_cannot_be_sent},
                              {NULL, NULL}};
