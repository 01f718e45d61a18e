#!/usr/bin/env bash
# boot.sh IMAGE [QEMU-OPTION…]: starts the virtual board once with a card, on this terminal, until it is switched off or restarts.
#
# The script acts as the firmware of a board. config.txt on the card's first partition names the slot to start. If the system has
# made the file tryboot, tryboot.txt names the slot for one start; on a Raspberry Pi a register requests this. CAUSEWAY_DRIVE
# replaces the options of QEMU's -blockdev.
set -euo pipefail

image=$1
shift
card() { printf '%s' "$image@@4M"; }   # The first partition begins at 4 MiB.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

configuration=config.txt
if mdel -i "$(card)" ::tryboot 2> /dev/null; then configuration=tryboot.txt; fi
mcopy -n -i "$(card)" "::$configuration" "$work/config"
slot=$(sed -n 's,^os_prefix=\(.*\)/[[:space:]]*$,\1,p' "$work/config")
mcopy -n -i "$(card)" "::$slot/kernel.gz" "::$slot/initrd" "::$slot/cmdline.txt" "$work/"
gunzip "$work/kernel.gz"

qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 512 -accel tcg,thread=multi -nodefaults -no-user-config -display none -no-reboot \
    -kernel "$work/kernel" -initrd "$work/initrd" -append "$(cat "$work/cmdline.txt")" \
    -blockdev "${CAUSEWAY_DRIVE:-driver=file,node-name=card,filename=$image}" -device virtio-blk-pci,drive=card \
    -device virtio-rng-pci -serial stdio "$@"
