/* Entropy from virtio-rng. */
#include "board.h"
#include "virtio.h"

#include <string.h>

#define CHUNK 64u
#define WAIT_MS 1000u /* a source that gives nothing for so long has failed */

static struct virtio_queue queue;
static uint8_t chunk[CHUNK];
static uint32_t filled;
static uint32_t used;
static uint32_t device;

static int refill(void)
{
    uint16_t id;
    uint32_t began = board_now_ms();

    if (device == 0) {
        device = virtio_open(VIRTIO_ID_RNG, 0);
        if (device == 0) {
            return -1;
        }
        virtio_queue_init(&queue, device, 0);
        virtio_ready(device);
    }
    virtio_give(&queue, 0, chunk, CHUNK, VIRTIO_DESC_WRITE);
    while (!virtio_take(&queue, &id, &filled)) {
        if (board_now_ms() - began > WAIT_MS) {
            device = 0; /* reset it before the buffer is used again */
            return -1;
        }
    }
    used = 0;
    if (filled > CHUNK) {
        filled = 0;
    }
    return filled > 0 ? 0 : -1;
}

/* No byte is ever handed out twice. */
int board_random(void *buf, size_t len)
{
    uint8_t *p = buf;

    for (; len > 0; len--) {
        if (used == filled && refill() != 0) {
            return -1;
        }
        *p++ = chunk[used];
        chunk[used++] = 0;
    }
    return 0;
}
