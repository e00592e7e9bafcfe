#include "virtio.h"

#include "machine.h"

#include <string.h>

enum {
    MAGIC = 0x000,
    VERSION = 0x004,
    DEVICE_ID = 0x008,
    DRIVER_FEATURES = 0x020,
    PAGE_SIZE = 0x028,
    QUEUE_SELECT = 0x030,
    QUEUE_SIZE = 0x038,
    QUEUE_ALIGN = 0x03C,
    QUEUE_PAGE = 0x040,
    QUEUE_NOTIFY = 0x050,
    INTERRUPT_STATUS = 0x060,
    INTERRUPT_ACK = 0x064,
    STATUS = 0x070
};

enum { ACKNOWLEDGED = 1, DRIVER = 2, DRIVER_OK = 4 };

#define MAGIC_VALUE 0x74726976u
#define LEGACY 1u

static void fence(void)
{
    __asm__ volatile("fence" ::: "memory");
}

static int is_device(uint32_t base)
{
    return REG32(base + MAGIC) == MAGIC_VALUE &&
           REG32(base + VERSION) == LEGACY;
}

uint32_t virtio_open(uint32_t id, uint32_t features)
{
    for (uint32_t i = 0; i < VIRTIO_SLOTS; i++) {
        uint32_t base = VIRTIO_FIRST + i * VIRTIO_STEP;
        if (!is_device(base) || REG32(base + DEVICE_ID) != id) {
            continue;
        }
        REG32(base + STATUS) = 0;
        REG32(base + STATUS) = ACKNOWLEDGED | DRIVER;
        REG32(base + DRIVER_FEATURES) = features;
        REG32(base + PAGE_SIZE) = VIRTIO_RING_ALIGN;
        return base;
    }
    return 0;
}

void virtio_queue_init(struct virtio_queue *q, uint32_t base, uint32_t number)
{
    memset(q, 0, sizeof *q);
    q->base = base;
    q->number = number;
    REG32(base + QUEUE_SELECT) = number;
    REG32(base + QUEUE_SIZE) = VIRTIO_RING;
    REG32(base + QUEUE_ALIGN) = VIRTIO_RING_ALIGN;
    REG32(base + QUEUE_PAGE) = (uint32_t)(uintptr_t)q / VIRTIO_RING_ALIGN;
}

void virtio_ready(uint32_t base)
{
    REG32(base + STATUS) = ACKNOWLEDGED | DRIVER | DRIVER_OK;
}

void virtio_give(struct virtio_queue *q, uint16_t id, void *buf, uint32_t len,
         uint16_t flags)
{
    q->desc[id].addr = (uintptr_t)buf;
    q->desc[id].len = len;
    q->desc[id].flags = flags;
    q->avail.ring[q->avail.index % VIRTIO_RING] = id;
    fence(); /* the entry before the index that publishes it */
    q->avail.index++;
    fence();
    REG32(q->base + QUEUE_NOTIFY) = q->number;
}

int virtio_take(struct virtio_queue *q, uint16_t *id, uint32_t *len)
{
    if (q->seen == *(volatile uint16_t *)&q->used.index) {
        return 0;
    }
    fence();
    *id = (uint16_t)q->used.ring[q->seen % VIRTIO_RING].id;
    *len = q->used.ring[q->seen % VIRTIO_RING].len;
    q->seen++;
    return 1;
}

void virtio_acknowledge(void)
{
    for (uint32_t i = 0; i < VIRTIO_SLOTS; i++) {
        uint32_t base = VIRTIO_FIRST + i * VIRTIO_STEP;
        uint32_t why = REG32(base + INTERRUPT_STATUS);
        if (why != 0) {
            REG32(base + INTERRUPT_ACK) = why;
        }
    }
}
