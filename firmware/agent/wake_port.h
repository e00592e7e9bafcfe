/* A port of POSIX sockets, with or without TLS, whose recv another thread can end:
 * what is queued then leaves at once instead of after the wait for a message. */
#ifndef MCPLINK_WAKE_PORT_H
#define MCPLINK_WAKE_PORT_H

#include "mcplink/port.h"
#include "mcplink_posix.h"

typedef struct mcplink_wake_port {
    mcplink_port inner;
    const mcplink_posix *socket;
    int pipe[2];
} mcplink_wake_port;

/* mcplink_wake_port_init makes port refer to w. inner is copied; it is the port of
 * socket, or one stacked on it. MCPLINK_OK or MCPLINK_ERR_TRANSPORT: the process has
 * no file descriptors left. */
int mcplink_wake_port_init(mcplink_wake_port *w, mcplink_port *port, const mcplink_port *inner,
                           const mcplink_posix *socket);

/* mcplink_wake_port_free closes the pipe; the inner port stays as it is. */
void mcplink_wake_port_free(mcplink_wake_port *w);

/* mcplink_wake_port_wake ends the recv or the wait in progress, or the next one. From
 * any thread. */
void mcplink_wake_port_wake(mcplink_wake_port *w);

/* mcplink_wake_port_wait passes ms milliseconds, or less when woken. */
void mcplink_wake_port_wait(mcplink_wake_port *w, uint32_t ms);

#endif
