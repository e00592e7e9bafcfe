/* The port over a 16550 serial line whose far end is already connected to the
 * broker, by an emulator's character device or a serial bridge.
 *
 * A serial line has no connection: open always succeeds, the end of the far
 * connection is not seen, and close only forgets what waits in the line. A lost
 * broker shows as a missing answer to the keepalive. TLS is refused with
 * MCPLINK_ERR_UNSUPPORTED; stack a TLS port on top for it. */
#ifndef MCPLINK_UART16550_H
#define MCPLINK_UART16550_H

#include <stddef.h>
#include <stdint.h>

#include "mcplink/port.h"

/* What the port asks of the board. All members are required. */
typedef struct mcplink_uart16550_board {
    uintptr_t base; /* of the registers, one byte apart */
    /* Idles until the line interrupts or ms milliseconds passed; may end early. It
     * must not miss a byte that came after the line was last looked at. */
    void (*wait)(void *ctx, uint32_t ms);
    uint32_t (*now_ms)(void *ctx);
    int (*random)(void *ctx, void *buf, size_t len); /* 0, or an error */
    void *ctx;
} mcplink_uart16550_board;

/* mcplink_uart16550_init sets the line up and makes port refer to board; both stay
 * the caller's. */
void mcplink_uart16550_init(const mcplink_uart16550_board *board, mcplink_port *port);

#endif
