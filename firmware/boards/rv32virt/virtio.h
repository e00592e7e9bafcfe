/* Legacy virtio over memory-mapped registers: polled rings of a fixed size. */
#ifndef VIRTIO_H
#define VIRTIO_H

#include <stddef.h>
#include <stdint.h>

#define VIRTIO_ID_NET 1u
#define VIRTIO_ID_RNG 4u

#define VIRTIO_RING 8u        /* descriptors of a queue, a power of two */
#define VIRTIO_RING_ALIGN 64u /* of the used ring and of the whole queue */

struct virtio_desc {
    uint64_t addr;
    uint32_t len;
    uint16_t flags;
    uint16_t next;
};

#define VIRTIO_DESC_WRITE 2u /* the device writes the buffer */

struct virtio_queue {
    struct virtio_desc desc[VIRTIO_RING];
    struct {
        uint16_t flags;
        uint16_t index;
        uint16_t ring[VIRTIO_RING];
    } avail;
    struct {
        uint16_t flags;
        uint16_t index;
        struct {
            uint32_t id;
            uint32_t len;
        } ring[VIRTIO_RING];
    } used __attribute__((aligned(VIRTIO_RING_ALIGN)));
    uint16_t seen; /* used entries already taken */
    uint32_t base;
    uint32_t number;
} __attribute__((aligned(VIRTIO_RING_ALIGN)));

/* Finds a device and resets it, accepting these features only. Returns its
 * register base; 0 when the machine has none. */
uint32_t virtio_open(uint32_t id, uint32_t features);

void virtio_queue_init(struct virtio_queue *q, uint32_t base, uint32_t number);

/* Tells the device that its queues are set up. */
void virtio_ready(uint32_t base);

/* Gives descriptor `id` to the device, with this buffer. */
void virtio_give(struct virtio_queue *q, uint16_t id, void *buf, uint32_t len,
         uint16_t flags);

/* Takes one descriptor back. Returns 1 with its id and the bytes written, or 0
 * when the device has finished none. */
int virtio_take(struct virtio_queue *q, uint16_t *id, uint32_t *len);

#endif
