/* The port over lwIP's raw API, without an operating system: one TCP connection,
 * driven from the caller's own loop. TLS is refused with
 * MCPLINK_ERR_UNSUPPORTED; stack a TLS port on top for it. */
#ifndef MCPLINK_LWIP_H
#define MCPLINK_LWIP_H

#include <stddef.h>
#include <stdint.h>

#include "mcplink/port.h"

struct pbuf;
struct tcp_pcb;

/* What the port asks of the board. All members are required. */
typedef struct mcplink_lwip_board {
    /* Hands some received frames to lwIP and runs its timers. Never waits. */
    void (*poll)(void *ctx);
    /* Idles until a frame arrived or ms milliseconds passed; may end early. */
    void (*wait)(void *ctx, uint32_t ms);
    uint32_t (*now_ms)(void *ctx);
    int (*random)(void *ctx, void *buf, size_t len); /* 0, or an error */
    void *ctx;
} mcplink_lwip_board;

typedef struct mcplink_lwip {
    const mcplink_lwip_board *board;
    struct tcp_pcb *pcb;     /* NULL while there is no connection */
    struct pbuf *unread;     /* received and not yet handed out, or NULL */
    uint16_t unread_offset;  /* bytes of its first part already handed out */
    int status;              /* MCPLINK_OK, or why the connection ended */
    int connected;
} mcplink_lwip;

/* mcplink_lwip_init makes l usable and port refer to it; both, and board, stay the
 * caller's. lwIP itself (lwip_init, the network interface) is the caller's to set
 * up. The host given to open is an IPv4 address in dotted form. */
void mcplink_lwip_init(mcplink_lwip *l, const mcplink_lwip_board *board, mcplink_port *port);

#endif
