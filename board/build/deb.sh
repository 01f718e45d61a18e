#!/usr/bin/env bash
# board/build/deb.sh amd64|arm64 [VERSION]   package build/ARCH/causeway as build/causeway_VERSION_ARCH.deb
#
# Uses only dpkg-deb, because the binary is complete: debhelper would have nothing to do. The same input gives the same bytes
# (SOURCE_DATE_EPOCH).
set -euo pipefail
cd "$(dirname "$0")/../.."

case ${1:-} in
  amd64) binary=build/x86_64/causeway; program=$binary ;;
  arm64) binary=build/aarch64/causeway; program="qemu-aarch64-static $binary" ;;
  *) sed -n '2p' "$0" | cut -c3- >&2; exit 2 ;;
esac
arch=$1
version=${2:-$(sed -n 's/.*causewayVersion = "\(.*\)"/\1/p' Sources/Status/Version.swift)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022
chmod 755 "$root"

put() { install -D -m "$1" "$2" "$root/$3"; }
put 755 $binary usr/bin/causeway
put 644 config/causeway.service usr/lib/systemd/system/causeway.service
put 644 config/causeway-poweroff.path usr/lib/systemd/system/causeway-poweroff.path
put 644 config/causeway-poweroff.service usr/lib/systemd/system/causeway-poweroff.service
put 644 config/causeway.udev usr/lib/udev/rules.d/60-causeway.rules
put 644 config/causeway-receive.service usr/lib/systemd/user/causeway-receive.service
put 644 config/causeway.sysusers usr/lib/sysusers.d/causeway.conf
put 644 config/sshd/causeway.sysusers usr/lib/sysusers.d/causeway-diag.conf
put 644 config/causeway.conf etc/causeway/causeway.conf
put 644 config/sshd/causeway.conf etc/ssh/sshd_config.d/causeway.conf
# The scripts for OpenRC and sysvinit are only examples, because both would be /etc/init.d/causeway. Debian starts services by
# systemd, and requires no such script (Policy 9.3).
put 644 config/causeway.openrc usr/share/doc/causeway/examples/causeway.openrc
put 644 config/causeway.init usr/share/doc/causeway/examples/causeway.init
put 644 config/grafana/causeway.json usr/share/causeway/grafana.json
put 644 board/build/deb/causeway.bash usr/share/bash-completion/completions/causeway
put 644 board/build/deb/copyright usr/share/doc/causeway/copyright
put 644 NOTICE usr/share/doc/causeway/NOTICE
put 644 board/build/deb/lintian-overrides usr/share/lintian/overrides/causeway

# The manual pages are made from the program's help texts.
mkdir -p "$root/usr/share/man/man1"
page() { # NAME SUMMARY COMMAND: a page with this name. help2man itself would use the first word of COMMAND as the name.
  local title
  title=$(tr a-z A-Z <<< "$1")
  help2man --no-info --no-discard-stderr --source="Causeway $version" --manual=Causeway --version-string="$version" \
    --name="$2" "$3" |
    sed -e "s/^\.TH [^ ]* /.TH $title /" -e "/^\.SH NAME/{n;s/.* \\\\- /$1 \\\\- /}" |
    gzip -9n > "$root/usr/share/man/man1/$1.1.gz"
}
page causeway "relay between Bluetooth, Wi-Fi Direct and Ethernet peers" "$program"
$program --help | sed -n 's/^  \([a-z]\{1,\}\)  *\(.*\)/\1 \2/p' | while read -r command summary; do
  page "causeway-$command" "$summary" "$program $command"
done

printf 'causeway (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n -- Causeway <causeway@example.org>  %s\n' \
  "$version" "$(date -Rud "@$SOURCE_DATE_EPOCH")" | gzip -9n > "$root/usr/share/doc/causeway/changelog.gz"
size=$(du -sk "$root" | cut -f 1)
mkdir "$root/DEBIAN"
(cd "$root" && find etc -type f -printf '/%p\n' | sort) > "$root/DEBIAN/conffiles"
install -m 755 board/build/deb/{postinst,prerm,postrm} "$root/DEBIAN/"
sed -e "s/@ARCH@/$arch/" -e "s/@VERSION@/$version/" -e "s/@SIZE@/$size/" board/build/deb/control > "$root/DEBIAN/control"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) > "$root/DEBIAN/md5sums"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "build/causeway_${version}_$arch.deb"
