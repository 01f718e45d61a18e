#!/bin/bash
# host-packages.sh: installs the packages that builds, tests and the radio lab need on a Debian 12 or 13 host, if they are missing.
#
# usage: board/build/host-packages.sh [amd64|arm64|package ...]     (default: amd64 arm64)
#        amd64, arm64: to run programs and the radio lab's machine of this architecture
#        package: to build and test the Debian package; image: to build and test a board's card
#        load: to compile the load generator of the benchmarks
#        peers: the relays with which the benchmarks compare Causeway (Debian starts them as services)
#        bench: to count the instructions of a forwarded frame
set -euo pipefail

architectures=("$@")
[ ${#architectures[@]} -gt 0 ] || architectures=(amd64 arm64)

# xz-utils unpacks the kernel source, python3-pip fetches the Bluetooth controller model, util-linux has flock. The tests of identity,
# state and files use openssl, strace and curl. python3-pyte reads the screen of a test's terminal, and python3-zbar reads QR codes.
# chromium-headless-shell (amd64) shows the status page, and tshark (amd64) reads captures. busybox-static (amd64) has a DHCP client.
# iproute2 creates the interfaces of the tests with daemons.
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
# A new machine can lack package lists, or have old ones. So the lists are fetched if the first attempt fails.
install_missing 2>/dev/null || { apt-get -qq update && install_missing; }
