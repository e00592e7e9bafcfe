/* lwIP on the board's Ethernet controller, with the static address that an
 * emulator's user-mode network gives its first guest. */
#ifndef NET_H
#define NET_H

#include "mcplink_lwip.h"

/* Starts lwIP. Returns what the port needs, or NULL when the board has no
 * controller. */
const mcplink_lwip_board *net_init(void);

#endif
