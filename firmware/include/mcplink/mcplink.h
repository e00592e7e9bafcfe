/*
 * mcplink: the device side of the broker's tunnel, in C99.
 *
 * A device is a provider: it dials the broker over WebSocket, claims a slot and
 * carries JSON-RPC text both ways. The library carries bytes; it holds no JSON
 * parser and no MCP server.
 *
 *   port.h         what the system has to supply: seven functions
 *   provider.h     one slot on /provider/<name>
 *   mux.h          several slots on one socket, /providers (MCPLINK_MUX)
 *   link.h         events, retry and keepalive settings of both
 *   telemetry.h    wraps a span in a broker/telemetry notification
 *   traceparent.h  W3C trace context
 *   frame.h, ws.h, envelope.h   the layers below, usable alone
 *
 * Everything lives in structs of the caller. The library allocates nothing, has
 * no writable globals, starts no thread and takes no lock: one link belongs to
 * one task. Two links share nothing.
 *
 * All times are milliseconds. All texts are UTF-8. A function that returns int
 * gives 0 or a positive count on success and a negative mcplink_err otherwise.
 */
#ifndef MCPLINK_MCPLINK_H
#define MCPLINK_MCPLINK_H

#include <stddef.h>
#include <stdint.h>

#define MCPLINK_VERSION_MAJOR 0
#define MCPLINK_VERSION_MINOR 1
#define MCPLINK_VERSION_PATCH 0
#define MCPLINK_VERSION "0.1.0"

/* Build options; the library and its users must agree on MCPLINK_MUX only. No
 * option changes the layout of a struct. */

/* Multiplexed providers (mux.h, envelope.h). 0 leaves them out. */
#ifndef MCPLINK_MUX
#define MCPLINK_MUX 1
#endif

/* Refuse text that is not UTF-8 with close code 1007. 0 leaves the check out. */
#ifndef MCPLINK_CHECK_UTF8
#define MCPLINK_CHECK_UTF8 1
#endif

/* Texts for `detail`. 0 leaves them out, about 1 KB; error, HTTP status and
 * close codes remain. */
#ifndef MCPLINK_DETAILS
#define MCPLINK_DETAILS 1
#endif

/* Bytes of stack in which outgoing payload is masked. A message that fits with
 * its header leaves in one call of the port's send. At least 32. */
#ifndef MCPLINK_TX_CHUNK
#define MCPLINK_TX_CHUNK 256
#endif

/* MCPLINK_API marks what a shared library exports; empty for a static one. */
#if defined(_WIN32) && defined(MCPLINK_BUILD_DLL)
#define MCPLINK_API __declspec(dllexport)
#elif defined(_WIN32) && defined(MCPLINK_USE_DLL)
#define MCPLINK_API __declspec(dllimport)
#elif defined(MCPLINK_BUILD_DLL)
#define MCPLINK_API __attribute__((visibility("default")))
#else
#define MCPLINK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Limits. */
#define MCPLINK_NAME_MAX 64u         /* bytes of a slot name, before it is encoded; more is TOO_LARGE at init */
#define MCPLINK_HOST_MAX 253u        /* bytes of a host */
#define MCPLINK_RX_MIN 256u          /* bytes of a receive buffer: it also holds the head of the HTTP answer */
#define MCPLINK_CONTROL_MAX 125u     /* bytes of a control frame's payload (RFC 6455) */
#define MCPLINK_REASON_MAX 123u      /* bytes of a close reason */
#define MCPLINK_DETAIL_SIZE 64u      /* a detail text and its NUL */
#define MCPLINK_TIME_MAX 3600000u    /* the longest timeout or retry window: one hour; more is clamped */
#define MCPLINK_SPAN_MAX 65536u      /* bytes of one telemetry notification */

/* Timeout and closed are separate on purpose: who mixes them waits where it
 * should reconnect. */
typedef enum mcplink_err {
    MCPLINK_OK = 0,
    MCPLINK_ERR_ARG = -1,           /* an argument or a configuration is wrong; nothing was done */
    MCPLINK_ERR_TIMEOUT = -2,       /* nothing in time; the link, if there was one, is as it was */
    MCPLINK_ERR_CLOSED = -3,        /* the peer closed */
    MCPLINK_ERR_TRANSPORT = -4,     /* the network failed, or the port has no entropy */
    MCPLINK_ERR_PROTOCOL = -5,      /* the peer broke RFC 6455 or HTTP */
    MCPLINK_ERR_TOO_LARGE = -6,     /* larger than the buffer or a limit */
    MCPLINK_ERR_HANDSHAKE = -7,     /* the server answered and did not open a WebSocket */
    MCPLINK_ERR_STATE = -8,         /* not connected, or stopped */
    MCPLINK_ERR_UNSUPPORTED = -9,   /* valid, and not supported: binary frames, extensions, TLS without a TLS port */
    MCPLINK_ERR_TLS = -10,          /* TLS handshake failed or the certificate was refused */
    MCPLINK_ERR_NOT_ENVELOPE = -11  /* multiplex: one frame was no envelope and was dropped; the link is up */
} mcplink_err;

/* mcplink_strerror is an English phrase for a code; there is one for unknown
 * codes too. Never NULL, static. */
MCPLINK_API const char *mcplink_strerror(int err);

/* mcplink_url_encode percent-encodes a NUL-terminated text as one path segment:
 * RFC 3986 unreserved characters pass, everything else becomes %XX in upper
 * case. Writes a NUL. Returns the length without it, MCPLINK_ERR_ARG or
 * MCPLINK_ERR_TOO_LARGE. */
MCPLINK_API int mcplink_url_encode(char *out, size_t cap, const char *text);

#ifdef __cplusplus
}
#endif

#endif
