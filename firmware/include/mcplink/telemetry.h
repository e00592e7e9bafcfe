/*
 * Spans for the broker's exporter. Send the result like any message, only while
 * connected and never ahead of replies; the broker answers nothing.
 */
#ifndef MCPLINK_TELEMETRY_H
#define MCPLINK_TELEMETRY_H

#include "mcplink/mcplink.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mcplink_telemetry_encode wraps one serialized span object and writes a NUL:
 *
 *   {"jsonrpc":"2.0","method":"broker/telemetry","params":{"version":1,"signal":"traces","span":<span>}}
 *
 * span is trimmed, must then start with '{' and end with '}', and is not parsed.
 * The broker wants traceId, spanId, name, startTimeUnixNano and endTimeUnixNano
 * (decimal strings), and takes parentSpanId, kind, attributes (64), events (32),
 * status. Returns the length without the NUL, ARG, or TOO_LARGE: more than cap or
 * than MCPLINK_SPAN_MAX. */
MCPLINK_API int mcplink_telemetry_encode(char *out, size_t cap, const char *span, size_t len);

#ifdef __cplusplus
}
#endif

#endif
