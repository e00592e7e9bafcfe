/* lwIP's view of the compiler: C99, no C library. */
#ifndef LWIP_ARCH_CC_H
#define LWIP_ARCH_CC_H

#include <stdint.h>

#define LWIP_NO_INTTYPES_H 1
#define LWIP_NO_CTYPE_H 1
#define LWIP_NO_UNISTD_H 1

#define X8_F "02x"
#define U16_F "u"
#define S16_F "d"
#define X16_F "x"
#define U32_F "u"
#define S32_F "d"
#define X32_F "x"
#define SZT_F "u"

/* Neither is used as long as LWIP_DEBUG and LWIP_STATS stay off; defining both
 * keeps <stdio.h> and <stdlib.h> out. */
#define LWIP_PLATFORM_DIAG(x)
#define LWIP_PLATFORM_ASSERT(x) mcplink_lwip_failed(x)

/* Called for a broken invariant of lwIP. The image defines it; it must not
 * return. */
void mcplink_lwip_failed(const char *what);

/* Draws the first local port. The image defines it. */
uint32_t mcplink_lwip_random32(void);
#define LWIP_RAND() mcplink_lwip_random32()

#endif
