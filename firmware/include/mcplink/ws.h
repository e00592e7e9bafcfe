/*
 * A WebSocket client over a port: handshake, text messages, ping, close.
 *
 * Any failure closes the port; the socket is then not open and keeps what is
 * known about the failure. One receive buffer serves the HTTP head and the
 * messages, and decodes in place.
 */
#ifndef MCPLINK_WS_H
#define MCPLINK_WS_H

#include "mcplink/frame.h"
#include "mcplink/port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Close codes the library sends or reports. */
enum mcplink_close_code {
    MCPLINK_CLOSE_NORMAL = 1000,
    MCPLINK_CLOSE_PROTOCOL = 1002,
    MCPLINK_CLOSE_UNSUPPORTED = 1003,
    MCPLINK_CLOSE_NO_CODE = 1005,  /* the peer's close frame had no code; never sent */
    MCPLINK_CLOSE_ABNORMAL = 1006, /* the stream ended without a close frame; never sent */
    MCPLINK_CLOSE_NOT_UTF8 = 1007,
    MCPLINK_CLOSE_POLICY = 1008,   /* the broker refused the slot */
    MCPLINK_CLOSE_TOO_LARGE = 1009
};

/* Defaults and bounds: see mcplink_link_config, which has the same fields. All
 * pointers must stay valid while the socket is used. */
typedef struct mcplink_ws_config {
    const char *host;
    uint16_t port;               /* 0 = 80, or 443 with tls */
    int tls;
    const char *path;            /* starts with '/', sent as it is */
    const char *segment;         /* NULL, or a text appended to path as '/' and one percent-encoded segment */
    const char *extra_headers;   /* NULL, or `Name: value` lines, each ending in CRLF */
    uint32_t connect_timeout_ms; /* 0 = 10000 */
    uint32_t handshake_timeout_ms; /* 0 = 5000 */
    uint32_t send_timeout_ms;    /* 0 = 5000; for one whole frame */
    void *rx_buffer;             /* also the largest message */
    size_t rx_capacity;          /* at least MCPLINK_RX_MIN */
} mcplink_ws_config;

typedef enum mcplink_ws_state {
    MCPLINK_WS_CLOSED = 0,
    MCPLINK_WS_CONNECTING, /* the port's open goes on */
    MCPLINK_WS_HANDSHAKE,  /* waiting for the HTTP answer */
    MCPLINK_WS_OPEN
} mcplink_ws_state;

/* The large members are last, here and below: small offsets make small code. */
typedef struct mcplink_ws {
    /* Readable by anyone. */
    uint8_t state;              /* mcplink_ws_state */
    uint16_t http_status;       /* of the answer to the handshake, 0 when none came */
    uint16_t close_code;        /* after MCPLINK_ERR_CLOSED: the peer's code, 1005 or 1006; else 0 */
    uint32_t last_rx_ms;        /* when bytes last arrived */

    /* Private. */
    uint8_t head_seen;          /* what the HTTP head has shown so far */
    const mcplink_port *port;
    size_t rd, wr;              /* rx_buffer[rd..wr) has arrived and is not decoded */
    uint32_t deadline_ms;       /* of the connect or of the handshake */
    mcplink_ws_config config;
    mcplink_frame_decoder decoder;

    /* Readable by anyone. */
    char detail[MCPLINK_DETAIL_SIZE]; /* the library's own account of what it refused, or "" */
} mcplink_ws;

/* mcplink_ws_check judges a configuration without opening anything: MCPLINK_OK,
 * MCPLINK_ERR_ARG or MCPLINK_ERR_TOO_LARGE. *why, when why is not NULL, is a static
 * text that names the field.
 *
 * Refused: an empty host, one over MCPLINK_HOST_MAX or with characters no host
 * has; a path without a leading '/' or with anything but visible ASCII; an empty
 * segment or one over MCPLINK_NAME_MAX; a receive buffer under MCPLINK_RX_MIN;
 * extra headers with a bare CR or LF, an empty line, a control character, without
 * the final CRLF, or with a header the library writes (Host, Upgrade, Connection,
 * Origin, User-Agent, Sec-WebSocket-*). */
MCPLINK_API int mcplink_ws_check(const mcplink_ws_config *config, const char **why);

/* mcplink_ws_open connects and shakes hands, for at most connect_timeout_ms +
 * handshake_timeout_ms. The configuration is copied, its pointers are kept.
 *
 * Returns MCPLINK_OK or: ARG; what the port's open returned; TIMEOUT; HANDSHAKE (an
 * answer other than 101, see http_status, or a 101 without the right
 * Sec-WebSocket-Accept, Upgrade and Connection, or with a subprotocol);
 * UNSUPPORTED (an extension); PROTOCOL (not HTTP/1.1); TOO_LARGE (the head does not
 * fit the buffer); TRANSPORT; CLOSED. Redirections are not followed. */
MCPLINK_API int mcplink_ws_open(mcplink_ws *ws, const mcplink_port *port, const mcplink_ws_config *config);

#define MCPLINK_PENDING 1

/* The same in steps. mcplink_ws_begin only prepares. mcplink_ws_step blocks for
 * at most timeout_ms (sending the request aside: send_timeout_ms) and returns
 * MCPLINK_OK when open, MCPLINK_PENDING when to be called again, or an error as
 * above. */
MCPLINK_API int mcplink_ws_begin(mcplink_ws *ws, const mcplink_port *port, const mcplink_ws_config *config);
MCPLINK_API int mcplink_ws_step(mcplink_ws *ws, int32_t timeout_ms);

/* mcplink_ws_send sends one masked text frame. data is not modified and may be
 * NULL when len is 0. Returns MCPLINK_OK, STATE when not open, ARG, or the failure
 * that closed the socket: TRANSPORT (a send out of time too, see detail), CLOSED,
 * TLS. Never TIMEOUT. */
MCPLINK_API int mcplink_ws_send(mcplink_ws *ws, const void *data, size_t len);

/* mcplink_ws_ping sends a ping with an empty payload. Errors as send. */
MCPLINK_API int mcplink_ws_ping(mcplink_ws *ws);

/* mcplink_ws_receive waits for one text message. Pings are answered, pongs
 * consumed; the deadline is for the call. With timeout 0 the port is read once.
 *
 * MCPLINK_OK: *data points into the receive buffer, is not NUL-terminated and
 * stays valid until the next receive or close. MCPLINK_ERR_TIMEOUT: nothing is
 * lost, wherever in a frame the time ran out. STATE when not open. Any other
 * error has closed the socket: CLOSED (close_code, mcplink_ws_reason), PROTOCOL,
 * UNSUPPORTED, TOO_LARGE (detail), TRANSPORT. */
MCPLINK_API int mcplink_ws_receive(mcplink_ws *ws, const char **data, size_t *len, int32_t timeout_ms);

/* mcplink_ws_close sends a close frame with this code when the socket is open (0 =
 * none is sent) and closes the port. It does not wait for the peer's. */
MCPLINK_API void mcplink_ws_close(mcplink_ws *ws, uint16_t code);

/* mcplink_ws_reason is the peer's close reason, "" when there is none. Valid
 * until the next begin or open. */
MCPLINK_API const char *mcplink_ws_reason(const mcplink_ws *ws);

#ifdef __cplusplus
}
#endif

#endif
