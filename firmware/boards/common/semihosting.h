/* Services of the debugger or emulator the image runs under.
 *
 * The host side can open any file of the host: run only images you built. */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

#include <stddef.h>
#include <stdint.h>

/* One call; the instruction sequence is the board's. */
intptr_t semihosting_call(uintptr_t op, void *args);

/* Writes to the host's standard output. */
void semihosting_write(const char *text, size_t len);
void semihosting_puts(const char *text);

/* Copies the command line, words separated by blanks. Returns 0, or -1. */
int semihosting_cmdline(char *buf, size_t cap);

/* Ends the emulation with this exit code. */
void semihosting_exit(int code) __attribute__((noreturn));

/* Opens a host file for reading. Returns a handle, or -1. */
intptr_t semihosting_open(const char *path);

/* Reads up to len bytes. Returns how many; 0 at the end, -1 on failure. */
intptr_t semihosting_read(intptr_t handle, void *buf, size_t len);

void semihosting_close(intptr_t handle);

#endif
