#include "image_port.h"

#include <stddef.h>

#include "net.h"

const char image_port_name[] = "lwip";

const char *image_port_init(const image_args *args, mcplink_port *port)
{
    static mcplink_lwip lwip;
    const mcplink_lwip_board *board = net_init();

    if (args->port == 0) {
        return "--port is required";
    }
    if (board == NULL) {
        return "no network controller";
    }
    mcplink_lwip_init(&lwip, board, port);
    return NULL;
}

const char *image_port_detail(void) { return ""; }
