/*
 * W3C trace context, version 00. The broker puts one into params._meta.traceparent
 * of every request. Ids for new spans come from the application's random source.
 */
#ifndef MCPLINK_TRACEPARENT_H
#define MCPLINK_TRACEPARENT_H

#include "mcplink/mcplink.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MCPLINK_TRACEPARENT_LEN 55u

typedef struct mcplink_traceparent {
    uint8_t trace_id[16];
    uint8_t parent_id[8];
    uint8_t flags; /* bit 0: sampled */
} mcplink_traceparent;

/* mcplink_traceparent_parse takes exactly 55 characters, 00-<32>-<16>-<2> in
 * lower-case hex, with neither id all zero. Returns MCPLINK_OK, ARG, or
 * MCPLINK_ERR_PROTOCOL and leaves *out alone. */
MCPLINK_API int mcplink_traceparent_parse(mcplink_traceparent *out, const char *text, size_t len);

/* mcplink_traceparent_format writes 55 characters and a NUL. Returns 55, or
 * MCPLINK_ERR_ARG when an id is all zero, or MCPLINK_ERR_TOO_LARGE when cap is under
 * 56. */
MCPLINK_API int mcplink_traceparent_format(char *out, size_t cap, const mcplink_traceparent *in);

#ifdef __cplusplus
}
#endif

#endif
