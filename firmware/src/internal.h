/* Shared by the library's sources and its unit tests; not installed. */
#ifndef MCPLINK_INTERNAL_H
#define MCPLINK_INTERNAL_H

#include "mcplink/link.h"

/* Without a hosted libc there may be no string.h; these five are all that is used. */
#if __STDC_HOSTED__
#include <string.h>
#else
void *memcpy(void *restrict dst, const void *restrict src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
#endif

/* Kept out of line: several callers, and small images matter more than the call. */
#if defined(__GNUC__)
#define MCPLINK_SMALL __attribute__((noinline))
#else
#define MCPLINK_SMALL
#endif

/* What the library has to say beside enum mcplink_frame_rule. */
enum mcplink_word {
    /* check.c */
    MCPLINK_W_NO_CONFIG = MCPLINK_RULE_UTF8 + 1,
    MCPLINK_W_NO_PORT,
    MCPLINK_W_BAD_HOST,
    MCPLINK_W_LONG_HOST,
    MCPLINK_W_BAD_PATH,
    MCPLINK_W_NO_NAME,
    MCPLINK_W_LONG_NAME,
    MCPLINK_W_SMALL_BUFFER,
    MCPLINK_W_BAD_HEADERS,
#if MCPLINK_MUX
    /* mux.c */
    MCPLINK_W_NO_SLOTS,
    MCPLINK_W_SAME_NAME,
#endif
    /* handshake.c; what the peer is refused for, the three NO_ in the order of enum mcplink_header */
    MCPLINK_W_STATUS,
    MCPLINK_W_NO_UPGRADE,
    MCPLINK_W_NO_CONNECTION,
    MCPLINK_W_NO_ACCEPT,
    MCPLINK_W_WRONG_ACCEPT,
    MCPLINK_W_SUBPROTOCOL,
    MCPLINK_W_EXTENSION,
    MCPLINK_W_LONG_ANSWER,
    MCPLINK_W_NOT_HTTP,
    MCPLINK_W_BAD_ANSWER,
    /* the rest */
    MCPLINK_W_NO_ANSWER,
    MCPLINK_W_SEND_TIMEOUT,
    MCPLINK_W_NO_ENTROPY,
    MCPLINK_W_NO_PONG
};

/* Its text, or that of a rule; "" when texts are left out. */
const char *mcplink_priv_words(unsigned index);
/* The error that a configuration or an answer is refused with; MCPLINK_OK for 0. */
int mcplink_priv_word_error(unsigned word);

/* A bounded text under construction. len counts what was asked for, also beyond
 * cap, so that one check at the end is enough. */
typedef struct mcplink_text {
    char *out;
    size_t cap;
    size_t len;
} mcplink_text;

void mcplink_priv_text_char(mcplink_text *t, char c);
void mcplink_priv_text_bytes(mcplink_text *t, const char *s, size_t len);
void mcplink_priv_text(mcplink_text *t, const char *s);
void mcplink_priv_text_u32(mcplink_text *t, uint32_t v);
void mcplink_priv_text_hex(mcplink_text *t, uint8_t v, const char *digits);
/* Writes the NUL. The length, or MCPLINK_ERR_TOO_LARGE. */
int mcplink_priv_text_end(mcplink_text *t);

extern const char mcplink_priv_hex_lower[];
extern const char mcplink_priv_hex_upper[];

/* The index-th of the NUL-separated texts in packed. Tables of pointers would need
 * relocated data in position-independent builds; the library has none. */
const char *mcplink_priv_nth(const char *packed, unsigned index);

/* Where c first is in len bytes, or len. */
size_t mcplink_priv_find(const char *s, size_t len, char c);

/* Whether a byte passes in a URL segment as it is (RFC 3986 unreserved). */
int mcplink_priv_unreserved(unsigned c);

/* Case-insensitive comparison of len bytes with a NUL-terminated lower-case word. */
int mcplink_priv_word(const char *s, size_t len, const char *word);

#define MCPLINK_SHA1_SIZE 20u
void mcplink_priv_sha1(uint8_t out[MCPLINK_SHA1_SIZE], const void *data, size_t len);

/* Writes the encoding and a NUL. The length, or MCPLINK_ERR_TOO_LARGE. */
int mcplink_priv_base64(char *out, size_t cap, const uint8_t *data, size_t len);

/* Milliseconds from now until deadline, negative when it has passed. */
int32_t mcplink_priv_left(uint32_t deadline, uint32_t now);

/* The same by the port's clock. */
int32_t mcplink_priv_until(const mcplink_port *port, uint32_t deadline);

/* What is left of a call's timeout_ms that ends at until: 0 when it is used up,
 * negative when it has no limit. */
int32_t mcplink_priv_rest(int32_t timeout_ms, uint32_t until, uint32_t now);

/* The shorter of two timeouts where negative means no limit. */
int32_t mcplink_priv_shorter(int32_t a, int32_t b);

/* A configured time, clamped, or its default when it is 0. */
uint32_t mcplink_priv_or_default(uint32_t ms, uint32_t fallback);

uint32_t mcplink_priv_now(const mcplink_port *port);

/* frame.c: forgets a delivered message, so that buf[0..cap) is free. */
void mcplink_priv_frame_release(mcplink_frame_decoder *d);

/* One outgoing frame, written in pieces whose sum is the announced length. */
typedef struct mcplink_out {
    mcplink_ws *ws;
    size_t pos;   /* payload bytes so far */
    size_t fill;
    uint32_t deadline_ms;
    int error;
    uint8_t mask[4];
    uint8_t chunk[MCPLINK_TX_CHUNK];
} mcplink_out;

void mcplink_priv_out_begin(mcplink_out *o, mcplink_ws *ws, uint8_t opcode, size_t len);
void mcplink_priv_out_put(mcplink_out *o, const void *data, size_t len);
/* Sends the rest. A failure has closed the socket. */
int mcplink_priv_out_end(mcplink_out *o);

/* ws.c: ends the socket with an error; sends a close frame first when code is not 0. */
int mcplink_priv_ws_fail(mcplink_ws *ws, int error, uint16_t code);
#if MCPLINK_DETAILS
/* The first account of a failure stands. */
void mcplink_priv_ws_detail(mcplink_ws *ws, unsigned word);
#else
#define mcplink_priv_ws_detail(ws, word) ((void)(ws), (void)(word))
#endif
/* One read of the port; keeps the port's contract. */
int mcplink_priv_ws_recv(mcplink_ws *ws, void *buf, size_t len, int32_t timeout_ms);
/* Sends bytes as they are before the deadline; never MCPLINK_ERR_TIMEOUT. */
int mcplink_priv_ws_write(mcplink_ws *ws, const void *buf, size_t len, uint32_t deadline_ms);

/* Headers the library writes or reads, in the order of their names in check.c. */
enum mcplink_header {
    MCPLINK_H_UPGRADE,
    MCPLINK_H_CONNECTION,
    MCPLINK_H_ACCEPT,
    MCPLINK_H_EXTENSIONS,
    MCPLINK_H_PROTOCOL,
    MCPLINK_H_HOST,
    MCPLINK_H_ORIGIN,
    MCPLINK_H_USER_AGENT,
    MCPLINK_H_OTHER
};
unsigned mcplink_priv_header(const char *name, size_t len);

/* check.c: 0, or the enum mcplink_word of what is wrong. */
unsigned mcplink_priv_fault(const mcplink_port *port, const mcplink_ws_config *config);

/* handshake.c */
int mcplink_priv_request_send(mcplink_ws *ws);
/* Judges what has arrived: MCPLINK_OK when the head is complete and right (rd is
 * behind it), MCPLINK_PENDING, or an error. */
int mcplink_priv_response_read(mcplink_ws *ws);

/* link.c: an event with what all share, and its delivery. */
void mcplink_priv_event(const mcplink_link *link, mcplink_event *event, mcplink_event_type type);
void mcplink_priv_emit(const mcplink_link *link, const mcplink_event *event);

#define MCPLINK_REGISTER "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\"}"
#define MCPLINK_REGISTER_AGGREGATE \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/register\",\"params\":{\"aggregate\":true}}"

#endif
