#!/bin/sh
# Fuzz the compiled reader of runs under the address and undefined-behaviour sanitizers: run.sh [SECONDS] [SEED]
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sanitize="-g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all -Wall -Wextra -Wno-unused-function"
cd "$work"
if command -v clang >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    clang $sanitize -DLIBFUZZER -fsanitize=fuzzer,address,undefined "$folder/reader.c" -o reader
    ./reader -max_total_time="${1:-60}" -max_len=8192 -print_final_stats=1
else
    # shellcheck disable=SC2086
    ${CC:-cc} $sanitize -fsanitize=address,undefined -fsanitize-coverage=trace-pc -c "$folder/reader.c" -o reader.o
    # shellcheck disable=SC2086
    ${CC:-cc} $sanitize -fsanitize=address,undefined reader.o "$folder/driver.c" -o reader
    ASAN_OPTIONS=handle_abort=1 ./reader "${1:-60}" ${2:-} || {
        echo "the failing input is in $work/crash" >&2
        trap - EXIT
        exit 1
    }
fi
