#include "board.h"

#define PAINT 0xC5C5C5C5u
#define MARGIN 128u /* bytes, kept clear of the painter's own frame */

/* Bounds set by the link script. */
extern uint32_t link_stack_bottom[];
extern uint32_t link_stack_top[];

/* The two are ends of one area, which the compiler cannot know: they are compared
 * as numbers. */
static uintptr_t stack_bottom(void) { return (uintptr_t)link_stack_bottom; }

static uintptr_t stack_top(void) { return (uintptr_t)link_stack_top; }

void board_stack_paint(void)
{
    uintptr_t end = (uintptr_t)__builtin_frame_address(0) - MARGIN;

    for (uintptr_t at = stack_bottom(); at < end; at += sizeof(uint32_t)) {
        *(volatile uint32_t *)at = PAINT;
    }
}

size_t board_stack_used(void)
{
    uintptr_t at = stack_bottom();

    while (at < stack_top() && *(const volatile uint32_t *)at == PAINT) {
        at += sizeof(uint32_t);
    }
    return stack_top() - at;
}
