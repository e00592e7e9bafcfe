/* 64-bit arithmetic the compiler calls on 32-bit targets. Only halves are shifted
 * here, so that no function ends up calling itself. */
#include <stdint.h>

typedef union wide {
    uint64_t all;
    struct {
        uint32_t low; /* both targets are little-endian */
        uint32_t high;
    } half;
} wide;

uint64_t __ashldi3(uint64_t n, int by);
uint64_t __lshrdi3(uint64_t n, int by);
uint64_t __udivmoddi4(uint64_t n, uint64_t by, uint64_t *rest);
uint64_t __udivdi3(uint64_t n, uint64_t by);
uint64_t __umoddi3(uint64_t n, uint64_t by);

uint64_t __ashldi3(uint64_t n, int by)
{
    wide w = {n};

    if (by >= 32) {
        w.half.high = w.half.low << (by - 32);
        w.half.low = 0;
    } else if (by > 0) {
        w.half.high = w.half.high << by | w.half.low >> (32 - by);
        w.half.low <<= by;
    }
    return w.all;
}

uint64_t __lshrdi3(uint64_t n, int by)
{
    wide w = {n};

    if (by >= 32) {
        w.half.low = w.half.high >> (by - 32);
        w.half.high = 0;
    } else if (by > 0) {
        w.half.low = w.half.low >> by | w.half.high << (32 - by);
        w.half.high >>= by;
    }
    return w.all;
}

/* Long division, one bit at a time. Dividing by zero gives all ones. */
uint64_t __udivmoddi4(uint64_t n, uint64_t by, uint64_t *rest)
{
    wide quotient = {n};
    wide r = {0};

    for (int i = 0; i < 64; i++) {
        uint32_t carry = r.half.high >> 31;

        r.half.high = r.half.high << 1 | r.half.low >> 31;
        r.half.low = r.half.low << 1 | quotient.half.high >> 31;
        quotient.half.high = quotient.half.high << 1 | quotient.half.low >> 31;
        quotient.half.low <<= 1;
        if (carry != 0 || r.all >= by) {
            r.all -= by;
            quotient.half.low |= 1;
        }
    }
    if (rest != 0) {
        *rest = r.all;
    }
    return quotient.all;
}

uint64_t __udivdi3(uint64_t n, uint64_t by) { return __udivmoddi4(n, by, 0); }

uint64_t __umoddi3(uint64_t n, uint64_t by)
{
    uint64_t rest;

    (void)__udivmoddi4(n, by, &rest);
    return rest;
}
