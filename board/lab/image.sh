#!/bin/bash
# image.sh [amd64|arm64]: builds the radio lab's image, a stock Debian kernel and a userland of Debian packages, unless it exists
# already. Prints the directory of the image.
#
# The host is not changed: packages come through a private apt, and compilers run in a temporary root. Needs root
# (chroot) and the packages of board/build/host-packages.sh, which are installed if missing. CAUSEWAY_CACHE moves the
# cache, CAUSEWAY_DEBIAN_MIRROR overrides the archive apt is configured with.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
arch=${1:-amd64}
case $arch in amd64 | arm64) ;; *) echo "usage: image.sh [amd64|arm64]" >&2; exit 126 ;; esac

cache=${CAUSEWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/causeway}
image=$cache/lab-$arch
inputs=("$here/image.sh" "$here"/image/* "$here/guest/nsbt.c")
stamp=$(cat "${inputs[@]}" | sha256sum | cut -c 1-32)

is_current() { [ "$(cat "$image/stamp" 2>/dev/null)" = "$stamp" ]; }
if is_current; then echo "$image"; exit 0; fi

"$here/../build/host-packages.sh" "$arch"
mkdir -p "$cache"
# Only one build runs at a time, of either architecture, because builds share the package cache of the compilers.
exec 9> "$cache/lab.lock"
flock 9
if is_current; then echo "$image"; exit 0; fi

started=$SECONDS
step() { printf 'lab: [%3d s] %s\n' $((SECONDS - started)) "$*" >&2; }

. "$here/image/contents.conf"
. "$here/image/apt-root.sh"

work=$cache/lab-$arch.building
tools=$work/tools
guest=$tools/guest
rm -rf "$work"
mkdir -p "$tools"/{build,kernel,guest,dev,tmp} "$work/image"
trap 'rm -rf "$work"' EXIT

unpack() { # DIRECTORY PACKAGE-FILE...
    local directory=$1 file
    shift
    # Debian merges these directories, and packages expect the links.
    mkdir -p "$directory"/usr/{bin,sbin,lib}
    for link in bin sbin lib; do [ -e "$directory/$link" ] || ln -s "usr/$link" "$directory/$link"; done
    [ -e "$directory/lib64" ] || { mkdir -p "$directory/usr/lib64"; ln -s usr/lib64 "$directory/lib64"; }
    for file in "$@"; do dpkg-deb --extract "$file" "$directory"; done
}

# --- packages --------------------------------------------------------------------------------------------------------
step "package lists of Debian $suite"
guest_apt=$cache/apt-$suite-$arch
tool_apt=$cache/apt-$suite-amd64
make_apt_root "$guest_apt" "$arch" "$suite"
[ "$arch" = amd64 ] || make_apt_root "$tool_apt" amd64 "$suite"

kernel=$(APT_CONFIG=$guest_apt/apt.conf apt-cache depends "linux-image-$arch" |
    sed -n 's/.*Depends: *linux-image-\([0-9].*\)/\1/p' | head -n 1)
release=${kernel%-*}                                     # 6.12.1+deb13-amd64 -> 6.12.1+deb13
source_package=linux-source-$(cut -d . -f 1,2 <<< "$kernel")

step "download the guest's packages"
package_files "$guest_apt" "${guest_packages[@]}" > "$work/guest-files"
mapfile -t guest_files < "$work/guest-files"

step "download the compilers and kernel $kernel"
compiler=(gcc-14 libc6-dev)
[ "$arch" = amd64 ] || compiler=(gcc-14-aarch64-linux-gnu libc6-dev-arm64-cross)
package_files "$tool_apt" "${compiler[@]}" "linux-kbuild-$release" \
    bash coreutils findutils diffutils grep sed mawk make kmod python3 > "$work/tool-files"
mapfile -t tool_files < "$work/tool-files"

kernel_files=$guest_apt/kernel-$kernel
if [ ! -f "$kernel_files/complete" ]; then
    rm -rf "$guest_apt"/kernel-* && mkdir -p "$kernel_files"
    (
        cd "$kernel_files"
        export APT_CONFIG=$guest_apt/apt.conf
        apt-get -qq download "linux-image-$kernel" "linux-headers-$kernel" "linux-headers-$release-common" "$source_package"
        # Only four files of the kernel source are needed.
        dpkg-deb --fsys-tarfile "$source_package"_*.deb | tar -xO "./usr/src/$source_package.tar.xz" | xz -dc -T0 |
            tar -x --no-anchored --transform='s,.*/,,' "${extra_sources[@]/#/$source_package/}"
        rm "$source_package"_*.deb
        touch complete
    )
fi

wheels=$cache/wheels
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.13 \
    --require-hashes --requirement "$here/image/wheels.txt" --dest "$wheels"

# --- unpack ----------------------------------------------------------------------------------------------------------
step "unpack"
for file in "${guest_files[@]}"; do
    name=$(basename "$file")
    [[ " ${guest_packages_skipped[*]} " == *" ${name%%_*} "* ]] || wanted_files+=("$file")
done
unpack "$guest" "${wanted_files[@]}"
unpack "$tools" "${tool_files[@]}" "$kernel_files"/linux-headers-*.deb
dpkg-deb --extract "$kernel_files/linux-image-$kernel"_*.deb "$tools/kernel"
cp "$tools/kernel/boot/vmlinuz-$kernel" "$work/image/vmlinuz"

(
    cd "$guest"
    shopt -s nullglob
    for pattern in "${guest_removed[@]}"; do rm -rf $pattern; done
)
python=$(basename "$guest"/usr/lib/python3.[0-9]*)
while read -r wheel _; do
    [[ $wheel == *==* ]] || continue
    python3 -m zipfile -e "$wheels/${wheel%%==*}-${wheel##*==}"-*.whl "$guest/usr/lib/$python"
done < "$here/image/wheels.txt"
rm -rf "$guest/usr/lib/$python"/bumble/{apps,tools}

# --- compile ---------------------------------------------------------------------------------------------------------
step "compile modules, tools and byte code"
for file in "${extra_sources[@]}"; do cp "$kernel_files/$(basename "$file")" "$tools/build/"; done
cp "$here/guest/nsbt.c" "$here"/image/{compile.sh,select_modules.py} "$tools/build/"
echo "${extra_modules[@]}" > "$tools/build/modules"
echo "${guest_modules[@]}" > "$tools/build/guest-modules"
ln -sf bash "$tools/usr/bin/sh"
ln -sf mawk "$tools/usr/bin/awk"
mknod -m 666 "$tools/dev/null" c 1 3
chroot "$tools" /usr/bin/env -i PATH=/usr/sbin:/usr/bin LC_ALL=C /bin/bash /build/compile.sh "$kernel" "$arch"

# --- files that maintainer scripts would have created -------------------------------------------------------------------------
step "assemble"
ln -sf bash "$guest/usr/bin/sh"
ln -sf mawk "$guest/usr/bin/awk"
ln -sf "$python" "$guest/usr/bin/python3"
for database in regulatory.db regulatory.db.p7s; do
    ln -sf "$database-debian" "$guest/usr/lib/firmware/$database"
done
mkdir -p "$guest"/{dev,proc,sys,run,tmp,root,out,lab,etc,var/lib,var/log}
rm -rf "$guest/var/run" && ln -s /run "$guest/var/run"
cat > "$guest/etc/passwd" <<-EOF
	root:x:0:0:root:/root:/bin/bash
	messagebus:x:101:101::/nonexistent:/bin/false
	avahi:x:102:102::/nonexistent:/bin/false
	nobody:x:65534:65534::/nonexistent:/bin/false
EOF
cat > "$guest/etc/group" <<-EOF
	root:x:0:
	netdev:x:100:
	messagebus:x:101:
	avahi:x:102:
	bluetooth:x:103:
	nogroup:x:65534:
EOF
printf '127.0.0.1 localhost\n::1 localhost\n' > "$guest/etc/hosts"
printf 'passwd: files\ngroup: files\nhosts: files\n' > "$guest/etc/nsswitch.conf"

python3 "$here/image/cpio.py" --devices "$guest" > "$work/image/base.cpio"
printf '%s\n' "$kernel" > "$work/image/kernel-version"
printf '%s\n' "${guest_files[@]##*/}" "${wheels##*/}: $(grep -o '^[a-z].*==[^ ]*' "$here/image/wheels.txt" | xargs)" > "$work/image/contents"
printf '%s\n' "$stamp" > "$work/image/stamp"

# The new image appears in one step. A killed build leaves the old image or no image, never a partial one.
rm -rf "$image"
mv "$work/image" "$image"
step "done, $(du -m "$image/base.cpio" | cut -f 1) MiB"
echo "$image"
