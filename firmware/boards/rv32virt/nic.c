/* virtio-net as a polled Ethernet controller. */
#include "nic.h"

#include "machine.h"
#include "virtio.h"

#include <string.h>

#define FEATURE_MAC (1u << 5)
#define CONFIG 0x100u
#define HEADER 10u /* of a legacy device without merged buffers; all zero */
#define BUFFER (HEADER + NIC_FRAME_MAX)

enum { QUEUE_RECEIVE = 0, QUEUE_TRANSMIT = 1 };

static struct virtio_queue receive_queue;
static struct virtio_queue transmit_queue;
static uint8_t receive_buffer[VIRTIO_RING][BUFFER];
static uint8_t transmit_buffer[VIRTIO_RING][BUFFER];
static uint8_t transmit_busy[VIRTIO_RING];

static void offer(uint16_t id)
{
    virtio_give(&receive_queue, id, receive_buffer[id], BUFFER,
            VIRTIO_DESC_WRITE);
}

int nic_init(uint8_t mac[6])
{
    uint32_t base = virtio_open(VIRTIO_ID_NET, FEATURE_MAC);

    if (base == 0) {
        return -1;
    }
    for (uint32_t i = 0; i < 6; i++) {
        mac[i] = *(volatile uint8_t *)(uintptr_t)(base + CONFIG + i);
    }
    virtio_queue_init(&receive_queue, base, QUEUE_RECEIVE);
    virtio_queue_init(&transmit_queue, base, QUEUE_TRANSMIT);
    virtio_ready(base);
    for (uint16_t id = 0; id < VIRTIO_RING; id++) {
        offer(id);
    }
    return 0;
}

static void reclaim(void)
{
    uint16_t id;
    uint32_t len;

    while (virtio_take(&transmit_queue, &id, &len)) {
        transmit_busy[id] = 0;
    }
}

int nic_send(const void *frame, size_t len)
{
    uint16_t id = 0;

    if (len > NIC_FRAME_MAX) {
        return -1;
    }
    reclaim();
    while (id < VIRTIO_RING && transmit_busy[id]) {
        id++;
    }
    if (id == VIRTIO_RING) {
        return -1;
    }
    transmit_busy[id] = 1;
    memcpy(transmit_buffer[id] + HEADER, frame, len);
    virtio_give(&transmit_queue, id, transmit_buffer[id],
            (uint32_t)(HEADER + len), 0);
    return 0;
}

size_t nic_receive(void *buf, size_t cap)
{
    uint16_t id;
    uint32_t got;

    if (!virtio_take(&receive_queue, &id, &got)) {
        return 0;
    }
    size_t len = got > HEADER ? got - HEADER : 0;
    if (len > cap) {
        len = 0;
    }
    memcpy(buf, receive_buffer[id] + HEADER, len);
    offer(id);
    return len;
}
