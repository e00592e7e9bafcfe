/* The HTTP upgrade: configuration checks, request, answer. */
#include "internal.h"

#define KEY_LEN 24u
#define ACCEPT_LEN 28u

enum { SEEN_STATUS = 1, SEEN_UPGRADE = 2, SEEN_CONNECTION = 4, SEEN_ACCEPT = 8 };

/* ---- configuration ------------------------------------------------------- */

static int host_char(uint8_t c)
{
    return mcplink_priv_unreserved(c) || c == ':' || c == '%';
}

static int token_char(char c)
{
    return mcplink_priv_unreserved((uint8_t)c) ||
           (c > ' ' && c < 0x7F && mcplink_priv_find("!#$%&'*+^`|", 11, c) != NULL);
}

static int library_header(const char *name, size_t len)
{
    static const char own[] = "host\0upgrade\0connection\0origin\0user-agent\0";
    static const char prefix[] = "sec-websocket-";
    size_t n = sizeof prefix - 1;
    for (const char *p = own; *p != '\0'; p += strlen(p) + 1) {
        if (mcplink_priv_word(name, len, p)) {
            return 1;
        }
    }
    return len >= n && mcplink_priv_word(name, n, prefix);
}

/* One `Name: value` CRLF line; its length, or 0 when it is none or the library's
 * own to write. */
static MCPLINK_SMALL size_t header_line(const char *s)
{
    size_t name = 0;
    while (token_char(s[name])) {
        name++;
    }
    if (name == 0 || s[name] != ':' || library_header(s, name)) {
        return 0;
    }
    size_t end = name + 1;
    while ((uint8_t)s[end] >= ' ' || s[end] == '\t') {
        if (s[end] == 0x7F) {
            return 0;
        }
        end++;
    }
    return s[end] == '\r' && s[end + 1] == '\n' ? end + 2 : 0;
}

static int headers_ok(const char *s)
{
    while (*s != '\0') {
        size_t n = header_line(s);
        if (n == 0) {
            return 0;
        }
        s += n;
    }
    return 1;
}

static int path_ok(const char *s)
{
    if (s == NULL || s[0] != '/') {
        return 0;
    }
    for (; *s != '\0'; s++) {
        if (*s <= ' ' || *s >= 0x7F || *s == '#') {
            return 0;
        }
    }
    return 1;
}

static int host_ok(const char *s)
{
    if (s == NULL || s[0] == '\0') {
        return 0;
    }
    for (; *s != '\0'; s++) {
        if (!host_char((uint8_t)*s)) {
            return 0;
        }
    }
    return 1;
}

int mcplink_ws_check(const mcplink_ws_config *c, const char **why)
{
    const char *text = "";
    int err = MCPLINK_ERR_ARG;
    if (c == NULL) {
        text = MCPLINK_WORDS("config is missing");
    } else if (!host_ok(c->host)) {
        text = MCPLINK_WORDS("host is empty or not a name or address");
    } else if (strlen(c->host) > MCPLINK_HOST_MAX) {
        text = MCPLINK_WORDS("host is longer than 253 bytes");
        err = MCPLINK_ERR_TOO_LARGE;
    } else if (!path_ok(c->path)) {
        text = MCPLINK_WORDS("path must start with / and be visible ASCII");
    } else if (c->segment != NULL && c->segment[0] == '\0') {
        text = MCPLINK_WORDS("slot name is empty");
    } else if (c->segment != NULL && strlen(c->segment) > MCPLINK_NAME_MAX) {
        text = MCPLINK_WORDS("slot name is longer than 64 bytes");
        err = MCPLINK_ERR_TOO_LARGE;
    } else if (c->rx_buffer == NULL || c->rx_capacity < MCPLINK_RX_MIN) {
        text = MCPLINK_WORDS("receive buffer is smaller than 256 bytes");
    } else if (c->extra_headers != NULL && !headers_ok(c->extra_headers)) {
        text = MCPLINK_WORDS("extra headers are malformed or the library's own");
    } else {
        err = MCPLINK_OK;
    }
    if (why != NULL) {
        *why = text;
    }
    return err;
}

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
static void put_host(request *r, const char *host, uint16_t port)
{
    char digits[6] = "";
    mcplink_text t = {digits, sizeof digits, 0};
    int literal = mcplink_priv_find(host, strlen(host), ':') != NULL;
    if (literal) {
        put_char(r, '[');
    }
    for (; *host != '\0' && !(literal && *host == '%'); host++) {
        put_char(r, *host);
    }
    if (literal) {
        put_char(r, ']');
    }
    mcplink_priv_text_u32(&t, port);
    (void)mcplink_priv_text_end(&t);
    put_char(r, ':');
    put(r, digits);
}

/* Draws the key and keeps the answer it calls for where control payloads will be:
 * nothing is decoded before the handshake is over. */
static int draw_key(mcplink_ws *ws, char key[KEY_LEN + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[KEY_LEN + sizeof guid];
    uint8_t raw[16], digest[MCPLINK_SHA1_SIZE];
    if (ws->port->random(ws->port->ctx, raw, sizeof raw) != 0) {
        mcplink_priv_ws_detail(ws, "no entropy for the key");
        return MCPLINK_ERR_TRANSPORT;
    }
    (void)mcplink_priv_base64(key, KEY_LEN + 1, raw, sizeof raw);
    memcpy(text, key, KEY_LEN);
    memcpy(text + KEY_LEN, guid, sizeof guid);
    mcplink_priv_sha1(digest, text, KEY_LEN + sizeof guid - 1);
    (void)mcplink_priv_base64((char *)ws->decoder.control, ACCEPT_LEN + 1, digest, sizeof digest);
    return MCPLINK_OK;
}

int mcplink_priv_request_send(mcplink_ws *ws)
{
    const mcplink_ws_config *c = &ws->config;
    char key[KEY_LEN + 1];
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
    put_host(&r, c->host, c->port);
    put(&r, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ");
    put(&r, key);
    put(&r, "\r\nSec-WebSocket-Version: 13\r\nUser-Agent: mcplink/" MCPLINK_VERSION "\r\n");
    put(&r, c->extra_headers != NULL ? c->extra_headers : "");
    put(&r, "\r\n");
    flush(&r);
    ws->head_seen = 0;
    ws->rd = 0;
    ws->wr = 0;
    return r.error;
}

/* ---- answer -------------------------------------------------------------- */

static int say(mcplink_ws *ws, int err, const char *text)
{
    mcplink_priv_ws_detail(ws, text);
    return err;
}

static const char http[] = "HTTP/1.1 ";
#define HTTP_LEN (sizeof http - 1)

static int status_line(mcplink_ws *ws, const char *line, size_t len)
{
    unsigned status = 0;
    if (len < HTTP_LEN + 3 || (len > HTTP_LEN + 3 && line[HTTP_LEN + 3] != ' ')) {
        return say(ws, MCPLINK_ERR_PROTOCOL, "the answer is not HTTP/1.1");
    }
    for (size_t i = HTTP_LEN; i < HTTP_LEN + 3; i++) {
        if (line[i] < '0' || line[i] > '9') {
            return say(ws, MCPLINK_ERR_PROTOCOL, "the answer is not HTTP/1.1");
        }
        status = status * 10u + (unsigned)(line[i] - '0');
    }
    ws->http_status = (uint16_t)status;
    if (status != 101) {
        char text[] = "HTTP 000";
        memcpy(text + 5, line + HTTP_LEN, 3);
        return say(ws, MCPLINK_ERR_HANDSHAKE, text);
    }
    ws->head_seen |= SEEN_STATUS;
    return MCPLINK_OK;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void trim(const char **s, size_t *len)
{
    while (*len > 0 && is_blank(**s)) {
        (*s)++;
        (*len)--;
    }
    while (*len > 0 && is_blank((*s)[*len - 1])) {
        (*len)--;
    }
}

static int list_has(const char *s, size_t len, const char *word)
{
    while (len > 0) {
        const char *comma = mcplink_priv_find(s, len, ',');
        size_t n = comma != NULL ? (size_t)(comma - s) : len;
        const char *item = s;
        size_t item_len = n;
        trim(&item, &item_len);
        if (mcplink_priv_word(item, item_len, word)) {
            return 1;
        }
        n += comma != NULL;
        s += n;
        len -= n;
    }
    return 0;
}

static int header(mcplink_ws *ws, const char *line, size_t len)
{
    const char *colon = mcplink_priv_find(line, len, ':');
    if (colon == NULL || colon == line || is_blank(line[0])) {
        return say(ws, MCPLINK_ERR_PROTOCOL, "malformed header in the answer");
    }
    size_t name = (size_t)(colon - line);
    const char *value = colon + 1;
    size_t n = len - name - 1;
    trim(&value, &n);
    if (mcplink_priv_word(line, name, "sec-websocket-accept")) {
        if (n != ACCEPT_LEN || memcmp(value, ws->decoder.control, ACCEPT_LEN) != 0) {
            return say(ws, MCPLINK_ERR_HANDSHAKE, "wrong Sec-WebSocket-Accept");
        }
        ws->head_seen |= SEEN_ACCEPT;
    } else if (mcplink_priv_word(line, name, "sec-websocket-extensions")) {
        return say(ws, MCPLINK_ERR_UNSUPPORTED, "the server imposes an extension");
    } else if (mcplink_priv_word(line, name, "sec-websocket-protocol")) {
        return say(ws, MCPLINK_ERR_HANDSHAKE, "the server imposes a subprotocol");
    } else if (mcplink_priv_word(line, name, "upgrade") && mcplink_priv_word(value, n, "websocket")) {
        ws->head_seen |= SEEN_UPGRADE;
    } else if (mcplink_priv_word(line, name, "connection") && list_has(value, n, "upgrade")) {
        ws->head_seen |= SEEN_CONNECTION;
    }
    return MCPLINK_OK;
}

static int complete(mcplink_ws *ws)
{
    if (!(ws->head_seen & SEEN_UPGRADE)) {
        return say(ws, MCPLINK_ERR_HANDSHAKE, "no Upgrade: websocket in the answer");
    }
    if (!(ws->head_seen & SEEN_CONNECTION)) {
        return say(ws, MCPLINK_ERR_HANDSHAKE, "no Connection: Upgrade in the answer");
    }
    if (!(ws->head_seen & SEEN_ACCEPT)) {
        return say(ws, MCPLINK_ERR_HANDSHAKE, "no Sec-WebSocket-Accept in the answer");
    }
    return MCPLINK_OK;
}

/* Lines are judged as they complete; rd is the start of the current one. */
int mcplink_priv_response_read(mcplink_ws *ws)
{
    const char *buf = ws->config.rx_buffer;
    size_t start = ws->wr < HTTP_LEN ? ws->wr : HTTP_LEN;
    if (!(ws->head_seen & SEEN_STATUS) && memcmp(buf, http, start) != 0) {
        return say(ws, MCPLINK_ERR_PROTOCOL, "the answer is not HTTP/1.1");
    }
    while (ws->rd < ws->wr) {
        const char *line = buf + ws->rd;
        const char *lf = mcplink_priv_find(line, ws->wr - ws->rd, '\n');
        if (lf == NULL) {
            break;
        }
        size_t len = (size_t)(lf - line);
        if (len == 0 || line[len - 1] != '\r') {
            return say(ws, MCPLINK_ERR_PROTOCOL, "malformed header in the answer");
        }
        len--;
        ws->rd += len + 2;
        int err;
        if (!(ws->head_seen & SEEN_STATUS)) {
            err = status_line(ws, line, len);
        } else if (len == 0) {
            return complete(ws);
        } else {
            err = header(ws, line, len);
        }
        if (err != MCPLINK_OK) {
            return err;
        }
    }
    if (ws->wr == ws->config.rx_capacity) {
        return say(ws, MCPLINK_ERR_TOO_LARGE, "the HTTP answer is larger than the buffer");
    }
    return MCPLINK_PENDING;
}
