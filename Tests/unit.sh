#!/usr/bin/env bash
# The unit tests, in normal Swift. The tests that failed are named again at the end: they run side by side, and the
# output of one that fails is followed by that of hundreds that do not. Built without debugger information, which takes
# a tenth of the time.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/unit-tests.log
board/swift.sh host test -debug-info-format none "$@" 2>&1 | tee "$log" && exit
status=$?
printf '\nfailed:\n'
grep -aE '✘|recorded an issue|error:|Fatal error|signal' "$log" | tail -n 60
exit "$status"
