#!/usr/bin/env bash
# Tests/Fuzz/run.sh SECONDS [TARGET…]   build each fuzz target and let libFuzzer run it for SECONDS
#
# Targets: frames advertisements payloads node. The corpus beside this script is where each begins; what a run
# finds new stays in build/fuzz/corpus. A crash leaves its input in build/fuzz/crashes and fails the script:
#   build/fuzz/SANITIZERS/TARGET build/fuzz/crashes/TARGET-crash-…      replays it
#
# Decoders run under AddressSanitizer, which sees reads just outside of a buffer; the targets that make a whole
# channel or node for each input run without, twenty times as often. FUZZ_SANITIZERS=fuzzer,address or =fuzzer
# chooses one for all.
set -euo pipefail
cd "$(dirname "$0")/../.."

SECONDS_EACH=${1:?usage: Tests/Fuzz/run.sh SECONDS [TARGET…]}
shift
TARGETS=("$@")
[ ${#TARGETS[@]} -gt 0 ] || TARGETS=(frames advertisements payloads node)
MODULES="Primitives Journal Frame Link Mesh Channel Session Node"
export SWIFT_BACKTRACE=enable=no

out=build/fuzz
mkdir -p "$out/crashes"

sanitizers_of() {
  case ${FUZZ_SANITIZERS:-}:$1 in
    :frames|:advertisements) echo fuzzer,address ;;
    :*) echo fuzzer ;;
    *) echo "$FUZZ_SANITIZERS" ;;
  esac
}

compile() {
  (ulimit -v 20000000000
    exec timeout --kill-after=10 600 swiftc -swift-version 6 -enable-experimental-feature Lifetimes \
      -parse-as-library -O -wmo "-sanitize=$sanitizers" -I "$objects" "$@")
}

# Whether a file among the arguments after the first is newer than the first.
is_old() {
  local product=$1
  shift
  [ ! -e "$product" ] || [ -n "$(find "$@" -newer "$product" -print -quit)" ]
}

# Modules in order; one is built again when a source of it, or a module before it, is newer.
build_modules() {
  local module sources previous=Tests/Fuzz/run.sh
  linked=()
  for module in $MODULES TestSupport; do
    sources=Sources/$module
    [ "$module" != TestSupport ] || sources=Tests/Support
    if is_old "$objects/$module.o" "$sources" "$previous"; then
      compile -module-name "$module" -emit-module -emit-module-path "$objects/$module.swiftmodule" \
        -c "$sources"/*.swift -o "$objects/$module.o"
    fi
    previous=$objects/$module.o
    linked+=("$previous")
  done
}

run_target() {
  local target=$1 binary=$objects/$1 log=$out/$1.log verdict=ok
  if is_old "$binary" "Tests/Fuzz/$target.swift" "${linked[@]}"; then
    compile -module-name "fuzz_$target" "Tests/Fuzz/$target.swift" "${linked[@]}" -o "$binary"
  fi
  mkdir -p "$out/corpus/$target"
  "$binary" -max_total_time="$SECONDS_EACH" -max_len=20000 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$out/crashes/$target-" "$out/corpus/$target" "Tests/Fuzz/corpus/$target" > "$log" 2>&1 \
    || verdict=FAILED
  stat() { sed -n "s/^stat::$1: *//p" "$log"; }
  echo "fuzz $target ($sanitizers): $verdict, $(stat number_of_executed_units) executions," \
    "$(stat average_exec_per_sec) a second, $(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1) edges"
  [ $verdict = ok ] && return
  grep -m 5 -E 'ERROR|Fatal|Precondition|SUMMARY|Test unit' "$log" || tail -5 "$log"
  failed=1
}

failed=0
for target in "${TARGETS[@]}"; do
  sanitizers=$(sanitizers_of "$target")
  objects=$out/$sanitizers
  mkdir -p "$objects"
  build_modules
  run_target "$target"
done
exit $failed
