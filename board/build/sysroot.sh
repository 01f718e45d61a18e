#!/usr/bin/env bash
# board/build/sysroot.sh x86_64|aarch64: makes build/sysroot/ARCH from Debian 13 packages.
#
# The firmware is linked statically against Debian 13's libraries (mbedTLS 3.6) whatever the host runs.
# Nothing is installed on the host: a private apt fetches, dpkg-deb unpacks. The result is cached by its
# inputs and moved into place by one rename, so an interrupted run leaves no incomplete sysroot.
#
#   build/sysroot/ARCH/               the target's / (headers, static libraries)
#   build/sysroot/ARCH/third-party/   only the libraries that the host lacks: for builds in normal Swift,
#                                     which must use the host's own glibc
set -euo pipefail
cd "$(dirname "$0")/../.."
. board/build/private-apt.sh

SUITE=trixie
PACKAGES="libc6-dev linux-libc-dev libgcc-14-dev libmbedtls-dev libbluetooth-dev libdbus-1-dev
 nettle-dev libgmp-dev libsodium-dev libqrcodegen-dev
 libavahi-client-dev libavahi-core-dev libavahi-common-dev libinih-dev libjansson-dev libwpa-client-dev"
PACKAGES="$PACKAGES libc6 libgcc-s1 libcrypt-dev"   # required by the linker scripts of the -dev packages
THIRD_PARTY_LIBRARIES="mbedtls mbedx509 mbedcrypto hogweed nettle gmp sodium bluetooth dbus-1 avahi-client avahi-core avahi-common inih jansson wpa_client qrcodegen"
THIRD_PARTY_HEADERS="mbedtls psa nettle sodium bluetooth avahi-client avahi-common avahi-core ini.h jansson.h jansson_config.h wpa_ctrl.h qrcodegen"

arch=${1:-}
case $arch in
  x86_64) deb=amd64 ;;
  aarch64) deb=arm64 ;;
  *) echo "usage: board/build/sysroot.sh x86_64|aarch64" >&2; exit 2 ;;
esac
triple=$arch-linux-gnu
cache=${CAUSEWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/causeway}
stamp=$(cat board/build/sysroot.sh board/build/cut_section.py board/build/private-apt.sh | sha256sum | cut -c1-12)
home=$cache/sysroot-$arch-$stamp

mkdir -p "$cache" build/sysroot
exec 9> "$cache/sysroot-$arch.lock"
flock 9
if [ ! -d "$home" ]; then
  echo "sysroot $arch: fetching Debian $SUITE packages"
  work=$(mktemp -d "$cache/sysroot-$arch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  private_apt "$work/apt" $deb $SUITE
  mkdir -p "$work/debs" "$work/root"
  (cd "$work/debs" && apt-get -qq download $PACKAGES)
  for d in "$work"/debs/*.deb; do dpkg-deb -x "$d" "$work/root"; done
  rm -rf "$work/root/usr/share" "$work/root/etc" "$work/root/var"
  for d in lib lib64; do [ -e "$work/root/$d" ] || ln -s "usr/$d" "$work/root/$d"; done
  tools=$(dirname "$(readlink -f "$(command -v swift)")")
  objcopy=$tools/llvm-objcopy
  libraries=$work/root/usr/lib/$triple
  # An internal function of libavahi-core has the name of a public one of libavahi-client. Only one of the two could
  # be linked, and the wrong one would be called. CAvahi.c describes the second function.
  "$objcopy" --redefine-sym avahi_entry_group_free=avahi_core_entry_group_free \
    --redefine-sym avahi_reverse_lookup_name=cavahi_reverse_lookup_name "$libraries/libavahi-core.a"
  # Functions by which libdbus uses the machine's name services and system log: see NameService.c.
  for name in getaddrinfo freeaddrinfo getnameinfo getpwnam_r getpwuid_r getgrouplist openlog __vsyslog_chk; do
    "$objcopy" --redefine-sym "$name=cavahi_$name" "$libraries/libdbus-1.a"
  done
  # UTC alone, see CSystem.h. The functions that read the machine's time zone are never called.
  "$objcopy" --redefine-sym gmtime_r=csystem_gmtime_r "$libraries/libmbedcrypto.a"
  "$objcopy" --weaken-symbol=gmtime --weaken-symbol=localtime --weaken-symbol=mktime "$libraries/libwpa_client.a"
  # The transliteration tables of iconv are the end of one section of the locale “C”, 50 kB. board/build/firmware.ld ensures that iconv
  # is not linked.
  (cd "$work" && "$tools/llvm-ar" x "$libraries/libc.a" C-ctype.o)
  board/build/cut_section.py "$work/C-ctype.o" .rodata translit_
  (cd "$work" && "$tools/llvm-ar" r "$libraries/libc.a" C-ctype.o)
  mkdir -p "$work/root/third-party/include" "$work/root/third-party/lib"
  for h in $THIRD_PARTY_HEADERS; do cp -r "$work/root/usr/include/$h" "$work/root/third-party/include/"; done
  cp -r "$work/root/usr/include/dbus-1.0/dbus" "$work/root/usr/include/$triple/gmp.h" "$work/root/third-party/include/"
  for l in $THIRD_PARTY_LIBRARIES; do cp "$work/root/usr/lib/$triple/lib$l.a" "$work/root/third-party/lib/"; done
  ls "$work/debs" > "$work/root/packages.txt"
  mv "$work/root" "$home"
fi
ln -sfn "$home" "build/sysroot/$arch"
echo "sysroot $arch: $(readlink -f "build/sysroot/$arch")"
