/* Whether a configuration can be used. */
#include "internal.h"

unsigned mcplink_priv_header(const char *name, size_t len)
{
    static const char names[] = "upgrade\0connection\0sec-websocket-accept\0sec-websocket-extensions\0"
                                "sec-websocket-protocol\0host\0origin\0user-agent\0";
    unsigned i = MCPLINK_H_UPGRADE;
    for (const char *p = names; i < MCPLINK_H_OTHER && !mcplink_priv_word(name, len, p); i++) {
        p += strlen(p) + 1;
    }
    return i;
}

static int host_char(uint8_t c)
{
    return mcplink_priv_unreserved(c) || c == ':' || c == '%';
}

static int token_char(char c)
{
    static const char delimiters[] = "\"(),/:;<=>?@[\\]{}";
    return c > ' ' && c < 0x7F && mcplink_priv_find(delimiters, sizeof delimiters - 1, c) == sizeof delimiters - 1;
}

static int library_header(const char *name, size_t len)
{
    static const char prefix[] = "sec-websocket-";
    size_t n = sizeof prefix - 1;
    return mcplink_priv_header(name, len) != MCPLINK_H_OTHER || (len >= n && mcplink_priv_word(name, n, prefix));
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

static unsigned config_fault(const mcplink_ws_config *c)
{
    if (c == NULL) {
        return MCPLINK_W_NO_CONFIG;
    }
    if (!host_ok(c->host)) {
        return MCPLINK_W_BAD_HOST;
    }
    if (strlen(c->host) > MCPLINK_HOST_MAX) {
        return MCPLINK_W_LONG_HOST;
    }
    if (!path_ok(c->path)) {
        return MCPLINK_W_BAD_PATH;
    }
    if (c->segment != NULL) {
        size_t len = strlen(c->segment);
        if (len == 0 || len > MCPLINK_NAME_MAX) {
            return len == 0 ? MCPLINK_W_NO_NAME : MCPLINK_W_LONG_NAME;
        }
    }
    if (c->rx_buffer == NULL || c->rx_capacity < MCPLINK_RX_MIN) {
        return MCPLINK_W_SMALL_BUFFER;
    }
    if (c->extra_headers != NULL && !headers_ok(c->extra_headers)) {
        return MCPLINK_W_BAD_HEADERS;
    }
    return 0;
}

unsigned mcplink_priv_fault(const mcplink_port *port, const mcplink_ws_config *c)
{
    return mcplink_port_check(port) == MCPLINK_OK ? config_fault(c) : MCPLINK_W_NO_PORT;
}

int mcplink_ws_check(const mcplink_ws_config *c, const char **why)
{
    unsigned word = config_fault(c);
    if (why != NULL) {
        *why = mcplink_priv_words(word);
    }
    return mcplink_priv_word_error(word);
}
