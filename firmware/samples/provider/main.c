/* A device on this machine: one slot on a socket of its own, or two on a shared
 * one. It serves the MCP surface and prints a line per event and message. */
#include <stdio.h>
#include <string.h>

#include "device_loop.h"
#include "mcplink/mcplink.h"

static const char about[] = "mcplink-provider: publishes a device on a broker.";

int main(int argc, char **argv)
{
    device_options o = {0};
    const char *name = "device-1";
    char second[MCPLINK_NAME_MAX + 8];
    const char *names[2];
    bool aggregate = false;
    cli_flag flags[HOST_FLAGS + 5] = {
        {"--name", CLI_TEXT, &name, 0, 0, "the slot (device-1); one that begins with pump- is a pump"},
        {"--aggregate", CLI_SWITCH, &aggregate, 0, 0, "join the broker's merged catalog _all"},
        {"--multiplex", CLI_SWITCH, &o.multiplex, 0, 0, "publish NAME and NAME-b on one socket; NAME-b never joins _all"},
        {"--telemetry", CLI_SWITCH, &o.telemetry, 0, 0, "send a span for each call that came with a trace context"},
        {"--reregister", CLI_NUMBER, &o.reregister_ms, 1, MCPLINK_TIME_MAX, "announce a refused slot again after about N ms (30000)"},
    };

    host_defaults(&o.link);
    host_flags(&o.link, flags + 5);
    switch (cli_parse(about, flags, sizeof flags / sizeof flags[0], argc, argv)) {
    case CLI_OK:
        break;
    case CLI_HELP:
        return 0;
    case CLI_WRONG:
        return 2;
    }
    if (strlen(name) > MCPLINK_NAME_MAX) {
        fprintf(stderr, "--name may have %u bytes\n", MCPLINK_NAME_MAX);
        return 2;
    }
    (void)snprintf(second, sizeof second, "%s-b", name);
    names[0] = name;
    names[1] = second;
    o.names = names;
    o.count = o.multiplex ? 2 : 1;
    o.aggregated = aggregate ? 1 : 0;
    return device_serve(&o);
}
