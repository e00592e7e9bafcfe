/* The names the ARM run-time ABI gives to the copying functions; the compiler
 * calls whichever fits the alignment. */
#include <string.h>

void __aeabi_memcpy(void *to, const void *from, size_t n);
void __aeabi_memcpy4(void *to, const void *from, size_t n);
void __aeabi_memcpy8(void *to, const void *from, size_t n);
void __aeabi_memmove(void *to, const void *from, size_t n);
void __aeabi_memmove4(void *to, const void *from, size_t n);
void __aeabi_memmove8(void *to, const void *from, size_t n);
void __aeabi_memset(void *to, size_t n, int byte);
void __aeabi_memset4(void *to, size_t n, int byte);
void __aeabi_memset8(void *to, size_t n, int byte);
void __aeabi_memclr(void *to, size_t n);
void __aeabi_memclr4(void *to, size_t n);
void __aeabi_memclr8(void *to, size_t n);

void __aeabi_memcpy(void *to, const void *from, size_t n) { memcpy(to, from, n); }
void __aeabi_memcpy4(void *to, const void *from, size_t n) { memcpy(to, from, n); }
void __aeabi_memcpy8(void *to, const void *from, size_t n) { memcpy(to, from, n); }
void __aeabi_memmove(void *to, const void *from, size_t n) { memmove(to, from, n); }
void __aeabi_memmove4(void *to, const void *from, size_t n) { memmove(to, from, n); }
void __aeabi_memmove8(void *to, const void *from, size_t n) { memmove(to, from, n); }

/* The length comes before the byte here. */
void __aeabi_memset(void *to, size_t n, int byte) { memset(to, byte, n); }
void __aeabi_memset4(void *to, size_t n, int byte) { memset(to, byte, n); }
void __aeabi_memset8(void *to, size_t n, int byte) { memset(to, byte, n); }
void __aeabi_memclr(void *to, size_t n) { memset(to, 0, n); }
void __aeabi_memclr4(void *to, size_t n) { memset(to, 0, n); }
void __aeabi_memclr8(void *to, size_t n) { memset(to, 0, n); }
