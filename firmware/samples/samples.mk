# Programs for this machine. Paths begin at firmware/.
#
#   samples              mcplink-provider and mcplink-plant, in build/host/
#   samples-checked      in build/host-checked/, with address and undefined behaviour
#                        sanitizers: the end-to-end tests run these
#   samples-without-tls  in build/host-without-tls/, for machines without mbed TLS
#
# With mbed TLS (libmbedtls-dev) they have --tls; SAMPLES_TLS=0 leaves it out.

include samples/surface.mk

SAMPLES_TLS ?= $(shell printf '\043include <mbedtls/ssl.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)

SAMPLES_SRCS := $(sort $(MCP_SURFACE_SRCS) $(wildcard samples/host/*.c) ports/posix/mcplink_posix.c ports/posix/mcplink_stream.c)
SAMPLES_LIBS :=
SAMPLES_FLAGS = -std=c99 -g -Iinclude -Isamples -Isamples/host -Iports/posix -DMCPLINK_MUX=1 -DHOST_TLS=$(SAMPLES_TLS)
SAMPLES_WARNINGS := -Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -Wstrict-prototypes
ifeq ($(SAMPLES_TLS),1)
SAMPLES_SRCS += $(sort $(wildcard ports/tls-mbedtls/*.c))
SAMPLES_FLAGS += -Iports/tls-mbedtls
SAMPLES_LIBS += -lmbedtls -lmbedx509 -lmbedcrypto
endif
SAMPLES_LIBRARY := $(sort $(wildcard src/*.c))
SAMPLES_HEADERS := $(wildcard include/mcplink/*.h src/*.h samples/*.h samples/host/*.h ports/posix/*.h ports/tls-mbedtls/*.h)

SAMPLES_DIR ?= build/host

.PHONY: samples samples-checked samples-without-tls
samples: $(SAMPLES_DIR)/mcplink-provider $(SAMPLES_DIR)/mcplink-plant
samples-checked: build/host-checked/mcplink-provider build/host-checked/mcplink-plant
samples-without-tls:
	$(MAKE) samples SAMPLES_TLS=0 SAMPLES_DIR=build/host-without-tls

$(SAMPLES_DIR)/mcplink-% : SAMPLES_MODE := -O2
build/host-checked/mcplink-% : SAMPLES_MODE := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# Warnings in a pass of their own: gcc's -Wconversion misjudges code that the
# sanitizers have rewritten.
define SAMPLES_LINK
	@mkdir -p $(@D)
	for f in samples/$*/main.c $(SAMPLES_SRCS); do $(CC) $(SAMPLES_FLAGS) $(SAMPLES_WARNINGS) -fsyntax-only $$f || exit 1; done
	$(CC) $(SAMPLES_FLAGS) -Isrc $(SAMPLES_MODE) -o $@ samples/$*/main.c $(SAMPLES_SRCS) $(SAMPLES_LIBRARY) $(SAMPLES_LIBS)
endef

$(SAMPLES_DIR)/mcplink-%: samples/%/main.c $(SAMPLES_SRCS) $(SAMPLES_LIBRARY) $(SAMPLES_HEADERS)
	$(SAMPLES_LINK)

build/host-checked/mcplink-%: samples/%/main.c $(SAMPLES_SRCS) $(SAMPLES_LIBRARY) $(SAMPLES_HEADERS)
	$(SAMPLES_LINK)
