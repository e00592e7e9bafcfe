/* The LM3S6965's Ethernet controller: a FIFO behind one data register. */
#include "nic.h"

#include <string.h>

#define REG(addr) (*(volatile uint32_t *)(uintptr_t)(addr))

#define INT_MASK REG(0x40048004u)
#define RX_CONTROL REG(0x40048008u)
#define TX_CONTROL REG(0x4004800Cu)
#define DATA REG(0x40048010u)
#define ADDRESS0 REG(0x40048014u)
#define ADDRESS1 REG(0x40048018u)
#define PACKETS REG(0x40048034u)
#define TX_REQUEST REG(0x40048038u)

#define INT_RECEIVED 1u
#define RX_ENABLE 1u
#define TX_ENABLE 1u
#define TX_PAD 2u
#define TX_CHECKSUM 4u
#define TX_DUPLEX 16u

#define RUN_CLOCK_GATE2 REG(0x400FE108u)
#define GATE2_ETHERNET (1u << 28 | 1u << 30)

#define HEADER 14u
#define CHECKSUM 4u
#define LENGTH_FIELD 2u

int nic_init(uint8_t mac[6])
{
    RUN_CLOCK_GATE2 |= GATE2_ETHERNET;
    uint32_t low = ADDRESS0;
    uint32_t high = ADDRESS1;
    for (unsigned i = 0; i < 6; i++) {
        mac[i] = (uint8_t)(i < 4 ? low >> (8 * i) : high >> (8 * (i - 4)));
    }
    INT_MASK = INT_RECEIVED;
    TX_CONTROL = TX_ENABLE | TX_PAD | TX_CHECKSUM | TX_DUPLEX;
    RX_CONTROL = RX_ENABLE;
    return 0;
}

/* The FIFO takes a two-byte payload length, then the frame, in words. */
int nic_send(const void *frame, size_t len)
{
    const uint8_t *p = frame;
    size_t total = len + LENGTH_FIELD;

    if (len < HEADER || len > NIC_FRAME_MAX) {
        return -1;
    }
    while ((TX_REQUEST & 1u) != 0) {
        /* The frame before this one is still leaving. */
    }
    uint32_t word = (uint32_t)(len - HEADER);
    for (size_t i = LENGTH_FIELD; i < total; i++) {
        word |= (uint32_t)p[i - LENGTH_FIELD] << (8 * (i & 3u));
        if ((i & 3u) == 3u) {
            DATA = word;
            word = 0;
        }
    }
    if ((total & 3u) != 0) {
        DATA = word;
    }
    TX_REQUEST = 1;
    return 0;
}

/* The FIFO gives a two-byte length that counts itself and the checksum. */
size_t nic_receive(void *buf, size_t cap)
{
    uint8_t *p = buf;

    if ((PACKETS & 0x3Fu) == 0) {
        return 0;
    }
    uint32_t word = DATA;
    size_t total = word & 0xFFFFu;
    size_t len = total - LENGTH_FIELD - CHECKSUM;
    for (size_t i = LENGTH_FIELD; i < total; i++) {
        if ((i & 3u) == 0) {
            word = DATA;
        }
        size_t at = i - LENGTH_FIELD;
        if (at < len && at < cap) {
            p[at] = (uint8_t)(word >> (8 * (i & 3u)));
        }
    }
    return len <= cap ? len : 0;
}
