/* A test harness that needs no C library: it also runs on bare metal. */
#ifndef TEST_H
#define TEST_H

#include "internal.h"

typedef struct test_case {
    const char *name; /* begins with the rule it pins; NULL ends a table */
    void (*run)(void);
} test_case;

extern const test_case util_cases[], frame_cases[], handshake_cases[], ws_cases[], link_cases[], retry_cases[],
    keepalive_cases[], provider_cases[], mux_cases[], envelope_cases[], trace_cases[], event_cases[];

/* Runs a table; names of failed cases and what failed go to print. */
void test_run(const test_case *cases, void (*print)(const char *text));

/* Runs all tables above, prints the line `N passed, N failed`, returns the number
 * failed. */
int test_main(void (*print)(const char *text));
int test_summary(void (*print)(const char *text));

/* Records a failure of the running case. */
void test_fail(const char *what, const char *file, int line);
void test_int(long got, long want, const char *what, const char *file, int line);
void test_text(const void *got, size_t len, const char *want, const char *what, const char *file, int line);

#define CHECK(cond) ((cond) ? (void)0 : test_fail(#cond, __FILE__, __LINE__))
#define CHECK_INT(got, want) test_int((long)(got), (long)(want), #got, __FILE__, __LINE__)
#define CHECK_TEXT(got, want) test_text((got), strlen(got), (want), #got, __FILE__, __LINE__)
#define CHECK_BYTES(got, len, want) test_text((got), (len), (want), #got, __FILE__, __LINE__)

int test_same(const char *a, const char *b);
int test_contains(const char *text, const char *part);

#endif
