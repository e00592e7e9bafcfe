# Firmware images: clang and lld only, no C library. Paths begin at firmware/.
#
#   fw-arm   LM3S6965 (Cortex-M3), lwIP           build/fw-arm.elf
#   fw-rv32  RV32 "virt", virtio-net, lwIP        build/fw-rv32.elf
#   fw-uart  RV32 "virt", a serial line           build/fw-uart.elf
#   fw-tls   RV32 "virt", mbedTLS over lwIP       build/fw-tls.elf
#
#   test-target   the unit tests on both processors, in QEMU
#
# The lwIP and mbedTLS images need sources that third_party/fetch.sh brings. What is
# missing, a tool or a source, is named in a line "skipped: ..." as in the Makefile,
# whose macros are used here.

FW_CLANG ?= clang
FW_LLD ?= lld
FW_WARNINGS := -Wall -Wextra -Wpedantic -Werror -Wconversion -Wshadow -Wstrict-prototypes
FW_FLAGS := -std=c99 -Os -g -ffreestanding -nostdlibinc -ffunction-sections -fdata-sections -MMD -MP \
    -Iboards/common/include -Iboards/common -Iinclude -Isrc -Isamples \
    $(addprefix -Iports/, lwip uart16550 tls-mbedtls) \
    -DMCPLINK_MUX=1
FW_LINK := -fuse-ld=$(FW_LLD) -nostdlib -static -Wl,--gc-sections -Wl,--build-id=none

FW_CPU_lm3s6965 := --target=thumbv7m-none-eabi -mcpu=cortex-m3
FW_CPU_rv32virt := --target=riscv32-none-elf -march=rv32imc -mabi=ilp32 -mno-relax

FW_BOARD_lm3s6965 := boards/lm3s6965/start.c boards/lm3s6965/board.c boards/lm3s6965/aeabi.c
FW_NIC_lm3s6965 := boards/lm3s6965/nic.c
FW_BOARD_rv32virt := boards/rv32virt/start.c boards/rv32virt/board.c boards/rv32virt/virtio.c boards/rv32virt/random.c
FW_NIC_rv32virt := boards/rv32virt/nic.c
FW_COMMON := boards/common/semihosting.c boards/common/stack.c boards/common/string.c boards/common/rt64.c

include samples/surface.mk
FW_LIBRARY := $(sort $(wildcard src/*.c))
FW_DEVICE := boards/common/main.c boards/common/log.c boards/common/image_args.c $(MCP_SURFACE_SRCS)

FW_LWIP := third_party/.cache/lwip
FW_LWIP_SRCS := $(addprefix $(FW_LWIP)/src/, \
    $(addprefix core/, init.c def.c inet_chksum.c ip.c mem.c memp.c netif.c pbuf.c tcp.c tcp_in.c tcp_out.c timeouts.c) \
    $(addprefix core/ipv4/, etharp.c ip4.c ip4_addr.c icmp.c) netif/ethernet.c)
FW_NET := boards/common/net.c ports/lwip/mcplink_lwip.c

FW_MBEDTLS := third_party/.cache/mbedtls
FW_MBEDTLS_SRCS := $(addprefix $(FW_MBEDTLS)/library/, \
    aes.c asn1parse.c asn1write.c base64.c bignum.c cipher.c cipher_wrap.c constant_time.c ecdh.c ecdsa.c ecp.c \
    ecp_curves.c gcm.c hmac_drbg.c md.c memory_buffer_alloc.c oid.c pem.c pk.c pk_wrap.c pkparse.c platform.c \
    platform_util.c sha256.c sha512.c ssl_ciphersuites.c ssl_cli.c ssl_msg.c ssl_tls.c x509.c x509_crt.c)

# The unit tests, where their own lists do not say which of them fit a board.
UNIT_TARGET_SRCS ?= $(filter-out test/unit/host%.c,$(sort $(wildcard test/unit/*.c)))
FW_UNIT := boards/common/unit_glue.c boards/common/log.c samples/text_out.c $(UNIT_TARGET_SRCS) $(FW_LIBRARY)

# Each image: board, own sources, third-party sources.
FW_IMAGES := fw-arm fw-rv32 fw-uart fw-tls
fw-arm_BOARD := lm3s6965
fw-arm_SRCS := $(FW_DEVICE) $(FW_LIBRARY) $(FW_NET) $(FW_NIC_lm3s6965) boards/common/image_port_lwip.c
fw-arm_FOREIGN := $(FW_LWIP_SRCS)
fw-arm_FETCH := lwip
fw-rv32_BOARD := rv32virt
fw-rv32_SRCS := $(FW_DEVICE) $(FW_LIBRARY) $(FW_NET) $(FW_NIC_rv32virt) boards/common/image_port_lwip.c
fw-rv32_FOREIGN := $(FW_LWIP_SRCS)
fw-rv32_FETCH := lwip
fw-uart_BOARD := rv32virt
fw-uart_SRCS := $(FW_DEVICE) $(FW_LIBRARY) ports/uart16550/mcplink_uart16550.c boards/common/image_port_uart.c
fw-tls_BOARD := rv32virt
fw-tls_SRCS := $(FW_DEVICE) $(FW_LIBRARY) $(FW_NET) $(FW_NIC_rv32virt) boards/common/image_port_tls.c \
    $(addprefix ports/tls-mbedtls/, mcplink_tls.c ip_literal.c tls_certificate.c tls_words.c)
fw-tls_FOREIGN := $(FW_LWIP_SRCS) $(FW_MBEDTLS_SRCS)
fw-tls_FETCH := lwip mbedtls
fw-tls_FLAGS := -Iboards/common/mbedtls -I$(FW_MBEDTLS)/include -DMBEDTLS_CONFIG_FILE='"mbedtls_image_config.h"'
unit-arm_BOARD := lm3s6965
unit-arm_SRCS := $(FW_UNIT)
unit-rv32_BOARD := rv32virt
unit-rv32_SRCS := $(FW_UNIT)

# $(call FW_HAVE,names of third-party sources)
FW_HAVE = $(call have,$(FW_CLANG),clang); $(call have,ld.lld,lld)$(if $(1),; third_party/fetch.sh $(1) || \
    { test $$? -eq 3 && test "$$CI" != true; exit; })

define FW_IMAGE
$(1)_ALL := $$($(1)_SRCS) $$(FW_BOARD_$$($(1)_BOARD)) $$(FW_COMMON)
$(1)_OBJS := $$(patsubst %.c,build/$(1)/%.o,$$($(1)_ALL))
$(1)_FOREIGN_OBJS := $$(patsubst %.c,build/$(1)/%.o,$$($(1)_FOREIGN))
$(1)_CC := $$(FW_CLANG) $$(FW_CPU_$$($(1)_BOARD)) $$(FW_FLAGS) -I$(FW_LWIP)/src/include $$($(1)_FLAGS)

.PHONY: $(1)
$(1):
	+@$$(call FW_HAVE,$$($(1)_FETCH)); $$(MAKE) --no-print-directory build/$(1).elf

build/$(1).elf: $$($(1)_OBJS) $$($(1)_FOREIGN_OBJS) boards/$$($(1)_BOARD)/link.ld
	@echo "link $$@"
	@$$(FW_CLANG) $$(FW_CPU_$$($(1)_BOARD)) $$(FW_LINK) -T boards/$$($(1)_BOARD)/link.ld -o $$@ \
	    $$($(1)_OBJS) $$($(1)_FOREIGN_OBJS)

$$($(1)_FOREIGN_OBJS): build/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	@$$($(1)_CC) -w -c -o $$@ $$<

$$($(1)_OBJS): build/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	@$$($(1)_CC) $$(FW_WARNINGS) $$(FW_ONLY_$$(notdir $$*)) -c -o $$@ $$<

-include $$($(1)_OBJS:.o=.d) $$($(1)_FOREIGN_OBJS:.o=.d)
endef

# string.c copies by words. On a board the tests' main is called by another.
FW_ONLY_string := -fno-strict-aliasing
$(foreach u,unit-arm unit-rv32,$(UNIT_TARGET_SRCS:%.c=build/$(u)/%.o)): FW_WARNINGS += -Dmain=unit_main -Itest/unit

$(foreach image,$(FW_IMAGES) unit-arm unit-rv32,$(eval $(call FW_IMAGE,$(image))))

# The sources appear with the mark of their archive.
$(FW_LWIP)/.sum $(FW_MBEDTLS)/.sum: third_party/.cache/%/.sum:
	third_party/fetch.sh $*
$(FW_MBEDTLS)/.sum: | $(FW_LWIP)/.sum
$(FW_LWIP_SRCS): $(FW_LWIP)/.sum ;
$(FW_MBEDTLS_SRCS): $(FW_MBEDTLS)/.sum ;

.PHONY: test-target test-target-arm test-target-rv32
test-target: test-target-arm test-target-rv32
FW_QEMU_FLAGS := -nographic -monitor none -serial none -semihosting-config enable=on,target=native
test-target-arm:
	+@$(call have,qemu-system-arm,qemu-system-arm); $(FW_HAVE); $(MAKE) --no-print-directory build/unit-arm.elf && \
	timeout 60 qemu-system-arm -M lm3s6965evb $(FW_QEMU_FLAGS) -kernel build/unit-arm.elf
test-target-rv32:
	+@$(call have,qemu-system-riscv32,qemu-system-misc); $(FW_HAVE); $(MAKE) --no-print-directory build/unit-rv32.elf && \
	timeout 60 qemu-system-riscv32 -M virt -m 16M -bios none $(FW_QEMU_FLAGS) -kernel build/unit-rv32.elf

.PHONY: fw print-images
fw: $(FW_IMAGES)
print-images:
	@echo $(FW_IMAGES:%=build/%.elf)
