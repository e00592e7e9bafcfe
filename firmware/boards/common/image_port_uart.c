#include "image_port.h"

#include <stddef.h>

#include "board.h"
#include "mcplink_uart16550.h"

#define UART_BASE 0x10000000u

const char image_port_name[] = "uart";

static void wait_ms(void *ctx, uint32_t ms)
{
    (void)ctx;
    board_wait(ms);
}

static uint32_t now_ms(void *ctx)
{
    (void)ctx;
    return board_now_ms();
}

static int draw(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    return board_random(buf, len);
}

const char *image_port_init(const image_args *args, mcplink_port *port)
{
    static const mcplink_uart16550_board line = {UART_BASE, wait_ms, now_ms, draw, NULL};

    (void)args;
    mcplink_uart16550_init(&line, port);
    return NULL;
}

const char *image_port_detail(void) { return ""; }
