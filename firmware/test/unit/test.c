#include "test.h"

static void (*out)(const char *text);
static const char *running;
static int passed, failed, failures_here;

static void print_int(long v)
{
    char text[24];
    mcplink_text t = {text, sizeof text, 0};
    if (v < 0) {
        mcplink_priv_text_char(&t, '-');
    }
    mcplink_priv_text_u32(&t, v < 0 ? (uint32_t)-v : (uint32_t)v);
    (void)mcplink_priv_text_end(&t);
    out(text);
}

void test_fail(const char *what, const char *file, int line)
{
    if (failures_here++ == 0) {
        out("FAIL ");
        out(running);
        out("\n");
    }
    out("  ");
    out(file);
    out(":");
    print_int(line);
    out(": ");
    out(what);
    out("\n");
}

void test_int(long got, long want, const char *what, const char *file, int line)
{
    if (got != want) {
        test_fail(what, file, line);
        out("    got ");
        print_int(got);
        out(", want ");
        print_int(want);
        out("\n");
    }
}

void test_text(const void *got, size_t len, const char *want, const char *what, const char *file, int line)
{
    const char *text = got;
    char one[2] = {0, 0};
    if (strlen(want) == len && (len == 0 || memcmp(got, want, len) == 0)) {
        return;
    }
    test_fail(what, file, line);
    out("    got  ");
    for (size_t i = 0; i < len; i++) {
        one[0] = text[i] >= ' ' ? text[i] : '?';
        out(one);
    }
    out("\n    want ");
    out(want);
    out("\n");
}

void test_run(const test_case *cases, void (*print)(const char *text))
{
    out = print;
    for (; cases->name != NULL; cases++) {
        running = cases->name;
        failures_here = 0;
        cases->run();
        if (failures_here == 0) {
            passed++;
        } else {
            failed++;
        }
    }
}

int test_summary(void (*print)(const char *text))
{
    out = print;
    print_int(passed);
    out(" passed, ");
    print_int(failed);
    out(" failed\n");
    return failed;
}

int test_same(const char *a, const char *b)
{
    return strlen(a) == strlen(b) && memcmp(a, b, strlen(a)) == 0;
}

int test_contains(const char *text, const char *part)
{
    size_t n = strlen(part), len = strlen(text);
    for (size_t i = 0; i + n <= len; i++) {
        if (memcmp(text + i, part, n) == 0) {
            return 1;
        }
    }
    return 0;
}
