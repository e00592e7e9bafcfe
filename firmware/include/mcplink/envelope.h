/*
 * The envelope of a multiplexed socket: {"provider":"<slot>","payload":<message>}.
 * This is the only place where the library looks into JSON.
 */
#ifndef MCPLINK_ENVELOPE_H
#define MCPLINK_ENVELOPE_H

#include "mcplink/mcplink.h"

#if !MCPLINK_MUX
#error "mcplink/envelope.h needs MCPLINK_MUX: build the library and this file with -DMCPLINK_MUX=1"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcplink_envelope {
    const char *name;    /* the slot as spelled, between its quotes; compare with mcplink_envelope_is */
    size_t name_len;     /* at least 1 */
    const char *payload; /* one JSON value */
    size_t payload_len;
} mcplink_envelope;

typedef struct mcplink_tunnel_error {
    int32_t code;         /* -32000 unavailable, -32001 forbidden */
    const char *message;  /* as spelled, between its quotes; see mcplink_json_unescape. "" when there is none */
    size_t message_len;
} mcplink_tunnel_error;

/* mcplink_envelope_encode writes an envelope and a NUL. slot is NUL-terminated
 * UTF-8 and gets escaped; payload is copied as it is. Returns the length without
 * the NUL, ARG (NULL, empty slot or payload) or TOO_LARGE. */
MCPLINK_API int mcplink_envelope_encode(char *out, size_t cap, const char *slot, const char *payload, size_t len);

/* mcplink_envelope_register is mcplink_envelope_encode of the registration:
 * {"jsonrpc":"2.0","method":"notifications/register"}, with
 * ,"params":{"aggregate":true} when aggregate is nonzero. */
MCPLINK_API int mcplink_envelope_register(char *out, size_t cap, const char *slot, int aggregate);

/* mcplink_envelope_decode locates name and payload in one JSON object: members in
 * any order, unknown ones skipped, the last of equal ones counts, nothing may
 * follow the object but blanks. Values are found by a balanced scan that respects
 * strings; they are not parsed. The result points into text. Returns MCPLINK_OK or
 * MCPLINK_ERR_NOT_ENVELOPE. */
MCPLINK_API int mcplink_envelope_decode(const char *text, size_t len, mcplink_envelope *out);

/* mcplink_envelope_error reports whether a payload is a tunnel error (id null or
 * absent, error.code an integer) and locates it. Returns 1 or 0. */
MCPLINK_API int mcplink_envelope_error(const char *payload, size_t len, mcplink_tunnel_error *out);

/* mcplink_envelope_is compares a name as spelled in JSON with a C string: escapes
 * are decoded, surrogate pairs included. Returns 1 or 0. */
MCPLINK_API int mcplink_envelope_is(const char *name, size_t len, const char *slot);

/* mcplink_json_unescape decodes the escapes of a JSON string in place, without its
 * quotes, and returns the new length, never more than len. A lone surrogate
 * becomes U+FFFD. No NUL is written. */
MCPLINK_API size_t mcplink_json_unescape(char *text, size_t len);

#ifdef __cplusplus
}
#endif

#endif
