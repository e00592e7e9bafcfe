/* The port of this machine: sockets, with TLS on top where the program is built
 * with HOST_TLS=1. */
#ifndef HOST_PORT_H
#define HOST_PORT_H

#include <stdbool.h>

#include "mcplink_posix.h"
#if HOST_TLS
#include "mcplink_tls.h"
#endif

typedef struct host_port {
    mcplink_posix posix;
    mcplink_port plain;
    mcplink_port port; /* the one to use */
#if HOST_TLS
    bool secured;
    mcplink_tls tls;
#endif
} host_port;

/* host_port_init makes h->port usable. With tls it trusts the certificates in the
 * file ca, which must be for name; NULL is the host that is dialled. False: it
 * cannot be had, and standard error says why. */
bool host_port_init(host_port *h, bool tls, const char *ca, const char *name);

void host_port_free(host_port *h);

/* host_port_words says why TLS refused the last connection; "" when it did not. */
const char *host_port_words(const host_port *h);

#endif
