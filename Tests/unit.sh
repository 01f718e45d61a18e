#!/usr/bin/env bash
# The unit tests, in normal Swift. The tests that failed are named again at the end: they run side by side, and the
# output of one that fails is followed by that of hundreds that do not. Built without debugger information, which takes
# a tenth of the time. At most two tests per processor run at once: begun all together, those that wait for an answer of
# another process would wait for a place behind hundreds that only compute.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/unit-tests.log
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$((2 * $(nproc)))
# Built apart: the compiler and the tests have the time limit of swift.sh each. A cold build takes ten minutes on two processors.
case " $* " in
  *" --skip-build "*) ;;
  *) board/swift.sh host build --build-tests -debug-info-format none > "$log" 2>&1 || { status=$?; grep -a 'error:' "$log"; exit "$status"; } ;;
esac
board/swift.sh host test --skip-build -debug-info-format none "$@" 2>&1 | tee "$log" && exit
status=$?
printf '\nfailed:\n'
grep -aE '✘|recorded an issue|error:|Fatal error|signal' "$log" | tail -n 60
exit "$status"
