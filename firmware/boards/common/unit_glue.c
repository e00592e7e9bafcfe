/* Runs the library's unit tests on a board. Their main is compiled as unit_main. */
#include <stddef.h>

#include "log.h"
#include "semihosting.h"

int unit_main(void);
void unit_print(const char *text, size_t len);

void unit_print(const char *text, size_t len) { semihosting_write(text, len); }

int main(void)
{
    int failed = unit_main();

    log_stack();
    return failed == 0 ? 0 : 1;
}
