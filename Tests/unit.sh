#!/usr/bin/env bash
# The unit tests, in normal Swift. The script lists failed tests again at the end, because tests run in parallel and
# hundreds of passing ones follow a failure's output. The build has no debugger information, which takes a tenth of the
# time. At most two tests per processor run at once. If all began together, tests that wait for another process would
# queue behind hundreds that only compute.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/unit-tests.log
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$((2 * $(nproc)))
# Built separately: the compiler and the tests each have the time limit of swift.sh. A cold build takes ten minutes on
# two processors.
case " $* " in
  *" --skip-build "*) ;;
  *) board/swift.sh host build --build-tests -debug-info-format none > "$log" 2>&1 || { status=$?; grep -a 'error:' "$log"; exit "$status"; } ;;
esac
board/swift.sh host test --skip-build -debug-info-format none "$@" 2>&1 | tee "$log" && exit
status=$?
printf '\nfailed:\n'
grep -aE '✘|recorded an issue|error:|Fatal error|signal' "$log" | tail -n 60
exit "$status"
