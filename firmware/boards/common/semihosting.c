#include "semihosting.h"

#include <string.h>

enum {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_GET_CMDLINE = 0x15,
    SYS_EXIT_EXTENDED = 0x20
};

enum { MODE_READ_BINARY = 1, MODE_WRITE = 4 };

#define APPLICATION_EXIT 0x20026u

static intptr_t open_as(const char *path, uintptr_t mode)
{
    uintptr_t args[3] = { (uintptr_t)path, mode, strlen(path) };

    return semihosting_call(SYS_OPEN, args);
}

void semihosting_write(const char *text, size_t len)
{
    /* ":tt" opened for writing is the host's standard output. */
    static intptr_t console = -1;

    if (console < 0) {
        console = open_as(":tt", MODE_WRITE);
    }
    uintptr_t args[3] = { (uintptr_t)console, (uintptr_t)text, len };
    (void)semihosting_call(SYS_WRITE, args);
}

void semihosting_puts(const char *text)
{
    semihosting_write(text, strlen(text));
}

int semihosting_cmdline(char *buf, size_t cap)
{
    uintptr_t args[2] = { (uintptr_t)buf, cap };

    return semihosting_call(SYS_GET_CMDLINE, args) == 0 ? 0 : -1;
}

void semihosting_exit(int code)
{
    uintptr_t args[2] = { APPLICATION_EXIT, (uintptr_t)code };

    for (;;) {
        (void)semihosting_call(SYS_EXIT_EXTENDED, args);
    }
}

intptr_t semihosting_open(const char *path)
{
    return open_as(path, MODE_READ_BINARY);
}

intptr_t semihosting_read(intptr_t handle, void *buf, size_t len)
{
    uintptr_t args[3] = { (uintptr_t)handle, (uintptr_t)buf, len };
    intptr_t left = semihosting_call(SYS_READ, args);

    /* The answer counts the bytes that were not read. */
    if (left < 0 || (size_t)left > len) {
        return -1;
    }
    return (intptr_t)(len - (size_t)left);
}

void semihosting_close(intptr_t handle)
{
    uintptr_t args[1] = { (uintptr_t)handle };

    (void)semihosting_call(SYS_CLOSE, args);
}
