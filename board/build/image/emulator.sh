# emulator.sh COMMAND…: runs a command that can start arm64 programs on this machine, for example in an arm64 root. The emulator is
# registered with the kernel while the command runs. The command has its own mount namespace.
set -euo pipefail

if [ "${CAUSEWAY_EMULATOR:-}" != 1 ]; then exec env CAUSEWAY_EMULATOR=1 unshare --mount bash "$0" "$@"; fi
formats=/proc/sys/fs/binfmt_misc
mount -t binfmt_misc binfmt_misc $formats
if [ ! -e $formats/qemu-aarch64 ]; then
    # The kernel compares a program's ELF header with these bytes under this mask. The flag F keeps the emulator open, so a root
    # that the command enters need not contain the emulator.
    printf '%s' ':causeway-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F' \
        > $formats/register
    trap 'echo -1 > $formats/causeway-aarch64' EXIT
fi
"$@"
