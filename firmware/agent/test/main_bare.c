#include <stdio.h>

#include "agent_cases.h"

static void print(const char *text) { (void)fputs(text, stdout); }

int main(void)
{
    test_run(outbox_cases, print);
    test_run(target_cases, print);
    test_run(bare_cases, print);
    return test_summary(print) == 0 ? 0 : 1;
}
