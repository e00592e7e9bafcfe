/* A telemetry span for one call, as the broker's exporter takes it. */
#ifndef SPAN_H
#define SPAN_H

#include <stddef.h>
#include <stdint.h>

#include "mcp_surface.h"
#include "mcplink/port.h"

/* Nanoseconds since 1970. */
uint64_t span_clock(void);

/* span_notification writes the broker/telemetry notification about the tools/call
 * that surface handled last, a child of the traceparent it came with. It returns the
 * length, or 0: it was no such call, came without a valid traceparent, or does not
 * fit. */
size_t span_notification(const mcp_surface *surface, const mcplink_port *port, uint64_t start, char *out, size_t cap);

#endif
