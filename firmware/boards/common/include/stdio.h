/* Included by mbedTLS, for functions of its that no image keeps. */
#ifndef BOARD_STDIO_H
#define BOARD_STDIO_H

#include <stddef.h>

int snprintf(char *out, size_t cap, const char *format, ...);

#endif
