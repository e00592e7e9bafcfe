/* Reset, faults and the semihosting instruction of the Cortex-M3. */
#include "board.h"
#include "semihosting.h"

#include <string.h>

int main(void);
void reset_handler(void) __attribute__((noreturn));

extern uint32_t link_data_start[], link_data_end[], link_data_load[];
extern uint32_t link_bss_start[], link_bss_end[];
extern uint32_t link_stack_top[];

static void fault_handler(void)
{
    semihosting_puts("fault\n");
    semihosting_exit(70);
}

/* Interrupts stay masked for good (they only end board_wait), so the table
 * stops at the last system exception. */
__attribute__((section(".vectors"), used))
static const void *const vectors[16] = {
    link_stack_top,
    (const void *)reset_handler,
    (const void *)fault_handler, /* NMI */
    (const void *)fault_handler, /* hard fault */
    (const void *)fault_handler, /* memory management */
    (const void *)fault_handler, /* bus fault */
    (const void *)fault_handler, /* usage fault */
};

void reset_handler(void)
{
    __asm__ volatile("cpsid i" ::: "memory");
    memcpy(link_data_start, link_data_load,
           (size_t)((uintptr_t)link_data_end - (uintptr_t)link_data_start));
    memset(link_bss_start, 0,
           (size_t)((uintptr_t)link_bss_end - (uintptr_t)link_bss_start));
    board_stack_paint();
    board_init();
    semihosting_exit(main());
}

intptr_t semihosting_call(uintptr_t op, void *args)
{
    register uintptr_t r0 __asm__("r0") = op;
    register void *r1 __asm__("r1") = args;

    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (intptr_t)r0;
}
