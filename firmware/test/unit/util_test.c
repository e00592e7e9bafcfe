#include "fake.h"

static void hex(char *out, const uint8_t *b, size_t n)
{
    mcplink_text t = {out, 64, 0};
    for (size_t i = 0; i < n; i++) {
        mcplink_priv_text_hex(&t, b[i], mcplink_priv_hex_lower);
    }
    (void)mcplink_priv_text_end(&t);
}

static void check_sha1(const char *text, const char *want)
{
    uint8_t digest[MCPLINK_SHA1_SIZE];
    char got[64];
    mcplink_priv_sha1(digest, text, strlen(text));
    hex(got, digest, sizeof digest);
    CHECK_TEXT(got, want);
}

static void sha1_vectors(void)
{
    check_sha1("abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
    check_sha1("", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    check_sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    check_sha1("0123456789012345678901234567890123456789012345678901234567890123"
               "0123456789012345678901234567890123456789012345678901234567890123",
               "52ca1741bdecf13554a3638a90b227757d137bc3");
}

static void check_base64(const char *text, const char *want)
{
    char got[32];
    CHECK_INT(mcplink_priv_base64(got, sizeof got, (const uint8_t *)text, strlen(text)), strlen(want));
    CHECK_TEXT(got, want);
}

static void base64_vectors(void)
{
    check_base64("", "");
    check_base64("f", "Zg==");
    check_base64("fo", "Zm8=");
    check_base64("foo", "Zm9v");
    check_base64("foobar", "Zm9vYmFy");
    char small[4];
    CHECK_INT(mcplink_priv_base64(small, sizeof small, (const uint8_t *)"foo", 3), MCPLINK_ERR_TOO_LARGE);
    CHECK_INT(mcplink_priv_base64(small, 0, (const uint8_t *)"foo", 3), MCPLINK_ERR_TOO_LARGE);
}

/* The example of RFC 6455 1.3. */
static void accept_example(void)
{
    uint8_t digest[MCPLINK_SHA1_SIZE];
    char got[32];
    static const char text[] = "dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    mcplink_priv_sha1(digest, text, sizeof text - 1);
    CHECK_INT(mcplink_priv_base64(got, sizeof got, digest, sizeof digest), 28);
    CHECK_TEXT(got, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void url_encoding(void)
{
    char got[64];
    CHECK_INT(mcplink_url_encode(got, sizeof got, "pump-1_a.b~C"), 12);
    CHECK_TEXT(got, "pump-1_a.b~C");
    CHECK_INT(mcplink_url_encode(got, sizeof got, "a:b/c d%"), 16);
    CHECK_TEXT(got, "a%3Ab%2Fc%20d%25");
    CHECK_INT(mcplink_url_encode(got, sizeof got, "\xC3\xA9"), 6);
    CHECK_TEXT(got, "%C3%A9");
    CHECK_INT(mcplink_url_encode(got, 6, "\xC3\xA9"), MCPLINK_ERR_TOO_LARGE);
    CHECK_INT(mcplink_url_encode(got, 7, "\xC3\xA9"), 6);
    CHECK_INT(mcplink_url_encode(got, 0, ""), MCPLINK_ERR_TOO_LARGE);
    CHECK_INT(mcplink_url_encode(got, 1, ""), 0);
    CHECK_INT(mcplink_url_encode(NULL, 1, ""), MCPLINK_ERR_ARG);
    CHECK_INT(mcplink_url_encode(got, 1, NULL), MCPLINK_ERR_ARG);
}

static void error_phrases(void)
{
    for (int err = 0; err >= MCPLINK_ERR_NOT_ENVELOPE; err--) {
        CHECK(mcplink_strerror(err)[0] != '\0');
        CHECK(err == 0 || !test_same(mcplink_strerror(err), mcplink_strerror(err + 1)));
    }
    CHECK_TEXT(mcplink_strerror(MCPLINK_OK), "ok");
    CHECK_TEXT(mcplink_strerror(MCPLINK_ERR_TIMEOUT), "timed out");
    CHECK_TEXT(mcplink_strerror(MCPLINK_ERR_CLOSED), "closed by the peer");
    CHECK_TEXT(mcplink_strerror(MCPLINK_ERR_NOT_ENVELOPE), "not an envelope");
    CHECK_TEXT(mcplink_strerror(1), "unknown error");
    CHECK_TEXT(mcplink_strerror(-12), "unknown error");
    CHECK_TEXT(mcplink_strerror(INT32_MIN), "unknown error");
}

static void port_needs_six_functions(void)
{
    mcplink_port p;
    fake_reset();
    CHECK_INT(mcplink_port_check(&net.port), MCPLINK_OK);
    CHECK_INT(mcplink_port_check(NULL), MCPLINK_ERR_ARG);
    p = net.port, p.open = NULL;
    CHECK_INT(mcplink_port_check(&p), MCPLINK_ERR_ARG);
    p = net.port, p.send = NULL;
    CHECK_INT(mcplink_port_check(&p), MCPLINK_ERR_ARG);
    p = net.port, p.recv = NULL;
    CHECK_INT(mcplink_port_check(&p), MCPLINK_ERR_ARG);
    p = net.port, p.close = NULL;
    CHECK_INT(mcplink_port_check(&p), MCPLINK_ERR_ARG);
    p = net.port, p.now_ms = NULL;
    CHECK_INT(mcplink_port_check(&p), MCPLINK_ERR_ARG);
    p = net.port, p.random = NULL;
    CHECK_INT(mcplink_port_check(&p), MCPLINK_ERR_ARG);
    p = net.port, p.sleep_ms = NULL;
    CHECK_INT(mcplink_port_check(&p), MCPLINK_OK);
}

static void clock_wraps(void)
{
    CHECK_INT(mcplink_priv_left(5, 0xFFFFFFFBu), 10);
    CHECK_INT(mcplink_priv_left(0xFFFFFFFBu, 5), -10);
    CHECK_INT(mcplink_priv_left(7, 7), 0);
    CHECK_INT(mcplink_priv_left(0x7FFFFFFFu, 0), INT32_MAX);
    CHECK_INT(mcplink_priv_left(0x80000000u, 0), INT32_MIN);
    CHECK_INT(mcplink_priv_shorter(-1, 5), 5);
    CHECK_INT(mcplink_priv_shorter(5, -1), 5);
    CHECK_INT(mcplink_priv_shorter(3, 5), 3);
    CHECK_INT(mcplink_priv_shorter(-1, -1), -1);
}

/* Each text has room for itself and for the header of a refused frame. */
static void detail_texts(void)
{
    for (unsigned i = 1; i <= MCPLINK_W_NO_PONG; i++) {
        size_t len = strlen(mcplink_priv_words(i));
        CHECK(len > 0 && len + sizeof ", header 00 00" <= MCPLINK_DETAIL_SIZE);
    }
    CHECK_TEXT(mcplink_priv_words(0), "");
    CHECK_TEXT(mcplink_priv_words(MCPLINK_RULE_UTF8), "not UTF-8");
    CHECK_TEXT(mcplink_priv_words(MCPLINK_W_SAME_NAME), "two slots have the same name");
    CHECK_TEXT(mcplink_priv_words(MCPLINK_W_NO_PONG), "no pong");
}

static void struct_sizes(void)
{
    /* Without message storage; the budget is for 32-bit targets. */
    CHECK(sizeof(void *) != 4 || sizeof(mcplink_link) <= 600);
    CHECK(sizeof(mcplink_frame_decoder) <= 256);
}

const test_case util_cases[] = {{"spec 04 10: SHA-1 vectors", sha1_vectors},
                                {"spec 04 10: base64 vectors", base64_vectors},
                                {"R-05 the example of RFC 6455", accept_example},
                                {"spec 04 2.5: URL encoding", url_encoding},
                                {"spec 04 2.2: error phrases", error_phrases},
                                {"spec 04 2.3: a port has six functions", port_needs_six_functions},
                                {"R-34 clock arithmetic wraps", clock_wraps},
                                {"spec 04 5: detail texts", detail_texts},
                                {"spec 04 4: struct sizes", struct_sizes},
                                {NULL, NULL}};
