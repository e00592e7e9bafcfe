#!/bin/sh
# Checks size, globals, stack and undefined symbols of the library:
#   CLANG=clang size.sh LIMITS DIRECTORY SOURCE...
set -eu
limits=$1 dir=$2
shift 2
failed=0
nm=${LLVM_NM:-llvm-nm} size=${LLVM_SIZE:-llvm-size}

fail() { echo "size: $*" >&2; failed=1; }

cpu() {
    case $1 in
    cortex-m3) echo "--target=thumbv7m-none-eabi -mcpu=cortex-m3" ;;
    rv32imc) echo "--target=riscv32-none-elf -march=rv32imc -mabi=ilp32 -mno-relax" ;;
    esac
}

options() {
    case $1 in
    small) echo "-DMCPLINK_MUX=0 -DMCPLINK_DETAILS=0 -DMCPLINK_CHECK_UTF8=0" ;;
    full) echo "-DMCPLINK_MUX=0" ;;
    mux) echo "-DMCPLINK_MUX=1" ;;
    esac
}

api() {
    for call in init poll send stop is_connected detail; do
        echo "-u mcplink_provider_$call"
        test "$1" != mux || echo "-u mcplink_mux_$call"
    done
}

# Any byte of data or bss fails.
check_globals() {
    $size "$1"/*.o | awk 'NR > 1 && $2 + $3 > 0 { print $6 " has " $2 + $3 " bytes of writable data" }' >"$1/globals"
    test ! -s "$1/globals" || fail "$(cat "$1/globals")"
}

check_undefined() {
    $nm --undefined-only --format=just-symbols "$1"/*.o 2>/dev/null | sed '/:$/d;/^$/d' | sort -u >"$1/undefined"
    $nm --defined-only --extern-only --format=just-symbols "$1"/*.o | sed '/:$/d;/^$/d' | sort -u >"$1/defined"
    sed -n 's/^undefined //p' "$limits" | tr ' ' '\n' | sort -u >"$1/allowed"
    extra=$(comm -23 "$1/undefined" "$1/defined" | comm -23 - "$1/allowed" | tr '\n' ' ')
    test -z "$extra" || fail "$2: undefined symbols $extra"
}

# Prints code and constants; the link resolves nothing outside the library.
linked_text() {
    ld.lld --gc-sections --unresolved-symbols=ignore-all -e mcplink_provider_init $(api "$2") "$1"/*.o -o "$1/linked.elf"
    $size -A "$1/linked.elf" | awk '/^\.(text|rodata|ARM\.exidx)/ { n += $2 } END { print n }'
}

# Prints the deepest chain and the largest frame.
stack() {
    cat "$1"/*.su | awk -F '\t' -v limits="$limits" '
        { n = split($1, part, ":"); if ($2 > frame[part[n]]) frame[part[n]] = $2; if ($2 > most) most = $2 }
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

limit() { awk -v key="$*" 'index($0, key " ") == 1 { print $NF }' "$limits"; }

printf '%-10s %-6s %7s %7s %7s\n' target build text chain frame
for target in cortex-m3 rv32imc; do
    for build in small full mux; do
        at=$dir/$target-$build
        rm -rf "$at"
        mkdir -p "$at"
        for source; do
            $CLANG $(cpu $target) $(options $build) -std=c99 -Iinclude -Os -ffreestanding -ffunction-sections \
                -fdata-sections -fno-unwind-tables -fno-asynchronous-unwind-tables -fstack-usage \
                -c -o "$at/$(basename "$source" .c).o" "$source"
        done
        check_globals "$at"
        check_undefined "$at" "$target $build"
        text=$(linked_text "$at" $build)
        measured=$(stack "$at")
        chain=${measured% *} frame=${measured#* }
        printf '%-10s %-6s %7d %7d %7d\n' $target $build "$text" "$chain" "$frame"
        test "$text" -le "$(limit text $target $build)" || fail "$target $build: text $text is over the limit $(limit text $target $build)"
        test "$chain" -le "$(limit stack $target)" || fail "$target $build: stack $chain is over the limit $(limit stack $target)"
        test "$frame" -le "$(limit frame $target)" || fail "$target $build: frame $frame is over the limit $(limit frame $target)"
    done
done
exit $failed
