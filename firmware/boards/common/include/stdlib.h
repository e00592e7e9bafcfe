/* The part of <stdlib.h> that third-party sources ask for. */
#ifndef BOARD_STDLIB_H
#define BOARD_STDLIB_H

int atoi(const char *text); /* for a function of lwIP that no image keeps */
void exit(int code) __attribute__((noreturn));

#endif
