/* The port for systems with POSIX sockets: one TCP connection, every wait bounded
 * by poll(2), time from the monotonic clock, entropy from the kernel. TLS is
 * refused with MCPLINK_ERR_UNSUPPORTED; stack a TLS port on top for it. */
#ifndef MCPLINK_POSIX_H
#define MCPLINK_POSIX_H

#include "mcplink/port.h"

typedef struct mcplink_posix {
    int fd;           /* -1 while there is no connection */
    int connecting;   /* fd is on its way: the next open goes on with it */
    unsigned address; /* of the host's addresses, the one to try after this */
} mcplink_posix;

/* mcplink_posix_init makes p usable and port refer to it; both stay the caller's.
 * Nothing is opened. The connection is closed with port->close.
 *
 * open can be called in steps (link config `stepwise`), but the name is resolved in
 * the first of them, by a resolver with time limits of its own. */
void mcplink_posix_init(mcplink_posix *p, mcplink_port *port);

#endif
