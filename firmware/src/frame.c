/* RFC 6455 framing: push decoder and header encoder. */
#include "internal.h"

void mcplink_frame_init(mcplink_frame_decoder *d, void *buf, size_t cap)
{
    memset(d, 0, sizeof *d);
    d->buf = buf;
    d->cap = cap;
    d->head_need = 2;
}

void mcplink_priv_frame_release(mcplink_frame_decoder *d)
{
    if (d->delivered) {
        d->delivered = 0;
        d->len = 0;
    }
}

/* What a broken rule is to the caller and to the peer. */
static MCPLINK_SMALL int refuse(mcplink_frame_decoder *d, unsigned rule)
{
    d->rule = (uint8_t)rule;
    d->error = MCPLINK_ERR_PROTOCOL;
    d->reply_code = 1002;
    if (rule == MCPLINK_RULE_BINARY) {
        d->error = MCPLINK_ERR_UNSUPPORTED;
        d->reply_code = 1003;
    } else if (rule == MCPLINK_RULE_TOO_LARGE) {
        d->error = MCPLINK_ERR_TOO_LARGE;
        d->reply_code = 1009;
    } else if (rule == MCPLINK_RULE_UTF8) {
        d->reply_code = 1007;
    }
    return d->error;
}

static unsigned opcode(const mcplink_frame_decoder *d)
{
    return d->head[0] & 15u;
}

static int is_control(const mcplink_frame_decoder *d)
{
    return opcode(d) >= 8;
}

static int is_final(const mcplink_frame_decoder *d)
{
    return (d->head[0] & 0x80u) != 0;
}

/* The rule the first two bytes break, before any more are taken. */
static unsigned judge_start(mcplink_frame_decoder *d)
{
    unsigned op = opcode(d);
    if ((d->head[0] & 0x70u) != 0) {
        return MCPLINK_RULE_RSV;
    }
    if ((d->head[1] & 0x80u) != 0) {
        return MCPLINK_RULE_MASKED;
    }
    if ((op & 7u) > 2) { /* three of each kind are defined */
        return MCPLINK_RULE_OPCODE;
    }
    if (is_control(d)) {
        if (!is_final(d)) {
            return MCPLINK_RULE_CONTROL_FRAGMENT;
        }
        if (d->head[1] > MCPLINK_CONTROL_MAX) {
            return MCPLINK_RULE_CONTROL_SIZE;
        }
        return MCPLINK_RULE_NONE;
    }
    if ((op == MCPLINK_OP_CONTINUATION) != d->in_message) {
        return d->in_message ? MCPLINK_RULE_INTERLEAVED : MCPLINK_RULE_ORPHAN;
    }
    if (op == MCPLINK_OP_BINARY) {
        return MCPLINK_RULE_BINARY;
    }
    return MCPLINK_RULE_NONE;
}

/* The rule the complete header breaks. Lengths are compared in 64 bits: a size_t of
 * 32 bits would read 2^32 + n as n. */
static unsigned judge_length(mcplink_frame_decoder *d)
{
    uint32_t high = 0, low = d->head[1];
    if (d->head_need > 2) {
        low = 0;
        for (unsigned i = 2; i < d->head_need; i++) {
            high = high << 8 | low >> 24;
            low = low << 8 | d->head[i];
        }
        if (high > INT32_MAX) {
            return MCPLINK_RULE_LENGTH_SIGN;
        }
        if (high == 0 && low < (d->head_need == 4 ? 126u : 65536u)) {
            return MCPLINK_RULE_LENGTH_FORM;
        }
    }
    if (!is_control(d) && ((uint64_t)high << 32 | low) > d->cap - d->len) {
        return MCPLINK_RULE_TOO_LARGE;
    }
    d->left = low;
    if (sizeof(size_t) > sizeof low) {
        d->left = (size_t)((uint64_t)high << 32 | low);
    }
    return MCPLINK_RULE_NONE;
}

#if MCPLINK_CHECK_UTF8
/* One byte of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
static int utf8_step(mcplink_frame_decoder *d, uint8_t b)
{
    if (d->utf8_need == 0) {
        d->utf8_lead = b;
        d->utf8_need = (uint8_t)((b >= 0xC2) + (b >= 0xE0) + (b >= 0xF0));
        return b < 0x80 || (b >= 0xC2 && b <= 0xF4);
    }
    uint8_t lead = d->utf8_lead;
    d->utf8_lead = 0;
    d->utf8_need--;
    return (b & 0xC0u) == 0x80 && !(lead == 0xE0 && b < 0xA0) && !(lead == 0xED && b >= 0xA0) &&
           !(lead == 0xF0 && b < 0x90) && !(lead == 0xF4 && b >= 0x90);
}
#endif

static MCPLINK_SMALL int check_utf8(mcplink_frame_decoder *d, const uint8_t *in, size_t n, int complete)
{
#if MCPLINK_CHECK_UTF8
    int ok = 1;
    for (size_t i = 0; i < n && ok; i++) {
        ok = utf8_step(d, in[i]);
    }
    if (!ok || (complete && d->utf8_need > 0)) {
        return refuse(d, MCPLINK_RULE_UTF8);
    }
#else
    (void)d;
    (void)in;
    (void)n;
    (void)complete;
#endif
    return 0;
}

static int close_frame(mcplink_frame_decoder *d)
{
    if (d->control_len == 0) {
        d->close_code = 1005;
    } else if (d->control_len == 1) {
        return refuse(d, MCPLINK_RULE_CLOSE_SIZE);
    } else {
        unsigned code = (unsigned)d->control[0] << 8 | d->control[1];
        if (!((code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1011) || (code >= 3000 && code <= 4999))) {
            return refuse(d, MCPLINK_RULE_CLOSE_CODE);
        }
        d->utf8_need = 0;
        if (check_utf8(d, d->control + 2, (size_t)d->control_len - 2u, 1) != 0) {
            return d->error;
        }
        d->close_code = (uint16_t)code;
    }
    d->error = MCPLINK_ERR_CLOSED;
    return MCPLINK_FRAME_CLOSE;
}

static int end_frame(mcplink_frame_decoder *d)
{
    d->in_payload = 0;
    d->head_len = 0;
    d->head_need = 2;
    switch (opcode(d)) {
    case MCPLINK_OP_CLOSE: return close_frame(d);
    case MCPLINK_OP_PING: return MCPLINK_FRAME_PING;
    case MCPLINK_OP_PONG: return MCPLINK_FRAME_PONG;
    default: break;
    }
    if (!is_final(d)) {
        d->in_message = 1;
        return MCPLINK_FRAME_MORE;
    }
    if (check_utf8(d, NULL, 0, 1) != 0) {
        return d->error;
    }
    d->in_message = 0;
    d->delivered = 1;
    return MCPLINK_FRAME_MESSAGE;
}

static int take_header(mcplink_frame_decoder *d, uint8_t b)
{
    d->head[d->head_len++] = b;
    if (d->head_len == 2) {
        unsigned rule = judge_start(d);
        if (rule != MCPLINK_RULE_NONE) {
            return refuse(d, rule);
        }
        switch (d->head[1] & 0x7Fu) {
        case 126: d->head_need = 4; break;
        case 127: d->head_need = 10; break;
        default: break;
        }
    }
    if (d->head_len < d->head_need) {
        return MCPLINK_FRAME_MORE;
    }
    unsigned rule = judge_length(d);
    if (rule != MCPLINK_RULE_NONE) {
        return refuse(d, rule);
    }
    if (is_control(d)) {
        d->control_len = 0;
        d->control[0] = 0;
    }
    d->in_payload = 1;
    return d->left == 0 ? end_frame(d) : MCPLINK_FRAME_MORE;
}

static int take_payload(mcplink_frame_decoder *d, const uint8_t *in, size_t n)
{
    d->left -= n;
    if (is_control(d)) {
        memcpy(d->control + d->control_len, in, n);
        d->control_len = (uint8_t)(d->control_len + n);
        d->control[d->control_len] = 0;
    } else {
        memmove(d->buf + d->len, in, n);
        if (check_utf8(d, d->buf + d->len, n, 0) != 0) {
            return d->error;
        }
        d->len += n;
    }
    return d->left == 0 ? end_frame(d) : MCPLINK_FRAME_MORE;
}

int mcplink_frame_feed(mcplink_frame_decoder *d, const void *data, size_t len, size_t *used)
{
    const uint8_t *in = data;
    int event = d->error;
    *used = 0;
    if (event != 0) {
        return event;
    }
    mcplink_priv_frame_release(d);
    while (*used < len && event == MCPLINK_FRAME_MORE) {
        size_t n = 1;
        if (d->in_payload) {
            n = len - *used;
            if (n > d->left) {
                n = d->left;
            }
            event = take_payload(d, in + *used, n);
        } else {
            event = take_header(d, in[*used]);
        }
        *used += n;
    }
    return event;
}

size_t mcplink_frame_want(const mcplink_frame_decoder *d)
{
    return d->in_payload ? d->left : (size_t)(d->head_need - d->head_len);
}

const char *mcplink_frame_reason(const mcplink_frame_decoder *d)
{
    return d->close_code != 0 && d->control_len > 2 ? (const char *)d->control + 2 : "";
}

#if MCPLINK_DETAILS
static MCPLINK_SMALL void put_hex(char out[2], uint8_t v)
{
    out[0] = mcplink_priv_hex_lower[v >> 4];
    out[1] = mcplink_priv_hex_lower[v & 15u];
}
#endif

void mcplink_frame_detail(const mcplink_frame_decoder *d, char out[MCPLINK_DETAIL_SIZE])
{
    out[0] = '\0';
#if MCPLINK_DETAILS
    if (d->rule != MCPLINK_RULE_NONE) {
        const char *rule = mcplink_priv_words(d->rule);
        size_t n = strlen(rule);
        memcpy(out, rule, n);
        memcpy(out + n, ", header 00 00", 15);
        put_hex(out + n + 9, d->head[0]);
        put_hex(out + n + 12, d->head[1]);
    }
#else
    (void)d;
#endif
}

size_t mcplink_frame_header(uint8_t out[MCPLINK_FRAME_HEADER_MAX], uint8_t op, uint64_t len, const uint8_t mask[4])
{
    uint8_t form = (uint8_t)len;
    size_t extended = 0;
    if (len >= 65536) {
        form = 127;
        extended = 8;
    } else if (len >= 126) {
        form = 126;
        extended = 2;
    }
    out[0] = (uint8_t)(0x80u | op);
    out[1] = (uint8_t)(0x80u | form);
    for (size_t i = extended; i > 0; i--, len >>= 8) {
        out[1 + i] = (uint8_t)len;
    }
    memcpy(out + 2 + extended, mask, 4);
    return 6 + extended;
}

void mcplink_frame_mask(uint8_t *dst, const uint8_t *src, size_t len, const uint8_t mask[4], size_t offset)
{
    for (size_t i = 0; i < len; i++) {
        dst[i] = src[i] ^ mask[(offset + i) & 3u];
    }
}
