/* A simulation host: many pumps, all on one multiplexed socket. Each has a slot, a
 * state and a server of its own, the same one that runs on the boards. */
#include <stdio.h>
#include <stdlib.h>

#include "device_loop.h"
#include "mcplink/mcplink.h"

#define NAME_SIZE 16 /* pump-4294967295 */

static const char about[] = "mcplink-plant: publishes simulated pumps pump-1, pump-2, ... on one socket.";

static int serve(device_options *o, uint32_t first, uint32_t devices)
{
    char *text = calloc(devices, NAME_SIZE);
    const char **names = calloc(devices, sizeof *names);
    uint32_t i;
    int code = 2;

    if (text != NULL && names != NULL) {
        for (i = 0; i < devices; i++) {
            (void)snprintf(text + (size_t)i * NAME_SIZE, NAME_SIZE, "pump-%lu", (unsigned long)(first + i));
            names[i] = text + (size_t)i * NAME_SIZE;
        }
        o->names = names;
        o->count = devices;
        code = device_serve(o);
    } else {
        fprintf(stderr, "out of memory\n");
    }
    free(text);
    free(names);
    return code;
}

int main(int argc, char **argv)
{
    device_options o = {0};
    uint32_t devices = 20;
    uint32_t first = 1;
    bool aggregate = false;
    cli_flag flags[HOST_FLAGS + 5] = {
        {"--devices", CLI_NUMBER, &devices, 1, 10000, "how many pumps (20)"},
        {"--first", CLI_NUMBER, &first, 0, 1000000, "the number of the first one (1)"},
        {"--aggregate", CLI_SWITCH, &aggregate, 0, 0, "all of them join the broker's merged catalog _all"},
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
    o.multiplex = true;
    o.aggregated = aggregate ? devices : 0;
    return serve(&o, first, devices);
}
