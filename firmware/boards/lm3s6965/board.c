/* Clock, idling and entropy of the LM3S6965. */
#include "board.h"
#include "semihosting.h"

#define REG(addr) (*(volatile uint32_t *)(uintptr_t)(addr))

#define SYSTICK_CTRL REG(0xE000E010u)
#define SYSTICK_LOAD REG(0xE000E014u)
#define SYSTICK_VALUE REG(0xE000E018u)
#define SYSTICK_MAX 0x00FFFFFFu

#define NVIC_ENABLE(n) REG(0xE000E100u + 4u * (n))
#define NVIC_CLEAR_PENDING(n) REG(0xE000E280u + 4u * (n))
#define IRQ_TIMER0A 19u
#define IRQ_ETHERNET 42u

#define RUN_CLOCK_GATE1 REG(0x400FE104u)
#define GATE1_TIMER0 (1u << 16)

#define TIMER0_CONFIG REG(0x40030000u)
#define TIMER0_MODE REG(0x40030004u)
#define TIMER0_CONTROL REG(0x4003000Cu)
#define TIMER0_INT_MASK REG(0x40030018u)
#define TIMER0_INT_CLEAR REG(0x40030024u)
#define TIMER0_LOAD REG(0x40030028u)
#define TIMER_ONE_SHOT 1u

#define ETHERNET_INT_STATUS REG(0x40048000u)
#define ETHERNET_INT_ALL 0x7Fu

#define CYCLES_PER_MS 12500u /* the clock divider's reset value */
#define WAIT_MAX_MS 500u     /* less than one turn of the 24-bit counter */

void board_init(void)
{
    SYSTICK_LOAD = SYSTICK_MAX;
    SYSTICK_VALUE = 0;
    SYSTICK_CTRL = 5; /* processor clock, no exception */

    RUN_CLOCK_GATE1 |= GATE1_TIMER0;
    TIMER0_CONTROL = 0;
    TIMER0_CONFIG = 0; /* one 32-bit counter */
    TIMER0_MODE = TIMER_ONE_SHOT;
    TIMER0_INT_MASK = 1;
    NVIC_ENABLE(IRQ_TIMER0A / 32u) = 1u << (IRQ_TIMER0A % 32u);
    NVIC_ENABLE(IRQ_ETHERNET / 32u) = 1u << (IRQ_ETHERNET % 32u);
}

uint32_t board_now_ms(void)
{
    static uint32_t last = SYSTICK_MAX;
    static uint32_t cycles; /* not yet a whole millisecond */
    static uint32_t ms;
    uint32_t now = SYSTICK_VALUE & SYSTICK_MAX;

    cycles += (last - now) & SYSTICK_MAX; /* it counts down */
    last = now;
    ms += cycles / CYCLES_PER_MS;
    cycles %= CYCLES_PER_MS;
    return ms;
}

/* Interrupts are masked: a pending one ends the wait but runs no handler, so
 * one that arrives before the instruction is not lost. */
void board_wait(uint32_t ms)
{
    if (ms == 0) {
        return;
    }
    if (ms > WAIT_MAX_MS) {
        ms = WAIT_MAX_MS;
    }
    TIMER0_LOAD = ms * CYCLES_PER_MS;
    TIMER0_CONTROL = 1;
    __asm__ volatile("wfi" ::: "memory");
    TIMER0_CONTROL = 0;
    TIMER0_INT_CLEAR = 1;
    ETHERNET_INT_STATUS = ETHERNET_INT_ALL;
    NVIC_CLEAR_PENDING(IRQ_TIMER0A / 32u) = 1u << (IRQ_TIMER0A % 32u);
    NVIC_CLEAR_PENDING(IRQ_ETHERNET / 32u) = 1u << (IRQ_ETHERNET % 32u);
}

/* The chip has no entropy source; the host lends its own. */
int board_random(void *buf, size_t len)
{
    static intptr_t source = -1;

    if (source < 0) {
        source = semihosting_open("/dev/urandom");
    }
    if (source < 0) {
        return -1;
    }
    return semihosting_read(source, buf, len) == (intptr_t)len ? 0 : -1;
}
