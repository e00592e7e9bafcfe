#include <stdio.h>

#include "test.h"

static void print(const char *text)
{
    (void)fputs(text, stdout);
}

int main(void)
{
    return test_main(print) == 0 ? 0 : 1;
}
