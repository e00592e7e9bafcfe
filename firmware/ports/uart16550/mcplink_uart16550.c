#include "mcplink_uart16550.h"

#include "mcplink/mcplink.h"

enum { DATA = 0, INT_ENABLE = 1, FIFO_CONTROL = 2, LINE_CONTROL = 3, LINE_STATUS = 5 };

#define INT_RECEIVED 0x01u
#define FIFO_ENABLE 0x01u
#define FIFO_CLEAR_RECEIVED 0x02u
#define FIFO_CLEAR_BOTH 0x06u
#define LINE_8N1 0x03u
#define LINE_DIVISOR 0x80u
#define STATUS_RECEIVED 0x01u
#define STATUS_CAN_SEND 0x20u

#define WAIT_MAX_MS 1000u

static volatile uint8_t *reg(const mcplink_uart16550_board *b, unsigned at)
{
    return (volatile uint8_t *)(b->base + at);
}

static int has(const mcplink_uart16550_board *b, uint8_t status) { return (*reg(b, LINE_STATUS) & status) != 0; }

/* idle waits for the line until timeout_ms after `from`. False: that has passed. */
static int idle(const mcplink_uart16550_board *b, uint32_t from, int32_t timeout_ms)
{
    uint32_t ms = WAIT_MAX_MS;

    if (timeout_ms >= 0) {
        uint32_t limit = (uint32_t)timeout_ms;
        uint32_t passed = b->now_ms(b->ctx) - from;

        if (passed >= limit) {
            return 0;
        }
        if (limit - passed < ms) {
            ms = limit - passed;
        }
    }
    b->wait(b->ctx, ms);
    return 1;
}

static int uart_open(void *ctx, const char *host, uint16_t port, int tls, int32_t timeout_ms)
{
    const mcplink_uart16550_board *b = ctx;

    (void)host;
    (void)port;
    (void)timeout_ms;
    if (tls != 0) {
        return MCPLINK_ERR_UNSUPPORTED;
    }
    *reg(b, FIFO_CONTROL) = FIFO_ENABLE | FIFO_CLEAR_BOTH;
    return MCPLINK_OK;
}

/* The transmitter makes no interrupt: it is always ready within a few byte times. */
static int uart_send(void *ctx, const void *buf, size_t len, int32_t timeout_ms)
{
    const mcplink_uart16550_board *b = ctx;
    const uint8_t *p = buf;
    uint32_t from = b->now_ms(b->ctx);

    for (size_t i = 0; i < len; i++) {
        while (!has(b, STATUS_CAN_SEND)) {
            if (timeout_ms >= 0 && b->now_ms(b->ctx) - from >= (uint32_t)timeout_ms) {
                return MCPLINK_ERR_TIMEOUT;
            }
        }
        *reg(b, DATA) = p[i];
    }
    return (int)len;
}

static int uart_recv(void *ctx, void *buf, size_t len, int32_t timeout_ms)
{
    const mcplink_uart16550_board *b = ctx;
    uint8_t *p = buf;
    uint32_t from = b->now_ms(b->ctx);
    size_t n = 0;

    if (len == 0) {
        return MCPLINK_ERR_ARG;
    }
    while (!has(b, STATUS_RECEIVED)) {
        if (!idle(b, from, timeout_ms)) {
            return MCPLINK_ERR_TIMEOUT;
        }
    }
    while (n < len && has(b, STATUS_RECEIVED)) {
        p[n++] = *reg(b, DATA);
    }
    return (int)n;
}

static void uart_close(void *ctx)
{
    const mcplink_uart16550_board *b = ctx;

    *reg(b, FIFO_CONTROL) = FIFO_ENABLE | FIFO_CLEAR_RECEIVED;
}

static uint32_t uart_now_ms(void *ctx)
{
    const mcplink_uart16550_board *b = ctx;

    return b->now_ms(b->ctx);
}

static int uart_random(void *ctx, void *buf, size_t len)
{
    const mcplink_uart16550_board *b = ctx;

    return b->random(b->ctx, buf, len);
}

static void uart_sleep_ms(void *ctx, uint32_t ms)
{
    const mcplink_uart16550_board *b = ctx;
    uint32_t from = b->now_ms(b->ctx);

    while (idle(b, from, ms > INT32_MAX ? INT32_MAX : (int32_t)ms)) {
        /* What arrives meanwhile belongs to no connection. */
        *reg(b, FIFO_CONTROL) = FIFO_ENABLE | FIFO_CLEAR_RECEIVED;
    }
}

void mcplink_uart16550_init(const mcplink_uart16550_board *board, mcplink_port *port)
{
    *reg(board, LINE_CONTROL) = LINE_DIVISOR;
    *reg(board, DATA) = 1; /* the fastest rate */
    *reg(board, INT_ENABLE) = 0;
    *reg(board, LINE_CONTROL) = LINE_8N1;
    *reg(board, FIFO_CONTROL) = FIFO_ENABLE | FIFO_CLEAR_BOTH;
    *reg(board, INT_ENABLE) = INT_RECEIVED;
    port->open = uart_open;
    port->send = uart_send;
    port->recv = uart_recv;
    port->close = uart_close;
    port->now_ms = uart_now_ms;
    port->random = uart_random;
    port->sleep_ms = uart_sleep_ms;
    /* The board is only ever read; ctx has no const. */
    port->ctx = (void *)(uintptr_t)board;
}
