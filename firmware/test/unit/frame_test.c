#include "fake.h"

static mcplink_frame_decoder d;
static uint8_t store[300];

static void start(size_t cap)
{
    mcplink_frame_init(&d, store, cap);
}

/* Feeds bytes up to the first event or error. */
static int feed(const void *bytes, size_t len)
{
    size_t used;
    return mcplink_frame_feed(&d, bytes, len, &used);
}

#define FEED(literal) feed(literal, sizeof(literal) - 1)

static void refused(const char *bytes, size_t len, int error, unsigned rule, unsigned code, const char *detail)
{
    char text[MCPLINK_DETAIL_SIZE];
    CHECK_INT(feed(bytes, len), error);
    CHECK_INT(d.rule, rule);
    CHECK_INT(d.reply_code, code);
    mcplink_frame_detail(&d, text);
    CHECK_TEXT(text, detail);
    CHECK_INT(FEED("\x81\x01x"), error); /* sticky */
}

#define REFUSED(literal, error, rule, code, detail) refused(literal, sizeof(literal) - 1, error, rule, code, detail)

static void reserved_bits(void)
{
    start(300);
    REFUSED("\xC1\x05", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_RSV, 1002, "reserved bit set, header c1 05");
    start(300);
    REFUSED("\xA1\x00", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_RSV, 1002, "reserved bit set, header a1 00");
    start(300);
    REFUSED("\x99\x00", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_RSV, 1002, "reserved bit set, header 99 00");
}

static void masked(void)
{
    start(300);
    REFUSED("\x81\x80", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_MASKED, 1002, "masked frame, header 81 80");
}

static void reserved_opcodes(void)
{
    static const uint8_t ops[] = {3, 4, 5, 6, 7, 11, 12, 13, 14, 15};
    for (size_t i = 0; i < sizeof ops; i++) {
        uint8_t header[2] = {(uint8_t)(0x80u | ops[i]), 0};
        start(300);
        CHECK_INT(feed(header, 2), MCPLINK_ERR_PROTOCOL);
        CHECK_INT(d.rule, MCPLINK_RULE_OPCODE);
        CHECK_INT(d.reply_code, 1002);
    }
}

static void binary(void)
{
    start(300);
    REFUSED("\x82\x01", MCPLINK_ERR_UNSUPPORTED, MCPLINK_RULE_BINARY, 1003, "binary frame, header 82 01");
}

static void fragments_in_order(void)
{
    start(300);
    REFUSED("\x80\x01", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_ORPHAN, 1002, "stray continuation, header 80 01");
    start(300);
    CHECK_INT(FEED("\x01\x01x"), MCPLINK_FRAME_MORE);
    REFUSED("\x81\x01", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_INTERLEAVED, 1002,
            "interleaved message, header 81 01");
}

static void control_frames(void)
{
    start(300);
    REFUSED("\x89\x7E", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_CONTROL_SIZE, 1002,
            "long control frame, header 89 7e");
    start(300);
    REFUSED("\x09\x00", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_CONTROL_FRAGMENT, 1002,
            "fragmented control frame, header 09 00");
}

static void length_sign(void)
{
    start(300);
    REFUSED("\x81\x7F\x80\x00\x00\x00\x00\x00\x00\x00", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_LENGTH_SIGN, 1002,
            "negative length, header 81 7f");
}

static void length_form(void)
{
    start(300);
    REFUSED("\x81\x7E\x00\x7D", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_LENGTH_FORM, 1002,
            "overlong length, header 81 7e");
    start(300);
    REFUSED("\x81\x7F\x00\x00\x00\x00\x00\x00\xFF\xFF", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_LENGTH_FORM, 1002,
            "overlong length, header 81 7f");
    start(300);
    CHECK_INT(FEED("\x81\x7E\x00\x7E"), MCPLINK_FRAME_MORE);
}

static void too_large(void)
{
    start(4);
    REFUSED("\x81\x05", MCPLINK_ERR_TOO_LARGE, MCPLINK_RULE_TOO_LARGE, 1009,
            "message too large, header 81 05");
    start(4); /* the sum of fragments counts */
    CHECK_INT(FEED("\x01\x03xyz"), MCPLINK_FRAME_MORE);
    REFUSED("\x80\x02", MCPLINK_ERR_TOO_LARGE, MCPLINK_RULE_TOO_LARGE, 1009,
            "message too large, header 80 02");
    start(4); /* exactly full is fine, and an empty last fragment still fits */
    CHECK_INT(FEED("\x01\x04wxyz"), MCPLINK_FRAME_MORE);
    CHECK_INT(FEED("\x80\x00"), MCPLINK_FRAME_MESSAGE);
    CHECK_BYTES(store, d.len, "wxyz");
}

/* 2^32 + 16 bytes: read as 16 where a length is narrowed before it is judged. */
static void length_not_narrowed(void)
{
    start(300);
    REFUSED("\x81\x7F\x00\x00\x00\x01\x00\x00\x00\x10", MCPLINK_ERR_TOO_LARGE, MCPLINK_RULE_TOO_LARGE, 1009,
            "message too large, header 81 7f");
    start(300);
    CHECK_INT(FEED("\x01\x01x"), MCPLINK_FRAME_MORE);
    CHECK_INT(FEED("\x80\x7F\x00\x00\x00\x01\x00\x00\x00\x00"), MCPLINK_ERR_TOO_LARGE);
}

static void ping_and_pong(void)
{
    start(300);
    CHECK_INT(FEED("\x89\x02hi"), MCPLINK_FRAME_PING);
    CHECK_BYTES(d.control, d.control_len, "hi");
    CHECK_INT(FEED("\x89\x00"), MCPLINK_FRAME_PING);
    CHECK_INT(d.control_len, 0);
    CHECK_INT(FEED("\x8A\x01x"), MCPLINK_FRAME_PONG);
}

static void ping_between_fragments(void)
{
    start(300);
    CHECK_INT(FEED("\x01\x03" "abc\x89\x02hi"), MCPLINK_FRAME_PING);
    CHECK_INT(FEED("\x00\x00"), MCPLINK_FRAME_MORE);
    CHECK_INT(FEED("\x80\x03" "def"), MCPLINK_FRAME_MESSAGE);
    CHECK_BYTES(store, d.len, "abcdef");
}

static void close_frames(void)
{
    start(300);
    CHECK_INT(FEED("\x88\x00"), MCPLINK_FRAME_CLOSE);
    CHECK_INT(d.close_code, 1005);
    CHECK_TEXT(mcplink_frame_reason(&d), "");
    CHECK_INT(FEED("\x81\x01x"), MCPLINK_ERR_CLOSED);
    start(300);
    CHECK_INT(FEED("\x88\x06\x03\xF0gone"), MCPLINK_FRAME_CLOSE);
    CHECK_INT(d.close_code, 1008);
    CHECK_TEXT(mcplink_frame_reason(&d), "gone");
}

static void longest_reason(void)
{
    uint8_t frame[127];
    memset(frame, 'r', sizeof frame);
    memcpy(frame, "\x88\x7D\x03\xE8", 4);
    start(300);
    CHECK_INT(feed(frame, sizeof frame), MCPLINK_FRAME_CLOSE);
    CHECK_INT(strlen(mcplink_frame_reason(&d)), MCPLINK_REASON_MAX);
}

static void close_refused(void)
{
    start(300);
    REFUSED("\x88\x01\x03", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_CLOSE_SIZE, 1002,
            "short close payload, header 88 01");
    static const uint16_t bad[] = {0, 999, 1004, 1005, 1006, 1012, 1015, 1016, 2000, 2999, 5000, 65535};
    static const uint16_t good[] = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 4999};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t frame[4] = {0x88, 2, (uint8_t)(bad[i] >> 8), (uint8_t)bad[i]};
        start(300);
        CHECK_INT(feed(frame, sizeof frame), MCPLINK_ERR_PROTOCOL);
        CHECK_INT(d.rule, MCPLINK_RULE_CLOSE_CODE);
        CHECK_INT(d.reply_code, 1002);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint8_t frame[4] = {0x88, 2, (uint8_t)(good[i] >> 8), (uint8_t)good[i]};
        start(300);
        CHECK_INT(feed(frame, sizeof frame), MCPLINK_FRAME_CLOSE);
        CHECK_INT(d.close_code, good[i]);
    }
}

static int feed_text(const char *text)
{
    uint8_t frame[32];
    size_t n = strlen(text);
    frame[0] = 0x81;
    frame[1] = (uint8_t)n;
    memcpy(frame + 2, text, n);
    start(300);
    return feed(frame, n + 2);
}

static void utf8(void)
{
    static const char *const good[] = {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                       "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "a\xC3\xA9z"};
    static const char *const bad[] = {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2z", "\xE0\x9F\xBF",
                                      "\xED\xA0\x80", "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFE", "\xFF"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_INT(feed_text(good[i]), MCPLINK_FRAME_MESSAGE);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_INT(feed_text(bad[i]), MCPLINK_ERR_PROTOCOL);
        CHECK_INT(d.rule, MCPLINK_RULE_UTF8);
        CHECK_INT(d.reply_code, 1007);
    }
    start(300); /* a character may be split between fragments */
    CHECK_INT(FEED("\x01\x01\xE2\x00\x01\x82\x89\x00"), MCPLINK_FRAME_PING);
    CHECK_INT(FEED("\x80\x01\xAC"), MCPLINK_FRAME_MESSAGE);
    CHECK_BYTES(store, d.len, "\xE2\x82\xAC");
    start(300); /* a close reason is text too */
    REFUSED("\x88\x03\x03\xE8\xFF", MCPLINK_ERR_PROTOCOL, MCPLINK_RULE_UTF8, 1007, "not UTF-8, header 88 03");
}

/* Every split of a stream with all kinds of frames gives the same events. */
static void any_split(void)
{
    static const char stream[] = "\x89\x02hi\x01\x03" "abc\x8A\x00\x00\x02" "de\x89\x01!\x80\x01"
                                 "f\x81\x00\x88\x05\x03\xF0" "bye";
    for (size_t cut = 0; cut < sizeof stream; cut++) {
        unsigned messages = 0, pings = 0, pongs = 0, closes = 0;
        size_t at = 0;
        start(300);
        while (at < sizeof stream - 1) {
            size_t end = at < cut ? cut : sizeof stream - 1, used;
            int event = mcplink_frame_feed(&d, stream + at, end - at, &used);
            at += used;
            if (event == MCPLINK_FRAME_MESSAGE && messages++ == 0) {
                CHECK_BYTES(store, d.len, "abcdef");
            } else if (event == MCPLINK_FRAME_MESSAGE) {
                CHECK_INT(d.len, 0);
            }
            pings += event == MCPLINK_FRAME_PING;
            pongs += event == MCPLINK_FRAME_PONG;
            closes += event == MCPLINK_FRAME_CLOSE;
        }
        CHECK(messages == 2 && pings == 2 && pongs == 1 && closes == 1);
        CHECK_TEXT(mcplink_frame_reason(&d), "bye");
    }
}

static void want(void)
{
    start(300);
    CHECK_INT(mcplink_frame_want(&d), 2);
    CHECK_INT(FEED("\x81"), MCPLINK_FRAME_MORE);
    CHECK_INT(mcplink_frame_want(&d), 1);
    CHECK_INT(FEED("\x7E"), MCPLINK_FRAME_MORE);
    CHECK_INT(mcplink_frame_want(&d), 2);
    CHECK_INT(FEED("\x00\x80x"), MCPLINK_FRAME_MORE);
    CHECK_INT(mcplink_frame_want(&d), 127);
}

static void encoder(void)
{
    static const uint8_t mask[4] = {1, 2, 3, 4};
    uint8_t out[MCPLINK_FRAME_HEADER_MAX];
    CHECK_INT(mcplink_frame_header(out, MCPLINK_OP_TEXT, 0, mask), 6);
    CHECK(memcmp(out, "\x81\x80\x01\x02\x03\x04", 6) == 0);
    CHECK_INT(mcplink_frame_header(out, MCPLINK_OP_PONG, 125, mask), 6);
    CHECK(memcmp(out, "\x8A\xFD\x01", 3) == 0);
    CHECK_INT(mcplink_frame_header(out, MCPLINK_OP_TEXT, 126, mask), 8);
    CHECK(memcmp(out, "\x81\xFE\x00\x7E\x01\x02\x03\x04", 8) == 0);
    CHECK_INT(mcplink_frame_header(out, MCPLINK_OP_TEXT, 65535, mask), 8);
    CHECK(memcmp(out, "\x81\xFE\xFF\xFF\x01", 5) == 0);
    CHECK_INT(mcplink_frame_header(out, MCPLINK_OP_TEXT, 65536, mask), 14);
    CHECK(memcmp(out, "\x81\xFF\x00\x00\x00\x00\x00\x01\x00\x00\x01", 11) == 0);
}

static void masking(void)
{
    static const uint8_t mask[4] = {0x10, 0x20, 0x30, 0x40};
    uint8_t whole[7], parts[7];
    mcplink_frame_mask(whole, (const uint8_t *)"ABCDEFG", 7, mask, 0);
    mcplink_frame_mask(parts, (const uint8_t *)"ABC", 3, mask, 0);
    mcplink_frame_mask(parts + 3, (const uint8_t *)"DEFG", 4, mask, 3);
    CHECK(memcmp(whole, parts, 7) == 0);
    mcplink_frame_mask(whole, whole, 7, mask, 0);
    CHECK_BYTES(whole, 7, "ABCDEFG");
}

const test_case frame_cases[] = {{"R-12 reserved bits", reserved_bits},
                                 {"R-13 mask bit from the server", masked},
                                 {"R-14 reserved opcodes", reserved_opcodes},
                                 {"R-15 binary", binary},
                                 {"R-16 fragments out of order", fragments_in_order},
                                 {"R-17 long or fragmented control frames", control_frames},
                                 {"R-18 length with the top bit", length_sign},
                                 {"R-19 D-08 length not in the shortest form", length_form},
                                 {"R-20 message larger than the buffer", too_large},
                                 {"R-26 D-01 length is judged in 64 bits", length_not_narrowed},
                                 {"R-21 R-22 ping and pong", ping_and_pong},
                                 {"R-21 a ping between fragments", ping_between_fragments},
                                 {"R-23 close frames", close_frames},
                                 {"R-23 the longest reason", longest_reason},
                                 {"R-24 D-08 close payloads nobody may send", close_refused},
                                 {"R-25 D-08 text that is not UTF-8", utf8},
                                 {"R-29 any split gives the same events", any_split},
                                 {"spec 04 14: what the decoder can take", want},
                                 {"R-10 R-11 header encoder", encoder},
                                 {"R-11 masking in pieces", masking},
                                 {NULL, NULL}};
