/* The HTTP upgrade: request and answer. */
#include "internal.h"

#define KEY_LEN 24u
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define GUID_LEN (sizeof GUID - 1)
#define KEY_SIZE (KEY_LEN + GUID_LEN) /* room to hash it in */
#define ACCEPT_LEN 28u

/* ---- request ------------------------------------------------------------- */

/* The request is staged in the receive buffer, which is idle, and leaves in as few
 * sends as it allows. */
typedef struct request {
    mcplink_ws *ws;
    size_t fill;
    int error;
    uint32_t deadline_ms;
} request;

static MCPLINK_SMALL void flush(request *r)
{
    if (r->error == MCPLINK_OK && r->fill > 0) {
        r->error = mcplink_priv_ws_write(r->ws, r->ws->config.rx_buffer, r->fill, r->deadline_ms);
    }
    r->fill = 0;
}

static void put_char(request *r, char c)
{
    char *buf = r->ws->config.rx_buffer;
    buf[r->fill++] = c;
    if (r->fill == r->ws->config.rx_capacity) {
        flush(r);
    }
}

static MCPLINK_SMALL void put(request *r, const char *s)
{
    for (; *s != '\0'; s++) {
        put_char(r, *s);
    }
}

static void put_segment(request *r, const char *s)
{
    for (; *s != '\0'; s++) {
        uint8_t c = (uint8_t)*s;
        if (mcplink_priv_unreserved(c)) {
            put_char(r, *s);
        } else {
            put_char(r, '%');
            put_char(r, mcplink_priv_hex_upper[c >> 4]);
            put_char(r, mcplink_priv_hex_upper[c & 15u]);
        }
    }
}

/* An IPv6 literal is bracketed; its zone means nothing to the server. */
static void put_host(request *r, const char *host)
{
    size_t len = strlen(host);
    int literal = mcplink_priv_find(host, len, ':') < len;
    if (literal) {
        put_char(r, '[');
    }
    for (; *host != '\0' && !(literal && *host == '%'); host++) {
        put_char(r, *host);
    }
    if (literal) {
        put_char(r, ']');
    }
}

static void put_port(request *r, unsigned port)
{
    char digits[6];
    char *p = digits + sizeof digits - 1;
    *p = '\0';
    do {
        *--p = (char)('0' + port % 10);
        port /= 10;
    } while (port != 0);
    put(r, p);
}

/* Draws the key and keeps the answer it calls for where control payloads will be:
 * nothing is decoded before the handshake is over. */
static int draw_key(mcplink_ws *ws, char key[KEY_SIZE])
{
    uint8_t raw[16], digest[MCPLINK_SHA1_SIZE];
    if (ws->port->random(ws->port->ctx, raw, sizeof raw) != 0) {
        mcplink_priv_ws_detail(ws, MCPLINK_W_NO_ENTROPY);
        return MCPLINK_ERR_TRANSPORT;
    }
    (void)mcplink_priv_base64(key, KEY_SIZE, raw, sizeof raw);
    memcpy(key + KEY_LEN, GUID, GUID_LEN);
    mcplink_priv_sha1(digest, key, KEY_LEN + GUID_LEN);
    key[KEY_LEN] = '\0';
    (void)mcplink_priv_base64((char *)ws->decoder.control, ACCEPT_LEN + 1, digest, sizeof digest);
    return MCPLINK_OK;
}

int mcplink_priv_request_send(mcplink_ws *ws)
{
    const mcplink_ws_config *c = &ws->config;
    char key[KEY_SIZE];
    int err = draw_key(ws, key);
    if (err != MCPLINK_OK) {
        return err;
    }
    request r = {ws, 0, MCPLINK_OK, mcplink_priv_now(ws->port) + c->send_timeout_ms};
    put(&r, "GET ");
    put(&r, c->path);
    if (c->segment != NULL) {
        put_char(&r, '/');
        put_segment(&r, c->segment);
    }
    put(&r, " HTTP/1.1\r\nHost: ");
    put_host(&r, c->host);
    put_char(&r, ':');
    put_port(&r, c->port);
    put(&r, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ");
    put(&r, key);
    put(&r, "\r\nSec-WebSocket-Version: 13\r\nUser-Agent: mcplink/" MCPLINK_VERSION "\r\n");
    if (c->extra_headers != NULL) {
        put(&r, c->extra_headers);
    }
    put(&r, "\r\n");
    flush(&r);
    ws->head_seen = 0;
    ws->rd = 0;
    ws->wr = 0;
    return r.error;
}

/* ---- answer -------------------------------------------------------------- */

/* An answer is judged to be COMPLETE, INCOMPLETE or what it is refused for, an enum
 * mcplink_word. */
enum { COMPLETE = MCPLINK_OK, INCOMPLETE = MCPLINK_PENDING };

#define SEEN_STATUS 0x80u /* in head_seen, beside a bit for each of the first three headers */

static const char http[] = "HTTP/1.1 ";
#define HTTP_LEN (sizeof http - 1)

static unsigned status_line(mcplink_ws *ws, const char *line, size_t len)
{
    unsigned status = 0;
    if (len < HTTP_LEN + 3 || (len > HTTP_LEN + 3 && line[HTTP_LEN + 3] != ' ')) {
        return MCPLINK_W_NOT_HTTP;
    }
    for (size_t i = HTTP_LEN; i < HTTP_LEN + 3; i++) {
        if (line[i] < '0' || line[i] > '9') {
            return MCPLINK_W_NOT_HTTP;
        }
        status = status * 10u + (unsigned)(line[i] - '0');
    }
    ws->http_status = (uint16_t)status;
    if (status != 101) {
        mcplink_priv_ws_detail(ws, MCPLINK_W_STATUS);
        if (MCPLINK_DETAILS) {
            memcpy(ws->detail + 5, line + HTTP_LEN, 3);
        }
        return MCPLINK_W_STATUS;
    }
    ws->head_seen |= SEEN_STATUS;
    return INCOMPLETE;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

typedef struct span {
    const char *s;
    size_t len;
} span;

static span trim(span v)
{
    while (v.len > 0 && is_blank(v.s[0])) {
        v.s++;
        v.len--;
    }
    while (v.len > 0 && is_blank(v.s[v.len - 1])) {
        v.len--;
    }
    return v;
}

static int is_word(span v, const char *word)
{
    v = trim(v);
    return mcplink_priv_word(v.s, v.len, word);
}

static int list_has(span list, const char *word)
{
    for (;;) {
        span item = {list.s, mcplink_priv_find(list.s, list.len, ',')};
        if (is_word(item, word)) {
            return 1;
        }
        if (item.len == list.len) {
            return 0;
        }
        list.s += item.len + 1;
        list.len -= item.len + 1;
    }
}

static unsigned header_line(mcplink_ws *ws, const char *line, size_t len)
{
    size_t name_len = mcplink_priv_find(line, len, ':');
    if (name_len == len || name_len == 0 || is_blank(line[0])) {
        return MCPLINK_W_BAD_ANSWER;
    }
    unsigned header = mcplink_priv_header(line, name_len);
    span value = {line + name_len + 1, len - name_len - 1};
    value = trim(value);
    if (header == MCPLINK_H_EXTENSIONS) {
        return MCPLINK_W_EXTENSION;
    }
    if (header == MCPLINK_H_PROTOCOL) {
        return MCPLINK_W_SUBPROTOCOL;
    }
    if (header == MCPLINK_H_ACCEPT &&
        (value.len != ACCEPT_LEN || memcmp(value.s, ws->decoder.control, ACCEPT_LEN) != 0)) {
        return MCPLINK_W_WRONG_ACCEPT;
    }
    if (header == MCPLINK_H_ACCEPT || (header == MCPLINK_H_UPGRADE && is_word(value, "websocket")) ||
        (header == MCPLINK_H_CONNECTION && list_has(value, "upgrade"))) {
        ws->head_seen |= (uint8_t)(1u << header);
    }
    return INCOMPLETE;
}

static unsigned blank_line(const mcplink_ws *ws)
{
    unsigned i = MCPLINK_H_UPGRADE;
    while ((ws->head_seen >> i & 1u) != 0) {
        i++;
    }
    return i > MCPLINK_H_ACCEPT ? COMPLETE : MCPLINK_W_NO_UPGRADE + i;
}

/* Lines are judged as they complete; rd is the start of the current one. */
static unsigned judge(mcplink_ws *ws)
{
    const char *buf = ws->config.rx_buffer;
    size_t start = ws->wr < HTTP_LEN ? ws->wr : HTTP_LEN;
    unsigned verdict = INCOMPLETE;
    if ((ws->head_seen & SEEN_STATUS) == 0 && memcmp(buf, http, start) != 0) {
        return MCPLINK_W_NOT_HTTP;
    }
    while (verdict == INCOMPLETE) {
        const char *line = buf + ws->rd;
        size_t arrived = ws->wr - ws->rd;
        size_t len = mcplink_priv_find(line, arrived, '\n');
        if (len == arrived) {
            return ws->wr == ws->config.rx_capacity ? MCPLINK_W_LONG_ANSWER : INCOMPLETE;
        }
        if (len == 0 || line[len - 1] != '\r') {
            return MCPLINK_W_BAD_ANSWER;
        }
        len--;
        ws->rd += len + 2;
        if ((ws->head_seen & SEEN_STATUS) == 0) {
            verdict = status_line(ws, line, len);
        } else if (len == 0) {
            verdict = blank_line(ws);
        } else {
            verdict = header_line(ws, line, len);
        }
    }
    return verdict;
}

int mcplink_priv_response_read(mcplink_ws *ws)
{
    unsigned verdict = judge(ws);
    if (verdict <= INCOMPLETE) {
        return (int)verdict;
    }
    mcplink_priv_ws_detail(ws, verdict);
    return mcplink_priv_word_error(verdict);
}
