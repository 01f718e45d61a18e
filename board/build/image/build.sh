#!/usr/bin/env bash
# build.sh BOARD: builds a board's card in build/image/BOARD: causeway.img to write to a card, causeway.update for cards in use.
#
# Uses Debian's arm64 packages and build/causeway_VERSION_arm64.deb (board/build/deb.sh), without a loop device or a
# mount on the host. Needs root, and the packages that board/build/host-packages.sh installs for “image”.
# CAUSEWAY_UPDATE_KEY=NAME.key signs updates. board/build/image/update-key.sh creates this key and NAME.crt beside it.
# Without the key there is no causeway.update, and the card accepts no update. The card trusts every certificate in
# NAME.crt. The first certificate is the certificate of the key. CAUSEWAY_CACHE is the directory of the package cache.
set -euo pipefail
update_key='' update_certificate=''
if [ -n "${CAUSEWAY_UPDATE_KEY:-}" ]; then
    update_key=$(realpath -e "$CAUSEWAY_UPDATE_KEY")
    update_certificate=$(realpath -e "${update_key%.*}.crt")
    # RAUC on the card accepts only certificates for code signing.
    openssl x509 -in "$update_certificate" -noout -ext extendedKeyUsage 2> /dev/null | grep -q 'Code Signing' ||
        { echo "image: $update_certificate is not for code signing; board/build/image/update-key.sh makes one that is" >&2; exit 1; }
fi
cd "$(dirname "$0")/../../.."

board=${1:-}
[ -f "board/boards/$board/image.conf" ] || { echo "usage: build.sh $(ls board/boards/*/image.conf | cut -d / -f 3 | paste -sd '|')" >&2; exit 2; }
here=$PWD/board/build/image
. board/build/image/contents.conf
. "board/boards/$board/image.conf"
. board/lab/image/apt-root.sh

# RAUC compares semantic versions. Two builds of the same release are ordered by the time of their commit (UTC, seconds).
version=$(sed -n 's/.*causewayVersion = "\(.*\)"/\1/p' Sources/Status/Version.swift)
version+=-$(TZ=UTC0 git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S)+$(git rev-parse --short HEAD)
package=$(ls build/causeway_*_arm64.deb)
cache=${CAUSEWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/causeway}
out=$PWD/build/image/$board
started=$SECONDS
step() { printf 'image: [%3d s] %s\n' $((SECONDS - started)) "$*" >&2; }
mkdir -p "$cache" "$out"
# The lock is that of the radio lab, which uses the same cached packages.
exec 9> "$cache/lab.lock"
flock 9
work=$(mktemp -d "$cache/image.XXXXXX")
trap 'rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

# --- Debian: a root file system, with its maintainer scripts run under an emulator -------------------------------------------------------------
apt=$cache/apt-$suite-arm64
step "packages of Debian $suite"
make_apt_root "$apt" arm64 "$suite"
stamp=$(printf '%s\n' "$suite" "${packages[@]}" | sha256sum | cut -c 1-12)
base=$cache/image-root-$stamp.tar
if [ ! -f "$base" ]; then
    step "install them"
    bash "$here/emulator.sh" mmdebstrap --quiet --mode=root --format=tar --architectures=arm64 --variant=essential --skip=check/qemu \
        --aptopt='APT::Install-Recommends "false"' \
        --include="$(IFS=,; echo "${packages[*]}")" "$suite" "$base.new" < "$apt/sources.list"
    mv "$base.new" "$base"
fi

step "kernel and firmware"
kernel=$(APT_CONFIG=$apt/apt.conf apt-cache depends linux-image-arm64 | sed -n 's/.*Depends: *linux-image-\([0-9].*\)/\1/p' | head -n 1)
for name in "linux-image-$kernel" "${board_packages[@]}"; do
    mkdir -p "$cache/image-packages" "$work/extra"
    APT_CONFIG=$apt/apt.conf apt-get -qq --print-uris download "$name" | while read -r _ file _; do
        [ -f "$cache/image-packages/$file" ] || (cd "$cache/image-packages" && APT_CONFIG=$apt/apt.conf apt-get -qq download "$name")
        dpkg-deb --extract "$cache/image-packages/$file" "$work/extra"
    done
done
ln -s usr/lib "$work/extra/lib"
depmod -b "$work/extra" "$kernel"

# --- the root of a slot ---------------------------------------------------------------------------------------------------------------
step "root"
root=$work/root
mkdir "$root"
tar -xpf "$base" -C "$root"
cp -r "$here/root/." "$root/"
[ ! -d "board/boards/$board/root" ] || cp -r "board/boards/$board/root/." "$root/"
cp "$package" "$root/causeway.deb"
bash "$here/emulator.sh" bash -c 'mount -t proc proc "$0/proc"; chroot "$0" "$@"' "$root" /bin/sh -euc '
    export DEBIAN_FRONTEND=noninteractive
    systemd-sysusers /usr/lib/sysusers.d/00-image.conf
    dpkg --install /causeway.deb
    rm /causeway.deb
    cp /etc/causeway/causeway.conf /usr/share/causeway/causeway.conf
    systemctl enable causeway causeway-first-start causeway-slot causeway-slot-failed.timer ssh systemd-networkd
    systemctl mask wpa_supplicant.service' > "$work/chroot.log" 2>&1 || { cat "$work/chroot.log" >&2; exit 1; }
printf 'board="%s"\nversion="%s"\nrestart=%s\n' "$board" "$version" "$restart" > "$root/usr/share/causeway/image.conf"
sed -i -e "s/@BOARD@/$board/" -e "s/@VERSION@/$version/" "$root/etc/rauc/system.conf"
[ -z "$update_key" ] || install -m 644 "$update_certificate" "$root/etc/rauc/keyring.pem"
(cd "$root"; dpkg-query --admindir=var/lib/dpkg --show > usr/share/causeway/packages.txt
    shopt -s nullglob
    for pattern in "${removed[@]}"; do rm -rf $pattern; done)
echo causeway > "$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 causeway\n::1 localhost\n' > "$root/etc/hosts"
: > "$root/etc/machine-id"
: > "$root/etc/fstab"
rm -rf "$root"/etc/ssh/ssh_host_* "$root"/etc/causeway/*
mkdir -p "$root"/{data,boot,etc/ssh/keys,var/log,var/cache} "$root/usr/lib/modules/$kernel" "$root/usr/lib/firmware"
modules=$work/extra/usr/lib/modules/$kernel
python3 board/lab/image/select_modules.py "$modules" "$root/usr/lib/modules/$kernel" "${root_modules[@]}" "${board_modules[@]}"
depmod -b "$root" "$kernel"
for pattern in "${firmware_files[@]}"; do
    (cd "$work/extra/usr/lib/firmware" && compgen -G "$pattern" > /dev/null && cp -a --parents $pattern "$root/usr/lib/firmware/") ||
        { echo "image: the packages ${board_packages[*]} have no $pattern" >&2; exit 1; }
done
for file in "${board_files[@]}"; do (cd "$work/extra" && cp -a --parents "$file" "$root/"); done
mksquashfs "$root" "$work/slot" -comp zstd -Xcompression-level 19 -b 256K -noappend -quiet -no-progress

# --- kernel and initial RAM disk ------------------------------------------------------------------------------------------------------
step "initial RAM disk"
ram=$work/ram
mkdir -p "$ram"/{bin,usr/lib/modules/"$kernel"}
ln -s usr/lib "$ram/lib"
cp "$root/usr/bin/busybox" "$ram/bin/"
install -m 755 "$here/init" "$ram/init"
python3 board/lab/image/select_modules.py "$modules" "$ram/usr/lib/modules/$kernel" "${early_modules[@]}" 2> /dev/null
depmod -b "$ram" "$kernel"
echo "${early_modules[@]}" > "$ram/modules"
mkdir -p "$work/boot/a"
(cd "$ram" && find . -print0 | sort -z | cpio --quiet --null --reproducible -R 0:0 -o -H newc) | gzip -9n > "$work/boot/a/initrd"
gzip -9nc "$work/extra/boot/vmlinuz-$kernel" > "$work/boot/a/kernel.gz"
for file in "${device_trees[@]}"; do cp "$work/extra/usr/lib/linux-image-$kernel/$file" "$work/boot/a/"; done
echo "$command_line causeway.slot=a" > "$work/boot/a/cmdline.txt"

# --- the card -------------------------------------------------------------------------------------------------------------------------
step "card"
slot_bytes=$(stat -c %s "$work/slot")
[ "$slot_bytes" -le $((slot_mib << 20)) ] || { echo "image: the root has $slot_bytes bytes, and a slot $slot_mib MiB" >&2; exit 1; }
for file in "${boot_files[@]}"; do cp "$work/extra/$file" "$work/boot/"; done
printf 'os_prefix=a/\n%s\n' "$config" > "$work/boot/config.txt"
truncate -s "${boot_mib}M" "$work/boot.img"
mkfs.vfat -F 32 -n CAUSEWAY --invariant "$work/boot.img" > /dev/null
(cd "$work/boot" && mcopy -s -m -i "$work/boot.img" ./* ::)
mkdir "$work/data"
mke2fs -q -t ext4 -L data -d "$work/data" "$work/data.img" "${data_mib}M"
image=$work/causeway.img
total=$((4 + boot_mib + 2 * slot_mib + data_mib))
truncate -s "${total}M" "$image"
offset=4 number=0
for part in "$boot_mib c" "$slot_mib 83" "$slot_mib 83" "$data_mib 83"; do
    echo "start=$((offset * 2048)), size=$((${part% *} * 2048)), type=${part#* }$([ $number = 0 ] && echo ', bootable')"
    offset=$((offset + ${part% *})) number=$((number + 1))
done | sfdisk --quiet --label dos "$image"
put() { dd if="$1" of="$image" bs=1M seek="$2" conv=notrunc,sparse status=none; }
put "$work/boot.img" 4
put "$work/slot" $((4 + boot_mib))
put "$work/data.img" $((4 + boot_mib + 2 * slot_mib))
mv "$image" "$out/causeway.img"
zstd -qf -10 "$out/causeway.img" -o "$out/causeway.img.zst"

# --- the update -----------------------------------------------------------------------------------------------------------------------
rm -f "$out/causeway.update"
if [ -n "$update_key" ]; then
    step "update"
    bundle=$work/bundle
    # All files are in one directory, because RAUC 1.13 makes no bundle with a subdirectory. The script `slots` on the card
    # accepts only these names.
    mkdir "$bundle"
    mv "$work/slot" "$bundle/slot.img"
    cp "$work"/boot/a/* "$bundle/"
    rm "$bundle/cmdline.txt"
    printf '[update]\ncompatible=causeway-%s\nversion=%s\n[bundle]\nformat=verity\n[image.system]\nfilename=slot.img\n' "$board" "$version" \
        > "$bundle/manifest.raucm"
    rauc bundle --cert="$update_certificate" --key="$update_key" "$bundle" "$out/causeway.update" > "$work/rauc.log" 2>&1 ||
        { cat "$work/rauc.log" >&2; exit 1; }
fi
step "done: slot $slot_bytes bytes"
ls -l "$out" >&2
