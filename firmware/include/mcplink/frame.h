/*
 * RFC 6455 frames as a client sees them: a push decoder for what the server
 * sends and a header encoder for what the client sends. No I/O, no clock.
 *
 * The decoder takes bytes in pieces of any size; every split of the same bytes
 * gives the same events, payloads and errors. Errors are sticky. The first two
 * header bytes are judged before more are taken.
 */
#ifndef MCPLINK_FRAME_H
#define MCPLINK_FRAME_H

#include "mcplink/mcplink.h"

#ifdef __cplusplus
extern "C" {
#endif

enum mcplink_opcode {
    MCPLINK_OP_CONTINUATION = 0x0,
    MCPLINK_OP_TEXT = 0x1,
    MCPLINK_OP_BINARY = 0x2,
    MCPLINK_OP_CLOSE = 0x8,
    MCPLINK_OP_PING = 0x9,
    MCPLINK_OP_PONG = 0xA
};

/* Results of mcplink_frame_feed that are not errors. */
enum mcplink_frame_event {
    MCPLINK_FRAME_MORE = 0,    /* all input taken, nothing complete yet */
    MCPLINK_FRAME_MESSAGE = 1, /* buf[0..len) is a whole text message */
    MCPLINK_FRAME_PING = 2,    /* control[0..control_len) is to be echoed in a pong */
    MCPLINK_FRAME_PONG = 3,
    MCPLINK_FRAME_CLOSE = 4    /* close_code, and the reason mcplink_frame_reason */
};

/* Which rule an error broke; index of the detail text. */
enum mcplink_frame_rule {
    MCPLINK_RULE_NONE = 0,
    MCPLINK_RULE_RSV,             /* a reserved bit is set */
    MCPLINK_RULE_MASKED,          /* a server frame is masked */
    MCPLINK_RULE_OPCODE,          /* a reserved opcode */
    MCPLINK_RULE_BINARY,          /* a binary frame */
    MCPLINK_RULE_ORPHAN,          /* a continuation without a start */
    MCPLINK_RULE_INTERLEAVED,     /* a data frame inside a fragmented message */
    MCPLINK_RULE_CONTROL_SIZE,    /* a control frame over 125 bytes */
    MCPLINK_RULE_CONTROL_FRAGMENT,/* a control frame without FIN */
    MCPLINK_RULE_LENGTH_SIGN,     /* a 64-bit length with its top bit set */
    MCPLINK_RULE_LENGTH_FORM,     /* a length not in its shortest form */
    MCPLINK_RULE_TOO_LARGE,       /* a message larger than the buffer */
    MCPLINK_RULE_CLOSE_SIZE,      /* a close payload of one byte */
    MCPLINK_RULE_CLOSE_CODE,      /* a close code nobody may send */
    MCPLINK_RULE_UTF8             /* text or a close reason that is not UTF-8 */
};

typedef struct mcplink_frame_decoder {
    uint8_t *buf;                  /* the caller's, for messages */
    size_t cap;
    size_t len;                    /* bytes of the message assembled so far */
    size_t left;                   /* payload bytes of the current frame still to come */
    uint8_t head[10];              /* header of the current, or the refused, frame */
    uint8_t head_len;
    uint8_t head_need;
    uint8_t in_payload;            /* private, as the next four */
    uint8_t in_message;
    uint8_t delivered;
    uint8_t utf8_need;             /* continuation bytes still to come */
    uint8_t utf8_lead;             /* the byte before, when it was the first of a character */
    uint8_t rule;                  /* enum mcplink_frame_rule of the error */
    uint8_t control_len;
    uint16_t close_code;           /* of a close frame, 1005 when it has none */
    uint16_t reply_code;           /* after an error: the close code to send */
    int error;                     /* sticky: 0, or what feed returned */
    uint8_t control[MCPLINK_CONTROL_MAX + 1]; /* payload of a control frame, and a NUL */
} mcplink_frame_decoder;

/* mcplink_frame_init starts a stream. buf must outlive the decoder; a message
 * may have exactly cap bytes. */
MCPLINK_API void mcplink_frame_init(mcplink_frame_decoder *d, void *buf, size_t cap);

/* mcplink_frame_feed takes up to len bytes and stops after the byte that
 * completes an event. *used is the number taken. A message stays valid until the
 * next call. data may lie inside buf at or after buf + len: payload is moved down.
 *
 * Returns an event, or PROTOCOL, UNSUPPORTED (binary), TOO_LARGE; rule and
 * reply_code then say more. After a close frame it returns MCPLINK_ERR_CLOSED. */
MCPLINK_API int mcplink_frame_feed(mcplink_frame_decoder *d, const void *data, size_t len, size_t *used);

/* mcplink_frame_want is how many bytes the decoder can take without passing the
 * end of a header or of a frame; at least 1. */
MCPLINK_API size_t mcplink_frame_want(const mcplink_frame_decoder *d);

/* mcplink_frame_reason is the text of a close frame, NUL-terminated, "" when
 * there is none. Valid until the next call. */
MCPLINK_API const char *mcplink_frame_reason(const mcplink_frame_decoder *d);

/* mcplink_frame_detail writes the broken rule and the two header bytes in hex,
 * such as "reserved bit set, header c1 05", and a NUL; "" without an error. */
MCPLINK_API void mcplink_frame_detail(const mcplink_frame_decoder *d, char out[MCPLINK_DETAIL_SIZE]);

#define MCPLINK_FRAME_HEADER_MAX 14u

/* mcplink_frame_header writes the header of an unfragmented masked frame, with
 * the shortest form of the length, and returns its size, 6 to 14. */
MCPLINK_API size_t mcplink_frame_header(uint8_t out[MCPLINK_FRAME_HEADER_MAX], uint8_t opcode, uint64_t len,
                                        const uint8_t mask[4]);

/* mcplink_frame_mask masks len bytes; offset is their place in the payload.
 * dst and src may be the same. */
MCPLINK_API void mcplink_frame_mask(uint8_t *dst, const uint8_t *src, size_t len, const uint8_t mask[4],
                                    size_t offset);

#ifdef __cplusplus
}
#endif

#endif
