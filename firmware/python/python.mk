# The shared library and the Python binding. Paths begin at firmware/.
#
#   shared        build/shared/libmcplink.so: library, POSIX port, TLS if mbed TLS is
#                 there (libmbedtls-dev; SHARED_TLS=0 leaves it out), and the handle of
#                 python/native/client.h
#   python-test   the binding against the broker, built from this checkout

SHARED_TLS ?= $(shell printf '\043include <mbedtls/ssl.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)

SHARED_SRCS := $(sort $(wildcard src/*.c) python/native/client.c agent/wake_port.c ports/posix/mcplink_posix.c ports/posix/mcplink_stream.c)
SHARED_FLAGS = -std=c99 -Iinclude -Iagent -Iports/posix -Ipython/native -DCLIENT_TLS=$(SHARED_TLS)
SHARED_WARNINGS := -Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -Wstrict-prototypes
SHARED_LIBS :=
ifeq ($(SHARED_TLS),1)
SHARED_SRCS += $(sort $(wildcard ports/tls-mbedtls/*.c))
SHARED_FLAGS += -Iports/tls-mbedtls
SHARED_LIBS += -lmbedtls -lmbedx509 -lmbedcrypto
endif

PYTHON ?= python3

.PHONY: shared python-test
shared: build/shared/libmcplink.so

# Only what is marked MCPLINK_API is to be seen.
build/shared/libmcplink.so: $(SHARED_SRCS) $(wildcard include/mcplink/*.h src/*.h agent/*.h ports/posix/*.h ports/tls-mbedtls/*.h python/native/*.h)
	@mkdir -p $(@D)
	$(CC) $(SHARED_FLAGS) $(SHARED_WARNINGS) -fsyntax-only python/native/client.c
	$(CC) $(SHARED_FLAGS) -O2 -g -fPIC -fvisibility=hidden -DMCPLINK_BUILD_DLL -shared -Wl,--no-undefined \
	    -o $@ $(SHARED_SRCS) $(SHARED_LIBS)

python-test: shared
	@$(call have,$(PYTHON),python3); $(call have,go,golang); \
	(cd .. && go build -o firmware/build/shared/broker ./cmd/broker) && cd python && \
	PYTHONDONTWRITEBYTECODE=1 MCPLINK_LIBRARY=../build/shared/libmcplink.so MCPLINK_BROKER=../build/shared/broker \
	    $(PYTHON) -X dev -W error -m unittest discover -s tests -t .
