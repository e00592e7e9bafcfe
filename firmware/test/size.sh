#!/bin/sh
# Checks size, globals, stack and undefined symbols of the library:
#   CLANG=clang size.sh LIMITS DIRECTORY SOURCE...
# A compiler that is missing is named and left out, unless CI=true.
set -eu
limits=$1 dir=$2
shift 2
failed=0

fail() { echo "size: $*" >&2; failed=1; }

# Sets compiler, linker, nm and size for a target and a compiler.
toolchain() {
    case $1-$2 in
    cortex-m3-gcc) gnu arm-none-eabi "-mcpu=cortex-m3 -mthumb" ;;
    rv32imc-gcc) gnu riscv64-unknown-elf "-march=rv32imc -mabi=ilp32 -msave-restore" ;;
    cortex-m3-clang) llvm "--target=thumbv7m-none-eabi -mcpu=cortex-m3" ;;
    rv32imc-clang) llvm "--target=riscv32-none-elf -march=rv32imc -mabi=ilp32 -mno-relax" ;;
    esac
}

gnu() {
    package=gcc-$1 compiler="$1-gcc $2" nm=$1-nm size=$1-size
    linker="$compiler -nostdlib" option=-Wl, libraries=-lgcc
}

llvm() {
    package="clang, lld, llvm" compiler="${CLANG:-clang} $1" nm=llvm-nm size=llvm-size
    linker=ld.lld option= libraries=
}

# What is missing of the toolchain.
missing() {
    for tool in ${compiler%% *} "$nm" "$size" ${linker%% *}; do
        command -v "$tool" >/dev/null 2>&1 || { echo "$tool"; return; }
    done
}

options() {
    case $1 in
    small) echo "-DMCPLINK_MUX=0 -DMCPLINK_DETAILS=0 -DMCPLINK_CHECK_UTF8=0" ;;
    full) echo "-DMCPLINK_MUX=0" ;;
    mux) echo "-DMCPLINK_MUX=1" ;;
    esac
}

compile() {
    at=$1 build=$2
    shift 2
    for source; do
        $compiler $(options "$build") -std=c99 -Iinclude -Os -ffreestanding -ffunction-sections \
            -fdata-sections -fno-unwind-tables -fno-asynchronous-unwind-tables -fstack-usage \
            -c -o "$at/$(basename "$source" .c).o" "$source"
    done
}

# Any byte of data or bss fails.
check_globals() {
    $size "$1"/*.o | awk 'NR > 1 && $2 + $3 > 0 { print $6 " has " $2 + $3 " bytes of writable data" }' >"$1/globals"
    test ! -s "$1/globals" || fail "$(cat "$1/globals")"
}

symbols() { $nm "$1" "$2"/*.o 2>/dev/null | awk 'NF > 1 && !/:$/ { print $NF }' | sort -u; }

check_undefined() {
    symbols --undefined-only "$1" >"$1/undefined"
    symbols --defined-only "$1" >"$1/defined"
    sed -n 's/^undefined //p' "$limits" | tr ' ' '\n' | sort -u >"$1/allowed"
    extra=$(comm -23 "$1/undefined" "$1/defined" | comm -23 - "$1/allowed" | tr '\n' ' ')
    test -z "$extra" || fail "$2: undefined symbols $extra"
}

# Prints code and constants of a program that calls the whole interface. The C
# library is taken to be near, as in an image, so that calls of it can be short.
linked_text() {
    flags="${option}--gc-sections ${option}-emcplink_provider_init"
    for call in init poll send stop is_connected detail; do
        flags="$flags ${option}-umcplink_provider_$call"
        test "$2" != mux || flags="$flags ${option}-umcplink_mux_$call"
    done
    for symbol in $(comm -12 "$1/undefined" "$1/allowed" | grep -v '^__riscv_'); do
        flags="$flags ${option}--defsym=$symbol=mcplink_provider_init"
    done
    $linker $flags "$1"/*.o $libraries -o "$1/linked.elf"
    $size -A "$1/linked.elf" | awk '/^\.(s?rodata|text|ARM\.exidx)/ { n += $2 } END { print n }'
}

# Prints the deepest chain and the largest frame. gcc appends to the names of
# functions it has specialised.
stack() {
    cat "$1"/*.su | awk -F '\t' -v limits="$limits" '
        {
            n = split($1, part, ":"); own = part[n]; sub(/\..*/, "", own)
            if ($2 > frame[own]) frame[own] = $2
            if ($2 > most) most = $2
        }
        END {
            while ((getline line < limits) > 0) {
                if (line !~ /^chain /) continue
                n = split(line, name, " "); sum = 0
                for (i = 2; i <= n; i++) sum += frame[name[i]]
                if (sum > deepest) deepest = sum
            }
            print deepest, most
        }'
}

# check WHAT VALUE KEY...: against the line of limits that starts with the key.
check() {
    what=$1 value=$2
    shift 2
    most=$(awk -v key="$*" 'index($0, key " ") == 1 { print $NF }' "$limits")
    test "$value" -le "$most" || fail "$what $value is over the limit $most"
}

printf '%-10s %-6s %-6s %7s %7s %7s\n' target cc build text chain frame
for target in cortex-m3 rv32imc; do
    for cc in gcc clang; do
        toolchain $target $cc
        tool=$(missing)
        if [ -n "$tool" ]; then
            echo "skipped: $tool is missing (Debian package $package)"
            test "${CI:-}" != true || failed=1
            continue
        fi
        for build in small full mux; do
            at=$dir/$target-$cc-$build
            rm -rf "$at"
            mkdir -p "$at"
            compile "$at" $build "$@"
            check_globals "$at"
            check_undefined "$at" "$target $cc $build"
            text=$(linked_text "$at" $build)
            measured=$(stack "$at")
            chain=${measured% *} frame=${measured#* }
            printf '%-10s %-6s %-6s %7d %7d %7d\n' $target $cc $build "$text" "$chain" "$frame"
            check "$target $cc $build: text" "$text" text $target $cc $build
            check "$target $cc $build: stack" "$chain" stack $target
            check "$target $cc $build: frame" "$frame" frame $target
        done
    done
done
exit $failed
