/* Addresses of the "virt" machine. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

#define REG32(addr) (*(volatile uint32_t *)(uintptr_t)(addr))

#define VIRTIO_FIRST 0x10001000u
#define VIRTIO_STEP 0x1000u
#define VIRTIO_SLOTS 8u

#define IRQ_VIRTIO_FIRST 1u
#define IRQ_UART 10u

/* Quiets every virtio device that asked for attention. */
void virtio_acknowledge(void);

#endif
