/* Reset, traps and the semihosting sequence of the RV32 machine. */
#include "board.h"
#include "semihosting.h"

#include <string.h>

int main(void);
void start(void) __attribute__((naked, noreturn, section(".start")));

extern uint32_t link_bss_start[], link_bss_end[];

void start(void)
{
    __asm__ volatile("la sp, link_stack_top\n\t"
             "la t0, trap_entry\n\t"
             "csrw mtvec, t0\n\t"
             "j start_image");
}

__attribute__((used, noreturn, aligned(4)))
static void trap_entry(void)
{
    semihosting_puts("fault\n");
    semihosting_exit(70);
}

__attribute__((used, noreturn))
static void start_image(void)
{
    memset(link_bss_start, 0,
           (size_t)((uintptr_t)link_bss_end - (uintptr_t)link_bss_start));
    board_stack_paint();
    board_init();
    semihosting_exit(main());
}

/* The three instructions mark the call only when none is compressed and they
 * lie in one page. */
intptr_t semihosting_call(uintptr_t op, void *args)
{
    register uintptr_t a0 __asm__("a0") = op;
    register void *a1 __asm__("a1") = args;

    __asm__ volatile(".option push\n\t"
             ".option norvc\n\t"
             ".balign 16\n\t"
             "slli zero, zero, 0x1f\n\t"
             "ebreak\n\t"
             "srai zero, zero, 7\n\t"
             ".option pop"
             : "+r"(a0)
             : "r"(a1)
             : "memory");
    return (intptr_t)a0;
}
