# emulator.sh COMMAND…: runs a command in a mount namespace of its own, in which this machine runs programs of arm64 too, as in a
# root of theirs. The kernel knows the emulator for that long.
set -euo pipefail

if [ "${CAUSEWAY_EMULATOR:-}" != 1 ]; then exec env CAUSEWAY_EMULATOR=1 unshare --mount bash "$0" "$@"; fi
formats=/proc/sys/fs/binfmt_misc
mount -t binfmt_misc binfmt_misc $formats
if [ ! -e $formats/qemu-aarch64 ]; then
    # Bytes of an ELF header, and which of them count. The emulator stays open (F), so that it need not be in the root.
    printf '%s' ':causeway-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F' \
        > $formats/register
    trap 'echo -1 > $formats/causeway-aarch64' EXIT
fi
"$@"
