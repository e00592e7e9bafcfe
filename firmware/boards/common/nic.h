/* An Ethernet controller that is polled: one frame in, one frame out. */
#ifndef NIC_H
#define NIC_H

#include <stddef.h>
#include <stdint.h>

#define NIC_FRAME_MAX 1514u /* without the checksum */

/* Starts the controller and reads its address. Returns 0, or -1 when the board
 * has none. */
int nic_init(uint8_t mac[6]);

/* Sends one frame. Returns 0, or -1 when it was dropped. */
int nic_send(const void *frame, size_t len);

/* Copies the oldest received frame into buf. Returns its length; 0 when there
 * is none. A frame longer than cap is dropped. */
size_t nic_receive(void *buf, size_t cap);

#endif
