#include "log.h"

#include "board.h"
#include "semihosting.h"
#include "text_out.h"

void log_line(const char *text, const char *more)
{
    static char line[160];
    text_out out;

    text_begin(&out, line, sizeof line - 1);
    text_put(&out, text);
    text_put(&out, more);
    line[out.len++] = '\n';
    semihosting_write(line, out.len);
}

void log_stack(void)
{
    static char line[32];
    text_out out;

    text_begin(&out, line, sizeof line);
    text_put(&out, "stack used=");
    text_unsigned(&out, (uint32_t)board_stack_used());
    text_put(&out, "\n");
    semihosting_write(line, out.len);
}
