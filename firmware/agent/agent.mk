# The agent, its tests, and what of the ESP-IDF component can be checked without
# ESP-IDF. Paths begin at firmware/.
#
#   agent-test     the agent alone (address and undefined behaviour sanitizers), on
#                  POSIX threads (ThreadSanitizer), and for machines without a libc
#   agent-device   build/agent/device, which the Go tests run against a broker
#   idf-component  build/espressif/components/mcplink: the component with all its
#                  sources, the folder to build with or to publish
#   idf-check      types and syntax of that folder against espressif/check/include, and
#                  its Kconfig, manifest and CMake lists. It proves no more than that

AGENT_FLAGS := -std=c99 -g -Iinclude -Iagent -Iports/posix
AGENT_TEST_FLAGS := $(AGENT_FLAGS) -Isrc -Itest/unit -Isamples
AGENT_WARNINGS := -Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -Wstrict-prototypes
AGENT_LIBRARY := $(sort $(wildcard src/*.c))
AGENT_CORE := agent/agent.c agent/outbox.c agent/target.c
AGENT_THREADS := $(AGENT_CORE) agent/os_pthread.c agent/wake_port.c ports/posix/mcplink_posix.c ports/posix/mcplink_stream.c
AGENT_HEADERS := $(wildcard include/mcplink/*.h src/*.h agent/*.h agent/test/*.h test/unit/*.h ports/posix/*.h samples/*.h)
AGENT_TSAN := -O1 -fsanitize=thread -pthread

include samples/surface.mk

.PHONY: agent-test agent-bare agent-threads agent-freestanding agent-device idf-component idf-syntax idf-check
agent-test: agent-bare agent-threads agent-freestanding

build/agent/warnings: $(wildcard agent/*.c agent/test/*.c) $(AGENT_HEADERS)
	@mkdir -p $(@D)
	$(GCC) $(AGENT_TEST_FLAGS) $(AGENT_WARNINGS) -O2 -fsyntax-only $(wildcard agent/*.c agent/test/*.c)
	@touch $@

AGENT_BARE_SRCS := $(AGENT_CORE) agent/os_bare.c $(addprefix agent/test/, main_bare.c outbox_test.c target_test.c bare_test.c) \
    test/unit/test.c test/unit/fake.c
build/agent/bare: $(AGENT_BARE_SRCS) $(AGENT_LIBRARY) $(AGENT_HEADERS) build/agent/warnings
	$(GCC) $(AGENT_TEST_FLAGS) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -o $@ \
	    $(AGENT_BARE_SRCS) $(AGENT_LIBRARY)

agent-bare: build/agent/bare
	@echo "agent in a bare loop:"; build/agent/bare

AGENT_THREAD_SRCS := $(AGENT_THREADS) $(addprefix agent/test/, main_thread.c thread_test.c peer.c) test/unit/test.c
build/agent/threads: $(AGENT_THREAD_SRCS) $(AGENT_LIBRARY) $(AGENT_HEADERS) build/agent/warnings
	$(GCC) $(AGENT_TEST_FLAGS) $(AGENT_TSAN) -o $@ $(AGENT_THREAD_SRCS) $(AGENT_LIBRARY)

# Some kernels place memory where ThreadSanitizer's runtime cannot have it; without
# randomisation they do not.
agent-threads:
	@mkdir -p build
	+@$(call links,$(GCC) -fsanitize=thread,ThreadSanitizer,libtsan2); \
	$(MAKE) --no-print-directory build/agent/threads && echo "agent on threads:" && \
	if build/.probe; then build/agent/threads; else setarch -R build/agent/threads; fi

AGENT_DEVICE_SRCS := $(AGENT_THREADS) agent/test/device.c $(MCP_SURFACE_SRCS)
build/agent/device: $(AGENT_DEVICE_SRCS) $(AGENT_LIBRARY) $(AGENT_HEADERS) build/agent/warnings
	$(GCC) $(AGENT_TEST_FLAGS) $(AGENT_TSAN) -o $@ $(AGENT_DEVICE_SRCS) $(AGENT_LIBRARY)

agent-device:
	@mkdir -p build
	+@$(call links,$(GCC) -fsanitize=thread,ThreadSanitizer,libtsan2); \
	build/.probe || { echo "skipped: ThreadSanitizer does not run on this kernel"; test "$$CI" != true; exit; }; \
	$(MAKE) --no-print-directory build/agent/device

agent-freestanding:
	@$(call have,$(CLANG),clang); \
	for cpu in "thumbv7m-none-eabi -mcpu=cortex-m3" "riscv32-none-elf -march=rv32imc -mabi=ilp32"; do \
	    for f in $(AGENT_CORE) agent/os_bare.c; do \
	        $(CLANG) --target=$$cpu -std=c99 -Os -ffreestanding -Iinclude -Iagent -Iboards/common/include \
	            $(AGENT_WARNINGS) -c -o /dev/null $$f || exit 1; done; done; \
	echo "agent without a libc: compiles"

# ---- ESP-IDF -----------------------------------------------------------------

IDF_FOLDER := build/espressif/components/mcplink
IDF_OWN := espressif/components/mcplink
IDF_HEADERS := $(wildcard include/mcplink/*.h)
IDF_PRIVATE := $(wildcard src/*.[ch]) $(AGENT_CORE)
IDF_PORT := $(wildcard ports/idf/*.[ch] ports/posix/mcplink_stream.[ch])
IDF_AGENT_HEADERS := $(wildcard agent/mcplink_*.h)
IDF_FILES := $(shell find $(IDF_OWN) -type f)

idf-component: $(IDF_FOLDER)/.complete

# From nothing each time, so that no file that left the sources stays in it.
$(IDF_FOLDER)/.complete: $(IDF_FILES) $(IDF_HEADERS) $(IDF_PRIVATE) $(IDF_PORT) $(IDF_AGENT_HEADERS) $(wildcard samples/*.h) $(MCP_SURFACE_SRCS)
	rm -rf $(IDF_FOLDER)
	mkdir -p $(IDF_FOLDER)
	cp -R $(IDF_OWN)/. $(IDF_FOLDER)
	mkdir -p $(IDF_FOLDER)/include/mcplink $(IDF_FOLDER)/src $(IDF_FOLDER)/port $(IDF_FOLDER)/examples/station/main/surface
	cp $(IDF_HEADERS) $(IDF_FOLDER)/include/mcplink
	cp $(IDF_AGENT_HEADERS) $(IDF_FOLDER)/include
	cp $(IDF_PRIVATE) $(IDF_FOLDER)/src
	cp $(IDF_PORT) $(IDF_FOLDER)/port
	cp $(MCP_SURFACE_SRCS) $(wildcard samples/*.h) $(IDF_FOLDER)/examples/station/main/surface
	@touch $@

# In the folder alone, with the settings its Kconfig files default to and with every
# switch on.
IDF_CHECK := build/espressif/check
IDF_STATION := $(IDF_FOLDER)/examples/station/main
IDF_CFLAGS := -std=gnu17 -O2 -fsyntax-only -DESP_PLATFORM=1 -I espressif/check/include -I $(IDF_FOLDER)/include
IDF_WARNINGS := -Wall -Wextra -Werror -Wconversion -Wshadow -Wstrict-prototypes

$(IDF_CHECK)/off/sdkconfig.h $(IDF_CHECK)/on/sdkconfig.h: $(IDF_CHECK)/%/sdkconfig.h: espressif/check/sdkconfig.awk $(IDF_FOLDER)/.complete
	@mkdir -p $(@D)
	awk -v all=$(if $(filter on,$*),1,0) -f $< $(IDF_FOLDER)/Kconfig $(IDF_STATION)/Kconfig.projbuild > $@

idf-syntax: $(IDF_CHECK)/off/sdkconfig.h $(IDF_CHECK)/on/sdkconfig.h
	@$(call have,$(GCC),gcc); for cc in $(GCC) $$(command -v $(CLANG)); do for s in off on; do \
	    $$cc $(IDF_CFLAGS) $(IDF_WARNINGS) -I $(IDF_CHECK)/$$s -DMCPLINK_MUX=$$(test $$s = on && echo 1 || echo 0) \
	        $(IDF_FOLDER)/src/*.c $(IDF_FOLDER)/port/*.c $(IDF_FOLDER)/*.c || exit 1; \
	    $$cc $(IDF_CFLAGS) $(IDF_WARNINGS) -I $(IDF_CHECK)/$$s -I $(IDF_STATION)/surface $(IDF_STATION)/*.c \
	        $(IDF_STATION)/surface/*.c || exit 1; \
	done; done; echo "ESP-IDF component: types and syntax hold against espressif/check/include; it was not built with ESP-IDF"

idf-check: idf-syntax
	@$(call have,go,golang); go test . -run '^TestComponent' -count=1
