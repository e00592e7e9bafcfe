/* The functions of <string.h> that the compiler and the images call. Built
 * without strict aliasing: copies go by words. */
#include <stdint.h>
#include <string.h>

/* Copies from the lowest byte up, so the areas may overlap when `to` is below. */
static void copy_up(unsigned char *to, const unsigned char *from, size_t n)
{
    if ((((uintptr_t)to | (uintptr_t)from) & 3u) == 0) {
        for (; n >= 4; n -= 4, to += 4, from += 4) {
            *(uint32_t *)(void *)to = *(const uint32_t *)(const void *)from;
        }
    }
    while (n-- > 0) {
        *to++ = *from++;
    }
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    copy_up(to, from, n);
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;

    if ((uintptr_t)t - (uintptr_t)f >= n) {
        copy_up(t, f, n);
        return to;
    }
    while (n-- > 0) {
        t[n] = f[n];
    }
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    unsigned char *t = to;

    while (n-- > 0) {
        *t++ = (unsigned char)byte;
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a;
    const unsigned char *y = b;

    for (; n > 0; n--, x++, y++) {
        if (*x != *y) {
            return *x < *y ? -1 : 1;
        }
    }
    return 0;
}

void *memchr(const void *s, int byte, size_t n)
{
    const unsigned char *p = s;

    for (; n > 0; n--, p++) {
        if (*p == (unsigned char)byte) {
            return (void *)(uintptr_t)p;
        }
    }
    return NULL;
}

size_t strlen(const char *s)
{
    size_t n = 0;

    while (s[n] != '\0') {
        n++;
    }
    return n;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (; n > 0; n--, a++, b++) {
        if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        }
        if (*a == '\0') {
            return 0;
        }
    }
    return 0;
}

char *strchr(const char *s, int c)
{
    for (;; s++) {
        if (*s == (char)c) {
            return (char *)(uintptr_t)s;
        }
        if (*s == '\0') {
            return NULL;
        }
    }
}

char *strstr(const char *s, const char *what)
{
    size_t n = strlen(what);

    for (;; s++) {
        if (strncmp(s, what, n) == 0) {
            return (char *)(uintptr_t)s;
        }
        if (*s == '\0') {
            return NULL;
        }
    }
}
