#include "mcp_surface.h"

#include "mcp_pump.h"
#include "text_out.h"

#define DEFAULT_REVISION "\"2025-06-18\""
#define SERVER_VERSION "1.0"

static const json_span none = {"", 0};

void mcp_surface_init(mcp_surface *s, const char *name)
{
    s->name = name;
    s->speed_rpm = 0;
    s->calls = 0;
    s->tool = none;
    s->traceparent = none;
    mcp_surface_connected(s);
}

void mcp_surface_connected(mcp_surface *s)
{
    s->subscribed = false;
    s->updated = false;
}

static void put_span(text_out *out, json_span span) { text_bytes(out, span.at, span.len); }

static void put_error(text_out *out, int32_t code, const char *message)
{
    text_put(out, ",\"error\":{\"code\":");
    text_signed(out, code);
    text_put(out, ",\"message\":\"");
    text_json(out, message);
    text_put(out, "\"}");
}

static void begin_reply(text_out *out, json_span id)
{
    text_put(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (id.len == 0) {
        text_put(out, "null");
    } else {
        put_span(out, id);
    }
}

static int32_t refuse(char *at, size_t cap, json_span id, int32_t code, const char *message)
{
    text_out out;

    text_begin(&out, at, cap);
    begin_reply(&out, id);
    put_error(&out, code, message);
    text_put(&out, "}");
    return out.full ? MCP_SURFACE_NO_ROOM : (int32_t)out.len;
}

static void put_initialize(const mcp_surface *s, json_span params, text_out *out)
{
    json_span revision;

    text_put(out, ",\"result\":{\"protocolVersion\":");
    if (json_member(params, "protocolVersion", &revision) && json_is_string(revision)) {
        put_span(out, revision);
    } else {
        text_put(out, DEFAULT_REVISION);
    }
    text_put(out, ",\"capabilities\":{\"tools\":{}");
    if (mcp_pump_is(s->name)) {
        text_put(out, ",\"resources\":{\"subscribe\":true}");
    }
    text_put(out, "},\"serverInfo\":{\"name\":\"");
    text_json(out, s->name);
    text_put(out, "\",\"version\":\"" SERVER_VERSION "\"}}");
}

static void put_tools(const mcp_surface *s, text_out *out)
{
    text_put(out, ",\"result\":{\"tools\":[{\"name\":\"echo\",\"description\":\"Returns its text after the name of the "
                  "device.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
                  "\"required\":[\"text\"]}}");
    if (mcp_pump_is(s->name)) {
        text_put(out, mcp_pump_tools);
    }
    text_put(out, "]}");
}

/* put_echo repeats the text as it is spelled, so that every escape survives. */
static void put_echo(const mcp_surface *s, json_span arguments, text_out *out)
{
    json_span text;

    if (!json_member(arguments, "text", &text) || !json_is_string(text)) {
        text_put(out, "{\"content\":[{\"type\":\"text\",\"text\":\"text must be a string\"}],\"isError\":true}");
        return;
    }
    text_put(out, "{\"content\":[{\"type\":\"text\",\"text\":\"");
    text_json(out, s->name);
    text_put(out, ": ");
    text_bytes(out, text.at + 1, text.len - 2);
    text_put(out, "\"}]}");
}

static void put_call(mcp_surface *s, json_span params, text_out *out)
{
    text_out before = *out;
    json_span arguments = none;

    if (!json_member(params, "name", &s->tool) || !json_is_string(s->tool)) {
        s->tool = none;
        put_error(out, -32602, "tools/call needs the name of a tool");
        return;
    }
    (void)json_member(params, "arguments", &arguments);
    s->calls++;
    text_put(out, ",\"result\":");
    if (json_is(s->tool, "echo")) {
        put_echo(s, arguments, out);
    } else if (!mcp_pump_is(s->name) || !mcp_pump_call(s, arguments, out)) {
        *out = before;
        put_error(out, -32602, "Unknown tool");
    }
}

static void put_other(mcp_surface *s, json_span method, json_span params, text_out *out)
{
    text_out before = *out;
    mcp_pump_outcome outcome = MCP_PUMP_NO_METHOD;

    text_put(out, ",\"result\":");
    if (mcp_pump_is(s->name)) {
        outcome = mcp_pump_resource(s, method, params, out);
    }
    if (outcome != MCP_PUMP_RESULT) {
        *out = before;
    }
    if (outcome == MCP_PUMP_NO_METHOD) {
        put_error(out, -32601, "Method not found");
    } else if (outcome == MCP_PUMP_NO_RESOURCE) {
        put_error(out, -32002, "Resource not found");
    }
}

/* note keeps what the caller may want to know about the message. */
static void note(mcp_surface *s, json_span params)
{
    json_span meta;

    s->tool = none;
    s->traceparent = none;
    if (!json_member(params, "_meta", &meta) || !json_member(meta, "traceparent", &s->traceparent) ||
        !json_is_string(s->traceparent)) {
        s->traceparent = none;
    }
}

int32_t mcp_surface_handle(mcp_surface *s, const char *json, size_t len, char *at, size_t cap)
{
    json_span message, method, id;
    json_span params = none;
    text_out out;

    note(s, none);
    if (!json_whole(json, len, &message)) {
        return refuse(at, cap, none, -32700, "Parse error");
    }
    if (!json_is_object(message)) {
        return refuse(at, cap, none, -32600, "Invalid request: not an object");
    }
    if (!json_member(message, "method", &method) || !json_member(message, "id", &id)) {
        return 0; /* a response or a notification */
    }
    if (!json_is_string(method) || (!json_is_string(id) && !json_is_number(id))) {
        return refuse(at, cap, none, -32600, "Invalid request: id or method of a wrong type");
    }
    (void)json_member(message, "params", &params);
    note(s, params);

    text_begin(&out, at, cap);
    begin_reply(&out, id);
    if (json_is(method, "initialize")) {
        put_initialize(s, params, &out);
    } else if (json_is(method, "ping")) {
        text_put(&out, ",\"result\":{}");
    } else if (json_is(method, "tools/list")) {
        put_tools(s, &out);
    } else if (json_is(method, "tools/call")) {
        put_call(s, params, &out);
    } else {
        put_other(s, method, params, &out);
    }
    text_put(&out, "}");
    return out.full ? refuse(at, cap, id, -32603, "The answer is larger than the device can send") : (int32_t)out.len;
}
