/* Judges the frame decoder by frames.txt: each case whole and byte by byte. */
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

#define CAP 256u

static uint8_t stream[4096];
static size_t stream_len;
static char name[200], want[4096], got[4096];

static void add(char *to, size_t cap, const char *text, size_t len)
{
    size_t at = strlen(to);
    if (at + len + 2 > cap) {
        fprintf(stderr, "golden: a case is too long\n");
        exit(2);
    }
    memcpy(to + at, text, len);
    memcpy(to + at + len, "\n", 2);
}

static void put_event(const mcplink_frame_decoder *d, int event)
{
    char line[512];
    const char *control = (const char *)d->control;
    switch (event) {
    case MCPLINK_FRAME_MESSAGE:
        (void)snprintf(line, sizeof line, "message %.*s", (int)d->len, (const char *)d->buf);
        break;
    case MCPLINK_FRAME_PING:
        (void)snprintf(line, sizeof line, "ping %s", control);
        break;
    case MCPLINK_FRAME_PONG:
        (void)snprintf(line, sizeof line, "pong %s", control);
        break;
    case MCPLINK_FRAME_CLOSE:
        (void)snprintf(line, sizeof line, "close %u %s", (unsigned)d->close_code, mcplink_frame_reason(d));
        break;
    default:
        (void)snprintf(line, sizeof line, "error %s %u",
                       event == MCPLINK_ERR_TOO_LARGE     ? "too-large"
                       : event == MCPLINK_ERR_UNSUPPORTED ? "unsupported"
                                                          : "protocol",
                       (unsigned)d->reply_code);
    }
    add(got, sizeof got, line, strlen(line));
}

static void replay(size_t step)
{
    mcplink_frame_decoder d;
    uint8_t *buf = malloc(CAP); /* exact, so that a byte too far is noticed */
    size_t at = 0;
    int event = 0;
    mcplink_frame_init(&d, buf, CAP);
    got[0] = '\0';
    while (at < stream_len && event >= 0) {
        size_t end = at + step < stream_len ? at + step : stream_len, used;
        event = mcplink_frame_feed(&d, stream + at, end - at, &used);
        at += used;
        if (event != MCPLINK_FRAME_MORE && !(event == MCPLINK_ERR_CLOSED)) {
            put_event(&d, event);
        }
    }
    free(buf);
}

static void run_case(void)
{
    replay(stream_len);
    CHECK_TEXT(got, want);
    replay(1);
    CHECK_TEXT(got, want);
}

static void print(const char *text)
{
    (void)fputs(text, stdout);
}

static void finish_case(void)
{
    const test_case table[] = {{name, run_case}, {NULL, NULL}};
    if (name[0] != '\0') {
        test_run(table, print);
    }
    stream_len = 0;
    want[0] = '\0';
}

static void read_hex(const char *text)
{
    char *end;
    for (unsigned long v = strtoul(text, &end, 16); end != text; v = strtoul(text, &end, 16)) {
        stream[stream_len++ % sizeof stream] = (uint8_t)v;
        text = end;
    }
}

static void read_line(char *line)
{
    size_t n = strlen(line);
    if (n > 0 && line[n - 1] == '\n') {
        line[--n] = '\0';
    }
    if (memcmp(line, "case ", 5) == 0) {
        finish_case();
        (void)snprintf(name, sizeof name, "%s", line + 5);
    } else if (memcmp(line, "in ", 3) == 0) {
        read_hex(line + 3);
    } else if (memcmp(line, "want ", 5) == 0) {
        add(want, sizeof want, line + 5, n - 5);
    }
}

int main(int argc, char **argv)
{
    static char line[2048];
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (f == NULL) {
        fprintf(stderr, "usage: golden_test frames.txt\n");
        return 2;
    }
    while (fgets(line, sizeof line, f) != NULL) {
        read_line(line);
    }
    finish_case();
    (void)fclose(f);
    return test_summary(print) == 0 ? 0 : 1;
}
