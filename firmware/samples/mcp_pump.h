/* The pump part of the MCP surface: its tools and its resource. Internal to
 * mcp_surface.c. */
#ifndef MCP_PUMP_H
#define MCP_PUMP_H

#include "mcp_surface.h"
#include "text_out.h"

/* Definitions as they stand in tools/list, after the one of echo. */
extern const char mcp_pump_tools[];

bool mcp_pump_is(const char *name);

/* mcp_pump_call writes the result of a tool. False: it is no tool of a pump. */
bool mcp_pump_call(mcp_surface *s, json_span arguments, text_out *out);

typedef enum mcp_pump_outcome {
    MCP_PUMP_RESULT,    /* out has the result */
    MCP_PUMP_NO_METHOD, /* not a method of resources */
    MCP_PUMP_NO_RESOURCE
} mcp_pump_outcome;

/* mcp_pump_resource answers resources/list, read, subscribe and unsubscribe. */
mcp_pump_outcome mcp_pump_resource(mcp_surface *s, json_span method, json_span params, text_out *out);

#endif
