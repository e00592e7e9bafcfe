#include "net.h"

#include "board.h"
#include "nic.h"
#include "semihosting.h"

#include <string.h>

#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/timeouts.h"

#define FRAMES_PER_POLL 8

static struct netif interface;
static uint8_t frame[NIC_FRAME_MAX];
static int more; /* the last poll may have left frames in the controller */

void mcplink_lwip_failed(const char *what)
{
    semihosting_puts("lwip: ");
    semihosting_puts(what);
    semihosting_puts("\n");
    semihosting_exit(70);
}

/* Without entropy the first local port is a fixed one. */
uint32_t mcplink_lwip_random32(void)
{
    uint32_t n = 0;

    (void)board_random(&n, sizeof n);
    return n;
}

u32_t sys_now(void) { return board_now_ms(); }

static err_t transmit(struct netif *netif, struct pbuf *p)
{
    (void)netif;
    if (p->tot_len > sizeof frame) {
        return ERR_BUF;
    }
    pbuf_copy_partial(p, frame, p->tot_len, 0);
    return nic_send(frame, p->tot_len) == 0 ? ERR_OK : ERR_IF;
}

static err_t start_interface(struct netif *netif)
{
    if (nic_init(netif->hwaddr) != 0) {
        return ERR_IF;
    }
    netif->name[0] = 'e';
    netif->name[1] = 'n';
    netif->hwaddr_len = ETH_HWADDR_LEN;
    netif->mtu = 1500;
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
    netif->output = etharp_output;
    netif->linkoutput = transmit;
    return ERR_OK;
}

/* A frame for which there is no buffer is dropped; TCP sends it again. */
static void deliver(size_t len)
{
    struct pbuf *p = pbuf_alloc(PBUF_RAW, (u16_t)len, PBUF_POOL);

    if (p == NULL) {
        return;
    }
    pbuf_take(p, frame, (u16_t)len);
    if (interface.input(p, &interface) != ERR_OK) {
        pbuf_free(p);
    }
}

/* Bounded: two peers whose windows are both closed answer each other for ever, and
 * the caller has a deadline to keep. */
static void poll_stack(void *ctx)
{
    (void)ctx;
    more = 1;
    for (int i = 0; i < FRAMES_PER_POLL && more; i++) {
        size_t len = nic_receive(frame, sizeof frame);

        more = len > 0;
        if (more) {
            deliver(len);
        }
    }
    sys_check_timeouts();
}

static void wait_ms(void *ctx, uint32_t ms)
{
    (void)ctx;
    if (!more) {
        board_wait(ms);
    }
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

const mcplink_lwip_board *net_init(void)
{
    static const mcplink_lwip_board port_board = {poll_stack, wait_ms, now_ms, draw, NULL};
    ip4_addr_t address;
    ip4_addr_t mask;
    ip4_addr_t gateway;

    IP4_ADDR(&address, 10, 0, 2, 15);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 10, 0, 2, 2);
    lwip_init();
    if (netif_add(&interface, &address, &mask, &gateway, NULL, start_interface, netif_input) == NULL) {
        return NULL;
    }
    netif_set_default(&interface);
    netif_set_up(&interface);
    return &port_board;
}
