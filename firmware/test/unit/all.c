#include "test.h"

int test_main(void (*print)(const char *text))
{
    test_run(util_cases, print);
    test_run(frame_cases, print);
    test_run(handshake_cases, print);
    test_run(ws_cases, print);
    test_run(link_cases, print);
    test_run(retry_cases, print);
    test_run(keepalive_cases, print);
    test_run(provider_cases, print);
    test_run(mux_cases, print);
    test_run(envelope_cases, print);
    test_run(trace_cases, print);
    test_run(event_cases, print);
    return test_summary(print);
}
