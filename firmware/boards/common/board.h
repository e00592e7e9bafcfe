/* What an image asks of the board it runs on. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Starts the clock and the wake-up sources. Called before main. */
void board_init(void);

/* Milliseconds since board_init; wraps. Must be called at least once a second
 * on boards whose counter is narrower than 32 bits. */
uint32_t board_now_ms(void);

/* Idles until a device wants attention, at most `ms` milliseconds. It may
 * return early without cause; it never misses a device that became ready after
 * the caller last looked. */
void board_wait(uint32_t ms);

/* Fills buf with unpredictable bytes. Returns 0, or -1 when there are none. */
int board_random(void *buf, size_t len);

/* Bytes of stack ever used, from the paint laid at reset. */
size_t board_stack_used(void);

/* Paints the part of the stack below the caller. Called by the start code. */
void board_stack_paint(void);

#endif
