/*
 * The link engine that provider.h and mux.h share: connect, retry with a random
 * wait, keep alive, notice a dead peer, report. Applications need the event and
 * the configuration types of this file; the functions are for whoever writes
 * another framing on top.
 */
#ifndef MCPLINK_LINK_H
#define MCPLINK_LINK_H

#include "mcplink/ws.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Events are delivered synchronously inside poll or send, before any wait. The
 * callback must not call the library for this link. */
typedef enum mcplink_event_type {
    MCPLINK_EVENT_CONNECTED = 1, /* handshake and registration done; a refused slot still ends with 1008 */
    MCPLINK_EVENT_DISCONNECTED,  /* the link was up and is lost */
    MCPLINK_EVENT_RETRY_FAILED,  /* an attempt failed; the link was down already */
    MCPLINK_EVENT_SLOT_REFUSED   /* multiplex: one slot was refused, the link stays */
} mcplink_event_type;

/* Texts are never NULL, NUL-terminated and valid during the callback. Three
 * accounts stand side by side: error is the kind, http_status, close_code and
 * reason are the peer's words, detail is the library's own. */
typedef struct mcplink_event {
    mcplink_event_type type;
    int error;               /* mcplink_err; MCPLINK_OK with CONNECTED */
    uint32_t at_ms;          /* port time */
    uint32_t next_retry_ms;  /* the wait that was drawn; 0 with CONNECTED. SLOT_REFUSED: until the next registration */
    uint32_t window_ms;      /* the window it was drawn from */
    uint32_t next_window_ms; /* the window of the failure after this one */
    uint32_t attempts;       /* failures in a row, this one included, since a link last proved itself */
    uint32_t down_ms;        /* CONNECTED: how long the link was down; the first time since init */
    uint32_t connects;       /* CONNECTED: how often the link came up, this one included */
    uint16_t close_code;     /* with MCPLINK_ERR_CLOSED: the peer's, 1005 none, 1006 no close frame; else 0 */
    uint16_t http_status;    /* with MCPLINK_ERR_HANDSHAKE: what the server answered; else 0 */
    const char *reason;      /* the peer's close reason; SLOT_REFUSED: its message, unescaped */
    const char *detail;
    const char *slot;        /* SLOT_REFUSED: the name; else "" */
    int32_t rpc_code;        /* SLOT_REFUSED: -32000 unavailable, registered again after next_retry_ms; any other,
                                such as -32001 forbidden, is left until the next connection, next_retry_ms is 0 */
} mcplink_event;

typedef void (*mcplink_event_fn)(void *user, const mcplink_event *event);

/* mcplink_event_format writes one line without a newline, and a NUL:
 *
 *   event CONNECTED down_ms=12 connects=1
 *   event DISCONNECTED error="closed by the peer" code=1008 reason="..." detail="..." next_retry_ms=733
 *   event RETRY_FAILED error="..." http_status=401 detail="..." attempts=3 next_retry_ms=512
 *   event SLOT_REFUSED slot="..." rpc_code=-32000 reason="..."
 *
 * code, reason, http_status and detail appear only when there is something to
 * say. In quoted texts `"` and `\` are escaped with a backslash and control
 * characters written as \xNN, so that a peer cannot forge a line. Returns the
 * length; a line that does not fit is cut. 512 bytes are always enough for the
 * first three kinds unless a text is full of control characters. */
MCPLINK_API int mcplink_event_format(const mcplink_event *event, char *out, size_t cap);

/* Keepalive off, for ping_interval_ms. */
#define MCPLINK_PING_OFF UINT32_MAX

/* Zero means the default everywhere. Times over MCPLINK_TIME_MAX are clamped to
 * it. The struct is copied, what it points to must outlive the link. */
typedef struct mcplink_link_config {
    const char *host;              /* name, IPv4 or IPv6 literal (without brackets); required */
    uint16_t port;                 /* 0 = 80, or 443 with tls */
    int tls;                       /* nonzero: wss, by a port that can */
    const char *extra_headers;     /* `X-Provider-Token: secret\r\n`; rules at mcplink_ws_check */
    uint32_t connect_timeout_ms;   /* default 10000 */
    uint32_t handshake_timeout_ms; /* default 5000 */
    uint32_t send_timeout_ms;      /* default 5000; one whole frame */
    uint32_t retry_initial_ms;     /* default 1000; first window */
    uint32_t retry_max_ms;         /* default 30000; raised to retry_initial_ms when smaller */
    int retry_no_jitter;           /* nonzero: always wait the whole window; devices then return all at once */
    uint32_t ping_interval_ms;     /* default 30000; MCPLINK_PING_OFF = no pings and no liveness check */
    uint32_t pong_timeout_ms;      /* default 2 * ping_interval_ms. The link is dropped when nothing at all arrived
                                      for so long and a ping has been out for half of it */
    int stepwise;                  /* nonzero: poll never blocks longer than its timeout (+ send_timeout_ms) while
                                      connecting; the port's open is then called repeatedly, see port.h. Zero: one
                                      poll may block connect_timeout_ms + handshake_timeout_ms */
    void *rx_buffer;               /* required; a larger message ends the link with 1009 */
    size_t rx_capacity;            /* at least MCPLINK_RX_MIN */
    mcplink_event_fn on_event;     /* may be NULL */
    void *event_user;
} mcplink_link_config;

typedef enum mcplink_link_state {
    MCPLINK_LINK_IDLE = 0,   /* never started, or stopped */
    MCPLINK_LINK_WAITING,    /* down, an attempt is scheduled */
    MCPLINK_LINK_CONNECTING, /* inside a stepwise attempt */
    MCPLINK_LINK_CONNECTED
} mcplink_link_state;

typedef struct mcplink_link mcplink_link;

/* Called after each handshake, before CONNECTED; anything but MCPLINK_OK fails
 * the attempt. */
typedef int (*mcplink_open_hook)(mcplink_link *link);

struct mcplink_link {
    /* Readable by anyone. Counters wrap. */
    uint8_t state;           /* mcplink_link_state */
    uint32_t connects;
    uint32_t disconnects;
    uint32_t messages_in;    /* handed to the application */
    uint32_t messages_out;   /* sent by the application; registrations are not counted */
    uint32_t attempts;       /* failures in a row since a link last proved itself */
    uint32_t window_ms;      /* the window of the next failure */

    /* Private. */
    uint8_t proven;          /* the link carried a message or lasted */
    uint8_t ping_out;        /* a ping is unanswered, by any byte at all */
    const mcplink_port *port;
    mcplink_open_hook hook;
    uint32_t due_ms;         /* next attempt */
    uint32_t up_ms;          /* since when connected */
    uint32_t down_since_ms;
    uint32_t last_ping_ms;
    uint32_t ping_out_ms;    /* when the oldest unanswered ping left */
    mcplink_link_config config;
    mcplink_ws ws;
};

/* A link proves itself with the first message for the application or after this
 * long; only then do the window and the attempts return to their floor. */
#define MCPLINK_PROVEN_MS 5000u

/* mcplink_link_init checks, copies, applies defaults and clamps; it opens nothing.
 * The first attempt is due at once. path and segment as in mcplink_ws_config; hook
 * may be NULL. Returns MCPLINK_OK, ARG or TOO_LARGE; mcplink_link_detail says what
 * is wrong. */
MCPLINK_API int mcplink_link_init(mcplink_link *link, const mcplink_port *port, const mcplink_link_config *config,
                                  const char *path, const char *segment, mcplink_open_hook hook);

/* mcplink_link_poll does one step; see mcplink_provider_poll. A received message
 * does not count for the proof until mcplink_link_accept. */
MCPLINK_API int mcplink_link_poll(mcplink_link *link, const char **data, size_t *len, int32_t timeout_ms);

/* mcplink_link_accept counts a message as handed to the application and proves
 * the link. */
MCPLINK_API void mcplink_link_accept(mcplink_link *link);

/* mcplink_link_send sends one text frame; see mcplink_provider_send. */
MCPLINK_API int mcplink_link_send(mcplink_link *link, const void *data, size_t len);

/* mcplink_link_drop ends a link that is up: DISCONNECTED with this error, and a
 * retry is scheduled. */
MCPLINK_API void mcplink_link_drop(mcplink_link *link, int error);

/* mcplink_link_stop closes with 1000 and goes idle; no event. */
MCPLINK_API void mcplink_link_stop(mcplink_link *link);

/* mcplink_link_detail is the library's own account of the last refusal, that of
 * init included; "" when there is none. Valid until the next call. */
MCPLINK_API const char *mcplink_link_detail(const mcplink_link *link);

/* mcplink_link_draw draws uniformly from [low, high]; high when the port has no
 * entropy. */
MCPLINK_API uint32_t mcplink_link_draw(const mcplink_link *link, uint32_t low, uint32_t high);

#ifdef __cplusplus
}
#endif

#endif
