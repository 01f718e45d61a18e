#!/usr/bin/env bash
# board/build/swift.sh firmware x86_64|aarch64   build the static firmware into build/ARCH/causeway
# board/build/swift.sh development ARCH          the same sources without optimisation, into build/development/ARCH/causeway
# board/build/swift.sh host ARGUMENTS…           swift with the third-party libraries of the sysroot (build, test, run)
#
# Every run of the compiler is limited in memory and time, because a compiler bug with generics can exhaust the machine.
set -euo pipefail
cd "$(dirname "$0")/../.."

SWIFT_MEMORY_KB_MAX=${SWIFT_MEMORY_KB_MAX:-12000000}
SWIFT_SECONDS_MAX=${SWIFT_SECONDS_MAX:-1500}
root=$(pwd)
swift_bin=$(dirname "$(readlink -f "$(command -v swift)")")
swift_lib=$(realpath "$swift_bin/../lib/swift")

capped() { (ulimit -v "$SWIFT_MEMORY_KB_MAX"; exec timeout --kill-after=10 "$SWIFT_SECONDS_MAX" "$@"); }

# Writes the toolset file, which names the paths of a sysroot for SwiftPM: headers for C and Swift, libraries for the linker.
write_toolset() {
  local arch=$1 sysroot=$2
  cat > "$root/build/toolset-$arch.json" <<JSON
{"schemaVersion": "1.0", "rootPath": "$swift_bin",
 "cCompiler": {"extraCLIOptions": ["--target=$arch-linux-gnu", "--sysroot=$sysroot", "-Os",
   "-isystem", "$sysroot/usr/include/dbus-1.0", "-isystem", "$sysroot/usr/lib/$arch-linux-gnu/dbus-1.0/include"]},
 "swiftCompiler": {"extraCLIOptions": ["-use-ld=lld", "-Xcc", "--sysroot=$sysroot",
   "-Xcc", "-isystem", "-Xcc", "$sysroot/usr/include/$arch-linux-gnu", "-Xcc", "-isystem", "-Xcc", "$sysroot/usr/include",
   "-Xclang-linker", "--target=$arch-linux-gnu", "-Xclang-linker", "--sysroot=$sysroot"]}}
JSON
}

firmware() { # firmware|development ARCH
  local kind=$1 arch=$2 sysroot triple out scratch optimised=()
  board/build/sysroot.sh "$arch"
  sysroot=$(readlink -f "build/sysroot/$arch")
  write_toolset "$arch" "$sysroot"
  case $arch in
    x86_64) triple=x86_64-unknown-linux-gnu ;;
    aarch64) triple=aarch64-none-none-elf ;;
  esac
  out=build/$arch scratch=build/.firmware-$arch
  if [ "$kind" = development ]; then
    out=build/development/$arch scratch=build/.development-$arch
    export CAUSEWAY_DEVELOPMENT=1
  else
    # Link-time optimisation: all Swift modules and the C shims are compiled to bitcode, and the linker makes their
    # machine code. The linker inlines across modules, and keeps one copy of identical functions. Without link-time
    # optimisation the firmware is an eighth larger on aarch64, and a forwarded frame takes a quarter more instructions.
    # Debian's libraries are linked without link-time optimisation. The link takes a minute and 1.2 GB of memory.
    optimised=(--experimental-lto-mode full -Xlinker --icf=all)
  fi
  # This empty archive replaces the compiler's libgcc_eh.a, so the linker must find it first. board/build/firmware.ld lists the
  # parts that the firmware leaves out, with the reasons.
  mkdir -p "$scratch/without"
  "$swift_bin/llvm-ar" rc "$scratch/without/libgcc_eh.a"
  CAUSEWAY_EMBEDDED=1 capped swift build -c release --product causeway --disable-local-rpath --omit-frame-pointers \
    --triple "$triple" --toolset "build/toolset-$arch.json" --scratch-path "$scratch" "${optimised[@]}" \
    -Xswiftc -Xclang-linker -Xswiftc -L"$root/$scratch/without" \
    -Xlinker -L"$swift_lib/embedded/$triple" -Xlinker -lswiftUnicodeDataTables \
    -Xlinker --no-eh-frame-hdr -Xlinker -T -Xlinker "$root/board/build/firmware.ld"
  mkdir -p "$out"
  "$swift_bin/llvm-objcopy" --strip-all \
    "$scratch/$triple/release/causeway" "$out/causeway.new"
  mv "$out/causeway.new" "$out/causeway"
}

# All modules are compiled with _GNU_SOURCE, because CSystem and the toolchain's module Glibc must see the same declarations.
host() {
  # Tests of core modules need no library, so the sysroot is not built for them.
  [ "${CAUSEWAY_CORE:-}" = 1 ] || board/build/sysroot.sh x86_64 > /dev/null
  local third=$root/build/sysroot/x86_64/third-party command=$1
  shift
  SWIFT_BACKTRACE=${SWIFT_BACKTRACE:-enable=no} capped swift "$command" --scratch-path "${SWIFT_SCRATCH:-.build}" \
    -Xcc -D_GNU_SOURCE -Xcc -isystem -Xcc "$third/include" -Xlinker -L"$third/lib" "$@"
}

case ${1:-} in
  firmware|development)
    case ${2:-} in x86_64|aarch64) firmware "$1" "$2" ;; *) echo "usage: board/build/swift.sh $1 x86_64|aarch64" >&2; exit 2 ;; esac ;;
  host) shift; host "$@" ;;
  *) sed -n '2,4p' "$0" >&2; exit 2 ;;
esac
