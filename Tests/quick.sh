#!/usr/bin/env bash
# Tests/quick.sh MODULE [OPTION…]   the unit tests of one module (Mesh, Session, Relay …)
#
# Builds that module, the modules imported by this module, and its tests, with the settings of Tests/unit.sh. OPTIONs go
# to `swift test`, for example --filter and a test's name.
set -euo pipefail
cd "$(dirname "$0")/.."
module=${1:-}
shift || true
if [ -z "$module" ] || [ ! -d "Tests/${module}Tests" ]; then
  echo "quick: MODULE is one of:" $(cd Tests && ls -d *Tests | sed 's/Tests$//') >&2
  exit 2
fi
export CAUSEWAY_ONLY=${module}Tests SWIFT_SCRATCH=.build/quick
# A module of the core needs no C library from Debian's packages, so the sysroot is not built.
if grep -q "^ *core(\"$module\"" Package.swift; then export CAUSEWAY_CORE=1; fi
mkdir -p build
log=build/quick.log
board/build/swift.sh host build --build-tests -debug-info-format none > "$log" 2>&1 || { grep -a 'error:' "$log"; exit 1; }
exec board/build/swift.sh host test --skip-build -debug-info-format none "$@"
