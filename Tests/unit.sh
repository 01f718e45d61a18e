#!/usr/bin/env bash
# The unit tests, built as normal Swift. The script lists failed tests again at the end, because hundreds of passing
# tests follow the output of a failure. The build has no debugger information, which would take a tenth of the time. At
# most two tests per processor run at the same time, because tests that wait for a process would otherwise queue behind
# tests that compute.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/unit-tests.log
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=$((2 * $(nproc)))
# The build is a separate call, so that the tests have the full time limit of swift.sh. A first build takes ten minutes on
# two processors.
case " $* " in
  *" --skip-build "*) ;;
  *) board/build/swift.sh host build --build-tests -debug-info-format none > "$log" 2>&1 || { status=$?; grep -a 'error:' "$log"; exit "$status"; } ;;
esac
board/build/swift.sh host test --skip-build -debug-info-format none "$@" 2>&1 | tee "$log" && exit
status=$?
printf '\nfailed:\n'
grep -aE '✘|recorded an issue|error:|Fatal error|signal' "$log" | tail -n 60
exit "$status"
