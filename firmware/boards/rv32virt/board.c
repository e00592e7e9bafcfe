/* Clock and idling of the "virt" machine. */
#include "board.h"
#include "machine.h"

#define TIME_LOW REG32(0x0200BFF8u)
#define TIME_HIGH REG32(0x0200BFFCu)
#define COMPARE_LOW REG32(0x02004000u)
#define COMPARE_HIGH REG32(0x02004004u)
#define TICKS_PER_MS 10000u

#define PLIC_PRIORITY(irq) REG32(0x0C000000u + 4u * (irq))
#define PLIC_ENABLE REG32(0x0C002000u)
#define PLIC_THRESHOLD REG32(0x0C200000u)
#define PLIC_CLAIM REG32(0x0C200004u)

#define MIE_TIMER (1u << 7)
#define MIE_EXTERNAL (1u << 11)

static uint64_t ticks(void)
{
    uint32_t high;
    uint32_t low;

    do {
        high = TIME_HIGH;
        low = TIME_LOW;
    } while (high != TIME_HIGH);
    return (uint64_t)high << 32 | low;
}

static void enable_irq(uint32_t irq)
{
    PLIC_PRIORITY(irq) = 1;
    PLIC_ENABLE |= 1u << irq;
}

void board_init(void)
{
    for (uint32_t i = 0; i < VIRTIO_SLOTS; i++) {
        enable_irq(IRQ_VIRTIO_FIRST + i);
    }
    enable_irq(IRQ_UART);
    PLIC_THRESHOLD = 0;
    __asm__ volatile("csrw mie, %0" ::"r"(MIE_TIMER | MIE_EXTERNAL));
}

/* Adds up the ticks of each call, so that the 64-bit count is never divided. */
uint32_t board_now_ms(void)
{
    static uint32_t last;
    static uint32_t part;
    static uint32_t ms;
    uint32_t now = TIME_LOW;
    uint32_t passed = now - last;

    last = now;
    ms += passed / TICKS_PER_MS;
    part += passed % TICKS_PER_MS;
    if (part >= TICKS_PER_MS) {
        part -= TICKS_PER_MS;
        ms++;
    }
    return ms;
}

/* Interrupts are masked in mstatus: a pending one ends the wait but is not
 * taken, so one that arrives before the instruction is not lost. */
void board_wait(uint32_t ms)
{
    uint32_t irq;

    if (ms == 0) {
        return;
    }
    uint64_t until = ticks() + (uint64_t)ms * TICKS_PER_MS;
    COMPARE_HIGH = UINT32_MAX;
    COMPARE_LOW = (uint32_t)until;
    COMPARE_HIGH = (uint32_t)(until >> 32);
    __asm__ volatile("wfi" ::: "memory");
    virtio_acknowledge();
    while ((irq = PLIC_CLAIM) != 0) {
        PLIC_CLAIM = irq;
    }
}
