/* The same tests in an image, whose start code calls this main; see boards/. */
#include "test.h"

void unit_print(const char *text, size_t len); /* the board's */

static void print(const char *text)
{
    unit_print(text, strlen(text));
}

int main(void)
{
    return test_main(print);
}
