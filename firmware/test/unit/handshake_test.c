#include "fake.h"

static mcplink_ws ws;

static int open_with(const mcplink_ws_config *c)
{
    return mcplink_ws_open(&ws, &net.port, c);
}

static int open_default(void)
{
    mcplink_ws_config c = fake_ws_config();
    return open_with(&c);
}

static void request(void)
{
    fake_reset();
    net.fixed_random = 0;
    mcplink_ws_config c = fake_ws_config();
    c.extra_headers = "X-Provider-Token: secret\r\nX-Other: 1\r\n";
    CHECK_INT(open_with(&c), MCPLINK_OK);
    CHECK_TEXT(fake_request(), "GET /provider/pump-1 HTTP/1.1\r\n"
                               "Host: broker.test:3000\r\n"
                               "Upgrade: websocket\r\n"
                               "Connection: Upgrade\r\n"
                               "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                               "Sec-WebSocket-Version: 13\r\n"
                               "User-Agent: mcplink/" MCPLINK_VERSION "\r\n"
                               "X-Provider-Token: secret\r\n"
                               "X-Other: 1\r\n"
                               "\r\n");
    CHECK_INT(net.sends, 1);
    CHECK_TEXT(net.host, "broker.test");
    CHECK_INT(net.host_port, 3000);
    CHECK_INT(net.open_timeout, 10000);
}

static void ports_and_tls(void)
{
    fake_reset();
    mcplink_ws_config c = fake_ws_config();
    c.port = 0;
    CHECK_INT(open_with(&c), MCPLINK_OK);
    CHECK_INT(net.host_port, 80);
    CHECK_INT(net.tls, 0);
    c.tls = 1;
    CHECK_INT(open_with(&c), MCPLINK_OK);
    CHECK_INT(net.host_port, 443);
    CHECK_INT(net.tls, 1);
    CHECK(test_contains(fake_request(), "\r\nHost: broker.test:443\r\n"));
}

static void ipv6_host(void)
{
    fake_reset();
    mcplink_ws_config c = fake_ws_config();
    c.host = "fe80::1%eth0";
    CHECK_INT(open_with(&c), MCPLINK_OK);
    CHECK_TEXT(net.host, "fe80::1%eth0");
    CHECK(test_contains(fake_request(), "\r\nHost: [fe80::1]:3000\r\n"));
}

/* A request longer than the receive buffer leaves in several sends. */
static void long_request(void)
{
    static char headers[700];
    fake_reset();
    memset(headers, 'v', sizeof headers - 1);
    memcpy(headers, "X-Long: ", 8);
    memcpy(headers + sizeof headers - 3, "\r\n", 3);
    mcplink_ws_config c = fake_ws_config();
    c.extra_headers = headers;
    c.rx_capacity = 256;
    CHECK_INT(open_with(&c), MCPLINK_OK);
    CHECK(net.sends > 1);
    CHECK(test_contains(fake_request(), headers));
    net.sends = 0;
    net.send_error = MCPLINK_ERR_TRANSPORT; /* nothing follows a piece that failed */
    CHECK_INT(open_with(&c), MCPLINK_ERR_TRANSPORT);
    CHECK_INT(net.sends, 1);
}

static void path_of_slot(void)
{
    fake_reset();
    mcplink_ws_config c = fake_ws_config();
    c.path = "/tunnel/provider";
    c.segment = "/site a/\xC3\xA9";
    CHECK_INT(open_with(&c), MCPLINK_OK);
    CHECK(test_contains(fake_request(), "GET /tunnel/provider/%2Fsite%20a%2F%C3%A9 HTTP/1.1\r\n"));
}

static int checked(const char *headers)
{
    mcplink_ws_config c = fake_ws_config();
    c.extra_headers = headers;
    return mcplink_ws_check(&c, NULL);
}

static void headers_refused(void)
{
    CHECK_INT(checked(""), MCPLINK_OK);
    CHECK_INT(checked("Authorization: Bearer a.b-c\r\nX-A:1\r\n"), MCPLINK_OK);
    CHECK_INT(checked("X-A: 1"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("X-A: 1\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("X-A: 1\r"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("X-A: 1\rX-B: 2\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("X-A: 1\nX-B: 2\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("X-A: 1\r\n\r\nGET / HTTP/1.1\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("X A: 1\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked(": 1\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked(" folded: 1\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("X-A: \x01\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("X-A: \x7F\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("host: x\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("Upgrade: x\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("CONNECTION: x\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("Origin: x\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("User-Agent: x\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("Sec-WebSocket-Protocol: mcp\r\n"), MCPLINK_ERR_ARG);
    CHECK_INT(checked("X-Ok: 1\r\nSec-Websocket-Extensions: x\r\n"), MCPLINK_ERR_ARG);
}

static void check_why(mcplink_ws_config c, int want, const char *part)
{
    const char *why = "";
    CHECK_INT(mcplink_ws_check(&c, &why), want);
    CHECK(test_contains(why, part));
}

static void configuration_refused(void)
{
    static char name[MCPLINK_NAME_MAX + 2], host[MCPLINK_HOST_MAX + 2];
    mcplink_ws_config c = fake_ws_config();
    memset(name, 'n', sizeof name - 1);
    memset(host, 'h', sizeof host - 1);
    c.host = "", check_why(c, MCPLINK_ERR_ARG, "host");
    c.host = NULL, check_why(c, MCPLINK_ERR_ARG, "host");
    c.host = "a b", check_why(c, MCPLINK_ERR_ARG, "host");
    c.host = "a\r\nX: y", check_why(c, MCPLINK_ERR_ARG, "host");
    c.host = "[::1]", check_why(c, MCPLINK_ERR_ARG, "host");
    c.host = host, check_why(c, MCPLINK_ERR_TOO_LARGE, "host");
    c = fake_ws_config();
    c.path = "provider", check_why(c, MCPLINK_ERR_ARG, "path");
    c.path = NULL, check_why(c, MCPLINK_ERR_ARG, "path");
    c.path = "/a b", check_why(c, MCPLINK_ERR_ARG, "path");
    c.path = "/\xC3\xA9", check_why(c, MCPLINK_ERR_ARG, "path");
    c = fake_ws_config();
    c.segment = "", check_why(c, MCPLINK_ERR_ARG, "slot name is empty");
    c.segment = name, check_why(c, MCPLINK_ERR_TOO_LARGE, "slot name too long");
    name[MCPLINK_NAME_MAX] = '\0', check_why(c, MCPLINK_OK, "");
    c.rx_capacity = MCPLINK_RX_MIN - 1, check_why(c, MCPLINK_ERR_ARG, "receive buffer");
    c.rx_capacity = MCPLINK_RX_MIN, check_why(c, MCPLINK_OK, "");
    c.rx_buffer = NULL, check_why(c, MCPLINK_ERR_ARG, "receive buffer");
    CHECK_INT(mcplink_ws_check(NULL, NULL), MCPLINK_ERR_ARG);
}

static void no_entropy_no_key(void)
{
    fake_reset();
    net.entropy = 0;
    CHECK_INT(open_default(), MCPLINK_ERR_TRANSPORT);
    CHECK_TEXT(ws.detail, "no entropy");
    CHECK_INT(net.out_len, 0);
    CHECK_INT(net.closes, 1);
}

/* Opens against this answer and checks the failure. */
static void answered(const char *head, int want, unsigned status, const char *detail)
{
    fake_reset();
    net.head = head;
    CHECK_INT(open_default(), want);
    CHECK_INT(ws.http_status, status);
    CHECK_TEXT(ws.detail, detail);
    CHECK_INT(ws.state, MCPLINK_WS_CLOSED);
    CHECK_INT(net.is_open, 0);
    CHECK_INT(fake_frame(), -1);
}

static void status_line(void)
{
    answered("HTTP/1.1 401 Unauthorized\r\n", MCPLINK_ERR_HANDSHAKE, 401, "HTTP 401");
    answered("HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", MCPLINK_ERR_HANDSHAKE, 302, "HTTP 302");
    answered("HTTP/1.1 200\r\n", MCPLINK_ERR_HANDSHAKE, 200, "HTTP 200");
    answered("HTTP/1.1 599 x\r\n", MCPLINK_ERR_HANDSHAKE, 599, "HTTP 599");
    CHECK_INT(net.opens, 1);
    answered("HTTP/1.1 1:1\r\n", MCPLINK_ERR_PROTOCOL, 0, "not HTTP/1.1");
    answered("HTTP/1.1 /01\r\n", MCPLINK_ERR_PROTOCOL, 0, "not HTTP/1.1");
    answered("HTTP/1.0 101 x\r\n", MCPLINK_ERR_PROTOCOL, 0, "not HTTP/1.1");
    answered("HTTP/1.1 10x\r\n", MCPLINK_ERR_PROTOCOL, 0, "not HTTP/1.1");
    answered("HTTP/1.1 1011\r\n", MCPLINK_ERR_PROTOCOL, 0, "not HTTP/1.1");
    answered("HTTP/1.1 10\r\n", MCPLINK_ERR_PROTOCOL, 0, "not HTTP/1.1");
    answered("SSH-2.0-x", MCPLINK_ERR_PROTOCOL, 0, "not HTTP/1.1");
}

#define OK_LINE "HTTP/1.1 101 Switching Protocols\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define ACCEPT "Sec-WebSocket-Accept: @\r\n"

static void accept_value(void)
{
    answered(OK_LINE UPGRADE "\r\n", MCPLINK_ERR_HANDSHAKE, 101, "no Sec-WebSocket-Accept");
    answered(OK_LINE UPGRADE "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", MCPLINK_ERR_HANDSHAKE, 101,
             "wrong Sec-WebSocket-Accept");
    answered(OK_LINE UPGRADE "Sec-WebSocket-Accept: \r\n\r\n", MCPLINK_ERR_HANDSHAKE, 101,
             "wrong Sec-WebSocket-Accept");
    fake_reset();
    net.head = OK_LINE "UPGRADE: WebSocket\r\nconnection: keep-alive , upgrade\r\nSEC-WEBSOCKET-ACCEPT:\t@  \r\n\r\n";
    CHECK_INT(open_default(), MCPLINK_OK);
}

static void extension(void)
{
    answered(OK_LINE UPGRADE ACCEPT "Sec-WebSocket-Extensions: x\r\n\r\n", MCPLINK_ERR_UNSUPPORTED, 101,
             "unasked extension");
}

static void upgrade_required(void)
{
    answered(OK_LINE "Connection: Upgrade\r\n" ACCEPT "\r\n", MCPLINK_ERR_HANDSHAKE, 101,
             "no Upgrade");
    answered(OK_LINE "Upgrade: h2c\r\nConnection: Upgrade\r\n" ACCEPT "\r\n", MCPLINK_ERR_HANDSHAKE, 101,
             "no Upgrade");
    answered(OK_LINE "Upgrade: websocket\r\nConnection: close\r\n" ACCEPT "\r\n", MCPLINK_ERR_HANDSHAKE, 101,
             "no Connection");
    answered(OK_LINE UPGRADE ACCEPT "Sec-WebSocket-Protocol: mcp\r\n\r\n", MCPLINK_ERR_HANDSHAKE, 101,
             "unasked subprotocol");
}

static void malformed(void)
{
    answered(OK_LINE "no colon\r\n\r\n", MCPLINK_ERR_PROTOCOL, 101, "bad HTTP header");
    answered(OK_LINE ": x\r\n\r\n", MCPLINK_ERR_PROTOCOL, 101, "bad HTTP header");
    answered(OK_LINE " folded: x\r\n\r\n", MCPLINK_ERR_PROTOCOL, 101, "bad HTTP header");
    answered(OK_LINE "A: b\n\r\n", MCPLINK_ERR_PROTOCOL, 101, "bad HTTP header");
}

static void glued_frame(void)
{
    const char *data;
    size_t len;
    fake_reset();
    fake_script_frame(0x89, "p", 1);
    fake_script_frame(0x81, "first", 5);
    fake_script_frame(0x81, "second", 6);
    CHECK_INT(open_default(), MCPLINK_OK);
    unsigned reads = net.recvs;
    CHECK_INT(mcplink_ws_receive(&ws, &data, &len, 0), MCPLINK_OK);
    CHECK_BYTES(data, len, "first");
    CHECK_INT(mcplink_ws_receive(&ws, &data, &len, 0), MCPLINK_OK);
    CHECK_BYTES(data, len, "second");
    CHECK_INT(net.recvs, reads); /* all of it came with the head */
    CHECK_INT(fake_frame(), MCPLINK_OP_PONG);
    CHECK_TEXT(frame_payload, "p");
}

static void head_in_pieces(void)
{
    const char *data;
    size_t len;
    for (size_t chunk = 1; chunk < 8; chunk++) {
        fake_reset();
        net.chunk = chunk;
        fake_script_frame(0x81, "x", 1);
        CHECK_INT(open_default(), MCPLINK_OK);
        CHECK_INT(mcplink_ws_receive(&ws, &data, &len, 100), MCPLINK_OK);
        CHECK_BYTES(data, len, "x");
    }
}

static void head_is_bounded(void)
{
    static char head[1200];
    fake_reset();
    memset(head, 'a', sizeof head - 1);
    memcpy(head, OK_LINE "X: ", sizeof OK_LINE + 2);
    net.head = head;
    CHECK_INT(open_default(), MCPLINK_ERR_TOO_LARGE);
    CHECK_TEXT(ws.detail, "HTTP answer too large");

    fake_reset(); /* silence */
    net.head = "";
    uint32_t before = net.now;
    CHECK_INT(open_default(), MCPLINK_ERR_TIMEOUT);
    CHECK_TEXT(ws.detail, "no HTTP answer");
    CHECK_INT(net.now - before, 5000);

    fake_reset(); /* one byte per second for ever */
    net.head = OK_LINE UPGRADE "X: slow\r\n" ACCEPT "\r\n";
    net.chunk = 1;
    net.ms_per_recv = 1000;
    before = net.now;
    CHECK_INT(open_default(), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.now - before, 5000);

    fake_reset(); /* the end of the stream */
    net.head = OK_LINE;
    net.end = MCPLINK_ERR_CLOSED;
    CHECK_INT(open_default(), MCPLINK_ERR_CLOSED);
}

static void connect_failures(void)
{
    fake_reset();
    net.open_error = MCPLINK_ERR_TLS;
    CHECK_INT(open_default(), MCPLINK_ERR_TLS);
    CHECK_INT(net.closes, 1);
    fake_reset();
    net.open_ms = 20000;
    uint32_t before = net.now;
    CHECK_INT(open_default(), MCPLINK_ERR_TIMEOUT);
    CHECK_INT(net.now - before, 10000);
    fake_reset();
    net.send_error = MCPLINK_ERR_TRANSPORT;
    CHECK_INT(open_default(), MCPLINK_ERR_TRANSPORT);
    CHECK_INT(net.is_open, 0);
}

/* Steps never block longer than asked, whatever the network does. */
static void bounded_steps(void)
{
    fake_reset();
    net.open_ms = 250;
    net.chunk = 20;
    net.ms_per_recv = 30;
    mcplink_ws_config c = fake_ws_config();
    CHECK_INT(mcplink_ws_begin(&ws, &net.port, &c), MCPLINK_OK);
    CHECK_INT(net.opens, 0);
    unsigned steps = 0;
    int got = MCPLINK_PENDING;
    while (got == MCPLINK_PENDING && steps < 50) {
        uint32_t before = net.now;
        got = mcplink_ws_step(&ws, 100);
        CHECK(net.now - before <= 129); /* one read may start just before the end */
        steps++;
    }
    CHECK_INT(got, MCPLINK_OK);
    CHECK_INT(net.opens, 3);
    CHECK(steps > 3 && steps <= 6); /* reads go on within a step */
    CHECK_INT(mcplink_ws_step(&ws, 100), MCPLINK_ERR_STATE);

    fake_reset(); /* the connect timeout still holds */
    net.open_ms = 1000000;
    CHECK_INT(mcplink_ws_begin(&ws, &net.port, &c), MCPLINK_OK);
    for (steps = 1; mcplink_ws_step(&ws, 1000) == MCPLINK_PENDING; steps++) {
    }
    CHECK_INT(steps, 10);
    CHECK_INT(net.closes, 1);

    fake_reset(); /* so does the handshake timeout, with steps that do not block */
    net.head = "HTTP/1.1 101";
    CHECK_INT(mcplink_ws_begin(&ws, &net.port, &c), MCPLINK_OK);
    for (steps = 1; mcplink_ws_step(&ws, 0) == MCPLINK_PENDING; steps++) {
        net.now += 500;
    }
    CHECK_INT(steps, 11);
}

const test_case handshake_cases[] = {{"R-01 the request", request},
                                     {"R-01 default ports, TLS is passed on", ports_and_tls},
                                     {"D-09 an IPv6 literal is bracketed", ipv6_host},
                                     {"R-01 a request longer than the buffer", long_request},
                                     {"R-02 path, prefix and encoded name", path_of_slot},
                                     {"R-03 D-09 extra headers", headers_refused},
                                     {"D-09 D-10 configurations refused", configuration_refused},
                                     {"spec 04 3.1: no entropy, no key", no_entropy_no_key},
                                     {"R-04 status line", status_line},
                                     {"R-05 Sec-WebSocket-Accept", accept_value},
                                     {"R-06 an imposed extension", extension},
                                     {"R-07 D-06 Upgrade, Connection, subprotocol", upgrade_required},
                                     {"R-04 malformed heads", malformed},
                                     {"R-08 bytes behind the head", glued_frame},
                                     {"R-08 a head in pieces", head_in_pieces},
                                     {"R-09 the head is bounded", head_is_bounded},
                                     {"spec 04 3.1: connect failures", connect_failures},
                                     {"D-14 opening in bounded steps", bounded_steps},
                                     {NULL, NULL}};
