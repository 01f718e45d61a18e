#!/usr/bin/env bash
# Tests/Fuzz/run.sh SECONDS [TARGET…]   run each target (default: all) in libFuzzer for SECONDS, two at a time
# Tests/Fuzz/run.sh corpus              run each target on the inputs in Tests/Fuzz/corpus, in the build of Tests/unit.sh
# Tests/Fuzz/run.sh keep [TARGET…]      add new inputs of earlier runs to Tests/Fuzz/corpus, in as few files as possible
#
# A target is a function of the input, in a file of Decoders/ or Nodes/. main.swift there lists its name, and a folder of
# corpus/ contains its initial inputs. New inputs of a run are stored in build/fuzz/corpus. The input of a finding is stored in
# build/fuzz/crashes. A finding also fails the script, which prints how to replay the input.
#
# Decoders run under AddressSanitizer, which detects reads just outside a buffer. Channels and nodes run without
# AddressSanitizer. In the latter two, each input needs megabytes, so AddressSanitizer would make them thirty times
# slower. AddressSanitizer would also detect little there, because their memory is one block. The two builds enable
# Swift's checks of unsafe pointers, as a debug build does.
set -euo pipefail
cd "$(dirname "$0")/../.."

SECONDS_EACH=${1:?usage: Tests/Fuzz/run.sh SECONDS|keep|corpus [TARGET…]}
shift
if [ "$SECONDS_EACH" = corpus ]; then
  for program in fuzz-decoders fuzz-nodes; do
    .build/debug/$program Tests/Fuzz/corpus && continue
    echo "fuzz: this input ended $program:" >&2
    .build/debug/$program Tests/Fuzz/corpus -v 2>&1 | grep -a '^Tests/Fuzz/corpus/' | tail -n 1 >&2
    exit 1
  done
  exit
fi
AT_ONCE=2
INPUT_BYTES_MAX=20000
INPUT_SECONDS_MAX=10

out=build/fuzz
mkdir -p "$out/crashes"
export SWIFT_BACKTRACE=enable=no

if [ "$(ulimit -v)" != unlimited ]; then
  echo "fuzz: AddressSanitizer reserves terabytes of address space: run this without a limit (ulimit -v unlimited)" >&2
  exit 2
fi

# There are two builds, with AddressSanitizer and without, which run at the same time. Each target is a link to its binary.
build() { # address|plain
  local variant=$1 product=fuzz-nodes sanitizers=fuzzer c_options=() name
  if [ "$variant" = address ]; then
    product=fuzz-decoders
    sanitizers=fuzzer,address
    c_options=(-Xcc -fsanitize=address)
  fi
  if ! CAUSEWAY_FUZZ=1 SWIFT_SCRATCH=$out/build-$variant board/build/swift.sh host build -c release --product "$product" \
    -Xswiftc "-sanitize=$sanitizers" -Xswiftc -enable-testing -Xswiftc -assert-config -Xswiftc Debug \
    "${c_options[@]}" > "$out/build-$variant.log" 2>&1; then
    echo "fuzz: the build failed; the log is $out/build-$variant.log" >&2
    grep -E 'error:|undefined' "$out/build-$variant.log" >&2 || tail -n 20 "$out/build-$variant.log" >&2
    return 1
  fi
  mkdir -p "$out/$variant"
  for name in $("$out/build-$variant/release/$product"); do
    ln -sf "../build-$variant/release/$product" "$out/$variant/$name"
  done
}

variant_of() { if [ -e "$out/plain/$1" ]; then echo plain; else echo address; fi; }

statistic() { sed -n "s/^stat::$2: *//p" "$out/$1.log"; }

run_target() {
  local target=$1 binary verdict=ok finding
  binary=$out/$(variant_of "$target")/$target
  mkdir -p "$out/corpus/$target"
  "$binary" -max_total_time="$SECONDS_EACH" -max_len=$INPUT_BYTES_MAX -timeout=$INPUT_SECONDS_MAX -print_final_stats=1 \
    -artifact_prefix="$out/crashes/$target-" "$out/corpus/$target" "Tests/Fuzz/corpus/$target" > "$out/$target.log" 2>&1 \
    || verdict=FAILED
  printf 'fuzz %-14s %-7s %s, %s executions, %s a second, %s inputs in the corpus\n' "$target" \
    "($(variant_of "$target"))" $verdict "$(statistic "$target" number_of_executed_units)" \
    "$(statistic "$target" average_exec_per_sec)" "$(find "$out/corpus/$target" "Tests/Fuzz/corpus/$target" -type f | wc -l)"
  [ $verdict = ok ] && return
  finding=$(sed -n 's/.*Test unit written to //p' "$out/$target.log" | head -n 1)
  {
    grep -m 3 -E 'Fatal error|ERROR: (Addr|libF)|^SUMMARY' "$out/$target.log" || tail -n 5 "$out/$target.log"
    [ -z "$finding" ] || echo "replay: $binary $finding"
  } | sed 's/^/  | /'
  return 1
}

# An input is kept only if it covers a new edge of the code. How often an edge is executed does not matter.
keep() {
  local target=$1 merged
  merged=$(mktemp -d)
  "$out/$(variant_of "$target")/$target" -merge=1 -set_cover_merge=1 -use_counters=0 -max_len=$INPUT_BYTES_MAX \
    "$merged" "Tests/Fuzz/corpus/$target" "$out/corpus/$target" > "$out/$target.log" 2>&1
  cp "$merged"/* "Tests/Fuzz/corpus/$target/"
  rm -rf "$merged"
  echo "fuzz $target: $(find "Tests/Fuzz/corpus/$target" -type f | wc -l) inputs kept"
}

build address &
build plain
wait $!
TARGETS=("$@")
[ ${#TARGETS[@]} -gt 0 ] || mapfile -t TARGETS < <(cd "$out" && ls address plain | grep -v -e : -e '^$')

failed=0
for target in "${TARGETS[@]}"; do
  if [ ! -e "$out/$(variant_of "$target")/$target" ] || [ ! -d "Tests/Fuzz/corpus/$target" ]; then
    echo "fuzz: $target: in no main.swift of Tests/Fuzz, or without a folder in Tests/Fuzz/corpus" >&2
    exit 2
  fi
  while [ "$(jobs -rp | wc -l)" -ge $AT_ONCE ]; do wait -n || failed=1; done
  if [ "$SECONDS_EACH" = keep ]; then keep "$target" & else run_target "$target" & fi
done
while [ "$(jobs -rp | wc -l)" -gt 0 ]; do wait -n || failed=1; done
exit $failed
