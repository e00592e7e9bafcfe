/*
 * The port: everything mcplink needs from the system it runs on.
 *
 * One port serves one connection. Its functions are called from the task that
 * calls the library, never two at a time.
 *
 * Timeouts: 0 = do not block, negative = no limit. The library itself never
 * passes a negative timeout to open or send; it does to recv when the caller of
 * poll asked for it.
 *
 * Errors are negative mcplink_err codes.
 */
#ifndef MCPLINK_PORT_H
#define MCPLINK_PORT_H

#include "mcplink/mcplink.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcplink_port {
    /* open resolves and connects. tls != 0 must be honoured or refused with
     * MCPLINK_ERR_UNSUPPORTED, never downgraded. host is a name, an IPv4 or an
     * IPv6 literal without brackets. Returns 0, MCPLINK_ERR_TIMEOUT,
     * MCPLINK_ERR_TLS, MCPLINK_ERR_TRANSPORT or MCPLINK_ERR_UNSUPPORTED.
     *
     * With link config `stepwise`, MCPLINK_ERR_TIMEOUT means "still connecting":
     * open is called again with the same arguments and goes on, or close is
     * called and gives up. A port that cannot do that starts anew each time.
     * Without `stepwise`, close follows every failure. */
    int (*open)(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms);

    /* send writes all len bytes or fails. Returns len, or an error: part of the
     * bytes may then be on their way, and the library closes. */
    int (*send)(void *ctx, const void *buf, size_t len, int32_t timeout_ms);

    /* recv returns 1..len bytes as soon as there are any, MCPLINK_ERR_TIMEOUT,
     * MCPLINK_ERR_CLOSED (end of stream), or another error. Never 0. */
    int (*recv)(void *ctx, void *buf, size_t len, int32_t timeout_ms);

    /* close ends the connection, or an open in progress. Idempotent; called on
     * a port that was never open too. */
    void (*close)(void *ctx);

    /* now_ms is a monotonic clock of any epoch. It wraps; only differences
     * below 2^31 ms are used. */
    uint32_t (*now_ms)(void *ctx);

    /* random fills buf with unpredictable bytes and returns 0, or fails: without
     * entropy nothing is sent, since keys and masks are never derived from
     * anything else. */
    int (*random)(void *ctx, void *buf, size_t len);

    /* sleep_ms (may be NULL) passes the time while the link is down and the next
     * attempt is not due. Without it poll returns at once, and the caller's loop
     * has to wait by itself. */
    void (*sleep_ms)(void *ctx, uint32_t ms);

    void *ctx; /* passed to all of them */
} mcplink_port;

/* mcplink_port_check returns MCPLINK_OK, or MCPLINK_ERR_ARG when the port or one
 * of the six required functions is NULL. */
MCPLINK_API int mcplink_port_check(const mcplink_port *port);

#ifdef __cplusplus
}
#endif

#endif
