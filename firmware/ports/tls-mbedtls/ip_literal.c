#include "ip_literal.h"

#include <string.h>

/* Reads a number of up to three digits; NULL when there is none or it is over 255. */
static const char *read_octet(const char *at, uint8_t *octet)
{
    unsigned n = 0;
    int digits = 0;

    for (; *at >= '0' && *at <= '9' && digits < 3; at++, digits++) {
        n = n * 10 + (unsigned)(*at - '0');
    }
    *octet = (uint8_t)n;
    return digits == 0 || n > 255 ? NULL : at;
}

static int read_ipv4(const char *at, uint8_t address[4])
{
    for (int i = 0; i < 4; i++) {
        if (i > 0 && *at++ != '.') {
            return 0;
        }
        at = read_octet(at, &address[i]);
        if (at == NULL) {
            return 0;
        }
    }
    return *at == '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static const char *read_group(const char *at, uint8_t group[2])
{
    unsigned n = 0;
    int digits = 0;

    for (; hex_digit(*at) >= 0; at++, digits++) {
        if (digits == 4) {
            return NULL;
        }
        n = n << 4 | (unsigned)hex_digit(*at);
    }
    group[0] = (uint8_t)(n >> 8);
    group[1] = (uint8_t)(n & 0xFFu);
    return digits == 0 ? NULL : at;
}

/* Moves what follows "::" to the end of the address. */
static int expand(uint8_t address[16], size_t len, size_t gap)
{
    size_t tail = len - gap;

    if (len > 14) {
        return 0; /* "::" stands for one group at least */
    }
    memmove(address + 16 - tail, address + gap, tail);
    memset(address + gap, 0, 16 - len);
    return 1;
}

static int read_ipv6(const char *at, uint8_t address[16])
{
    size_t gap = SIZE_MAX;
    size_t len = 0;

    if (at[0] == ':' && at[1] == ':') {
        gap = 0;
        at += 2;
    }
    while (*at != '\0') {
        if (len <= 12 && read_ipv4(at, address + len)) {
            len += 4;
            break;
        }
        if (len == 16) {
            return 0;
        }
        at = read_group(at, address + len);
        if (at == NULL) {
            return 0;
        }
        len += 2;
        if (*at == '\0') {
            break;
        }
        if (*at++ != ':') {
            return 0;
        }
        if (*at == ':') {
            if (gap != SIZE_MAX) {
                return 0;
            }
            gap = len;
            at++;
        } else if (*at == '\0') {
            return 0;
        }
    }
    return gap == SIZE_MAX ? len == 16 : expand(address, len, gap);
}

size_t mcplink_ip_literal(const char *text, uint8_t address[16])
{
    if (read_ipv4(text, address)) {
        return 4;
    }
    return strchr(text, ':') != NULL && read_ipv6(text, address) ? 16 : 0;
}
