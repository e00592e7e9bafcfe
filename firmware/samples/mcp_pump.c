#include "mcp_pump.h"

#define MAX_RPM 3000
#define STATUS_URI "device://status"
#define STATUS_SCHEMA                                                                                                  \
    "{\"type\":\"object\",\"properties\":{\"speed_rpm\":{\"type\":\"integer\"},\"running\":{\"type\":\"boolean\"}},"      \
    "\"required\":[\"speed_rpm\",\"running\"]}"

const char mcp_pump_tools[] =
    ",{\"name\":\"read_status\",\"description\":\"Reads the speed of the pump and whether it runs.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false},"
    "\"outputSchema\":" STATUS_SCHEMA "}"
    ",{\"name\":\"set_speed\",\"description\":\"Sets the speed of the pump. 0 stops it.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"speed_rpm\":{\"type\":\"integer\",\"minimum\":0,"
    "\"maximum\":3000,\"description\":\"Revolutions per minute\"}},\"required\":[\"speed_rpm\"],"
    "\"additionalProperties\":false},"
    "\"outputSchema\":" STATUS_SCHEMA "}";

bool mcp_pump_is(const char *name)
{
    static const char prefix[] = "pump-";
    size_t i;

    for (i = 0; prefix[i] != '\0'; i++) {
        if (name[i] != prefix[i]) {
            return false;
        }
    }
    return true;
}

/* put_status writes the status as JSON, or as JSON inside of a JSON string. */
static void put_status(const mcp_surface *s, bool inside, text_out *out)
{
    const char *quote = inside ? "\\\"" : "\"";

    text_put(out, "{");
    text_put(out, quote);
    text_put(out, "speed_rpm");
    text_put(out, quote);
    text_put(out, ":");
    text_signed(out, s->speed_rpm);
    text_put(out, ",");
    text_put(out, quote);
    text_put(out, "running");
    text_put(out, quote);
    text_put(out, s->speed_rpm > 0 ? ":true}" : ":false}");
}

bool mcp_pump_call(mcp_surface *s, json_span arguments, text_out *out)
{
    bool sets = json_is(s->tool, "set_speed");
    json_span value;
    int32_t rpm;

    if (!sets && !json_is(s->tool, "read_status")) {
        return false;
    }
    if (sets) {
        if (!json_member(arguments, "speed_rpm", &value) || !json_integer(value, &rpm) || rpm < 0 || rpm > MAX_RPM) {
            text_put(out, "{\"content\":[{\"type\":\"text\",\"text\":\"speed_rpm must be an integer from 0 to ");
            text_signed(out, MAX_RPM);
            text_put(out, "\"}],\"isError\":true}");
            return true;
        }
        s->updated = s->updated || (s->subscribed && rpm != s->speed_rpm);
        s->speed_rpm = rpm;
    }
    text_put(out, "{\"content\":[{\"type\":\"text\",\"text\":\"");
    put_status(s, true, out);
    text_put(out, "\"}],\"structuredContent\":");
    put_status(s, false, out);
    text_put(out, "}");
    return true;
}

mcp_pump_outcome mcp_pump_resource(mcp_surface *s, json_span method, json_span params, text_out *out)
{
    bool reads = json_is(method, "resources/read");
    bool subscribes = json_is(method, "resources/subscribe");
    json_span uri;

    if (json_is(method, "resources/list")) {
        text_put(out, "{\"resources\":[{\"uri\":\"" STATUS_URI "\",\"name\":\"status\","
                      "\"mimeType\":\"application/json\"}]}");
        return MCP_PUMP_RESULT;
    }
    if (!reads && !subscribes && !json_is(method, "resources/unsubscribe")) {
        return MCP_PUMP_NO_METHOD;
    }
    if (!json_member(params, "uri", &uri) || !json_is(uri, STATUS_URI)) {
        return MCP_PUMP_NO_RESOURCE;
    }
    if (!reads) {
        s->subscribed = subscribes;
        s->updated = s->updated && subscribes;
        text_put(out, "{}");
        return MCP_PUMP_RESULT;
    }
    text_put(out, "{\"contents\":[{\"uri\":\"" STATUS_URI "\",\"mimeType\":\"application/json\",\"text\":\"");
    put_status(s, true, out);
    text_put(out, "\"}]}");
    return MCP_PUMP_RESULT;
}

int32_t mcp_surface_notice(mcp_surface *s, char *out, size_t cap)
{
    text_out text;

    if (!s->updated) {
        return 0;
    }
    text_begin(&text, out, cap);
    text_put(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
                    "\"params\":{\"uri\":\"" STATUS_URI "\"}}");
    if (text.full) {
        return 0;
    }
    s->updated = false;
    return (int32_t)text.len;
}
