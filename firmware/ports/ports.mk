# Host programs of the ports. Paths begin at firmware/.
#
#   posix-test  the port of POSIX sockets alone, with sanitizers
#   tls-bench   build/host/tls_bench, which the Go tests drive; needs libmbedtls-dev

TLS_SRCS := $(addprefix ports/tls-mbedtls/, mcplink_tls.c ip_literal.c tls_certificate.c tls_words.c)
TLS_BENCH_SRCS := ports/tls-mbedtls/bench/tls_bench.c $(TLS_SRCS) ports/posix/mcplink_posix.c ports/posix/mcplink_stream.c $(sort $(wildcard src/*.c))

.PHONY: tls-bench
tls-bench:
	+@printf '#include <mbedtls/ssl.h>\n' | $(CC) -x c -fsyntax-only - 2>/dev/null || \
	    $(call skip,mbedtls/ssl.h,libmbedtls-dev); $(MAKE) --no-print-directory build/host/tls_bench

# Once with every warning, once with the sanitizers: gcc's -Wconversion misjudges
# code the sanitizers have rewritten.
build/host/tls_bench: $(TLS_BENCH_SRCS) $(wildcard include/mcplink/*.h ports/tls-mbedtls/*.h ports/posix/*.h)
	@mkdir -p $(@D)
	for f in ports/tls-mbedtls/bench/tls_bench.c $(TLS_SRCS); do \
	    $(CC) -std=c99 -Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -Wstrict-prototypes \
	    -Iinclude -Iports/posix -Iports/tls-mbedtls -fsyntax-only $$f || exit 1; done
	$(CC) -std=c99 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
	    -Iinclude -Isrc -Iports/posix -Iports/tls-mbedtls -o $@ $(TLS_BENCH_SRCS) -lmbedtls -lmbedx509 -lmbedcrypto

POSIX_TEST_SRCS := $(sort $(wildcard ports/posix/*.c)) ports/posix/test/posix_test.c test/unit/test.c $(sort $(wildcard src/*.c))
POSIX_TEST_FLAGS := -std=c99 -Iinclude -Isrc -Itest/unit -Iports/posix

.PHONY: posix-test
build/host/posix_test: $(POSIX_TEST_SRCS) $(wildcard include/mcplink/*.h ports/posix/*.h test/unit/*.h)
	@mkdir -p $(@D)
	$(GCC) $(POSIX_TEST_FLAGS) -Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -Wstrict-prototypes -O2 -fsyntax-only $(filter ports/%,$(POSIX_TEST_SRCS))
	$(GCC) $(POSIX_TEST_FLAGS) -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -o $@ $(POSIX_TEST_SRCS)

posix-test: build/host/posix_test
	@echo "port of POSIX sockets:"; build/host/posix_test
