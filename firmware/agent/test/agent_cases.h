#ifndef AGENT_CASES_H
#define AGENT_CASES_H

#include "test.h"

extern const test_case outbox_cases[], target_cases[], bare_cases[], thread_cases[];

#endif
