#!/bin/bash
# host-packages.sh: installs the packages that the radio lab needs on a Debian 12 or 13 host, if they are missing.
#
# usage: board/virtual/host-packages.sh [amd64|arm64|package ...]     (default: both guests)
#        package: for building and testing the Debian package; image: for building and testing a board's card
#        load: for compiling the load generator of the benchmarks; peers: other relays in the benchmarks (Debian starts their services)
#        bench: for counting instructions
set -euo pipefail

architectures=("$@")
[ ${#architectures[@]} -gt 0 ] || architectures=(amd64 arm64)

# xz-utils unpacks the kernel source, python3-pip fetches the Bluetooth controller model, util-linux has flock. openssl, strace and curl
# are for the tests of identity, state and files. python3-pyte reads the screen of a test's terminal, python3-zbar reads QR codes,
# chromium-headless-shell (amd64) the status page, tshark (amd64) captures. busybox-static (amd64) has a DHCP client. iproute2 creates
# the interfaces of the daemons' tests.
wanted=(ca-certificates coreutils curl debian-archive-keyring iproute2 openssl python3 python3-pip python3-pyte python3-zbar strace util-linux xz-utils)
for architecture in "${architectures[@]}"; do
    case $architecture in
        amd64) wanted+=(qemu-system-x86 tshark chromium-headless-shell busybox-static) ;;
        arm64) wanted+=(qemu-system-arm qemu-user-static) ;;
        package) wanted+=(help2man lintian mmdebstrap) ;;
        bench) wanted+=(gcc qemu-user) ;;
        load) wanted+=(gcc libc6-dev libsodium-dev libssl-dev) ;;
        peers) wanted+=(haproxy mosquitto nats-server openssh-client openssh-server python3-venv) ;;
        image) wanted+=(cpio dosfstools e2fsprogs fdisk kmod mmdebstrap mtools openssh-client rauc squashfs-tools zstd) ;;
        *) echo "host-packages: no such architecture: $architecture" >&2; exit 126 ;;
    esac
done

missing=()
for package in "${wanted[@]}"; do
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "host-packages: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
install_missing() {
    apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends install "${missing[@]}" >/dev/null
}
# A fresh machine may have no package lists, or stale ones. They are fetched only if the first attempt fails.
install_missing 2>/dev/null || { apt-get -qq update && install_missing; }
