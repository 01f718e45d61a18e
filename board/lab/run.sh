#!/bin/bash
# run.sh [-a amd64|arm64] [-t SECONDS] [-o DIRECTORY] [-m MIB] [-c CPUS] [-f FIRMWARE] SCENARIO [ARGUMENT...]
#
# Boots the radio lab and runs a scenario there: a Python or bash file, named by path, or by name in Tests/Lab/scenarios
# or Tests/Lab/alone. Only the scenario's output appears on stdout, immediately.
#
# Exit status: the scenario's; 125 if the machine hung, panicked or ran out of time; 126 for a wrong call.
# Result: DIRECTORY (default build/lab/SCENARIO-amd64 or -arm64) with console.log (kernel), scenario.log and the logs of the nodes.
#
# The guest gets Tests/Lab, config, README.md, Examples/python, the virtual air for Bluetooth, and the firmware. The
# firmware is FIRMWARE, or build/x86_64/causeway (build/aarch64/causeway) if this file exists. A scenario with the line `# init: systemd` runs as a
# service of systemd. Runs share only the read-only image, so any number of runs can take place at the same time.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../.." && pwd)

usage() { sed -n '2s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 126; }

arch=amd64 seconds=300 memory=768 cpus=2 output= firmware=
while getopts a:t:o:m:c:f: option; do
    case $option in
        a) arch=$OPTARG ;;
        t) seconds=$OPTARG ;;
        o) output=$OPTARG ;;
        m) memory=$OPTARG ;;
        c) cpus=$OPTARG ;;
        f) firmware=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
case $arch in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) usage ;; esac

scenario=
for candidate in "$1" "$project/Tests/Lab/scenarios/$1" "$project/Tests/Lab/scenarios/$1.py" "$project/Tests/Lab/scenarios/$1.sh" \
    "$project/Tests/Lab/alone/$1.py"; do
    if [ -f "$candidate" ]; then scenario=$(realpath "$candidate"); break; fi
done
[ -n "$scenario" ] || { echo "run.sh: no such scenario: $1" >&2; exit 126; }
shift
case $scenario in
    *.py) interpreter=python3 ;;
    *.sh) interpreter=bash ;;
    *) echo "run.sh: a scenario is a .py or .sh file: $scenario" >&2; exit 126 ;;
esac

name=$(basename "${scenario%.*}")
output=${output:-$project/build/lab/$name-$arch}
mkdir -p "$output"
output=$(realpath "$output")
rm -rf "${output:?}"/*

image=$("$here/image.sh" "$arch") || { echo "run.sh: no image" >&2; exit 125; }

# --- the files of this run, as a second archive behind the image's --------------------------------------------
work=$(mktemp -d)
qemu=
finish() {
    [ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

lab=$work/overlay/lab
mkdir -p "$lab" "$work/overlay/usr/bin"
install -m 755 "$here/guest/init" "$work/overlay/init"
cp -r "$project/Tests/Lab/." "$here/air" "$project/config" "$project/README.md" "$project/Examples/python/." "$lab/"
find "$lab" -name __pycache__ -prune -exec rm -rf {} +
cp "$scenario" "$lab/"
# The guest cannot see whether the output of this script is a terminal, so NO_COLOR is set here (no-color.org).
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || printf 'export NO_COLOR=1; ' > "$lab/command"
printf 'exec %s %q' "$interpreter" "/lab/$(basename "$scenario")" >> "$lab/command"
[ $# -eq 0 ] || printf ' %q' "$@" >> "$lab/command"
[ -z "$firmware" ] || [ -f "$firmware" ] || { echo "run.sh: no such firmware: $firmware" >&2; exit 126; }
firmware=${firmware:-$project/build/$machine/causeway}
[ ! -f "$firmware" ] || install -m 755 "$firmware" "$work/overlay/usr/bin/causeway"
boot=
if grep -q '^# init: systemd$' "$scenario"; then
    touch "$lab/systemd"
    install -D -m 644 "$here/guest/lab.service" "$work/overlay/etc/systemd/system/lab.service"
    boot="systemd.unit=lab.service"
fi
{ cat "$image/base.cpio"; python3 "$here/image/cpio.py" "$work/overlay"; } > "$work/initrd"

# --- the machine -------------------------------------------------------------------------------------------------------
accelerator=tcg,thread=multi,tb-size=512
case $arch in
    amd64)
        board=(qemu-system-x86_64 -M q35) cpu=max serial=ttyS0
        # Without either flag (nested or paravirtual), /dev/kvm creates machines but cannot run Debian's kernel.
        if [ "$(uname -m)" = x86_64 ] && [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
            accelerator=kvm cpu=host
        fi
        ;;
    arm64) board=(qemu-system-aarch64 -M virt) cpu=cortex-a72 serial=ttyAMA0 ;;
esac

# The scenario's output goes through a pipe, because QEMU would make the caller's stdout non-blocking. QEMU's stdin is a pipe that
# never ends, because at the end of stdin QEMU would treat the scenario's port as unplugged.
mkfifo "$work/story" "$work/silence"
cat "$work/story" &
relay=$!
# On a busy host an emulated timer can be so late that the kernel would panic or print warnings. no_timer_check and nowatchdog
# prevent this.
kernel_options="console=$serial panic=-1 quiet loglevel=4 rdinit=/init net.ifnames=0"
kernel_options+=" random.trust_cpu=on mitigations=off no_timer_check nowatchdog $boot"
timeout --kill-after=5 "$seconds" "${board[@]}" -accel "$accelerator" -cpu "$cpu" -smp "$cpus" -m "$memory" \
    -nodefaults -no-user-config -display none -no-reboot \
    -kernel "$image/vmlinuz" -initrd "$work/initrd" \
    -append "$kernel_options" \
    -chardev file,id=console,path="$output/console.log" -serial chardev:console \
    -device virtio-serial-pci \
    -chardev stdio,id=story,signal=off,logfile="$output/scenario.log" -device virtserialport,chardev=story,name=lab.story \
    -chardev file,id=status,path="$work/status" -device virtserialport,chardev=status,name=lab.status \
    -fsdev local,id=out,path="$output",security_model=none -device virtio-9p-pci,fsdev=out,mount_tag=out \
    -device virtio-rng-pci \
    <> "$work/silence" > "$work/story" &
qemu=$!
ended=0
wait "$qemu" || ended=$?
qemu=
wait "$relay" || true

if [ "$ended" = 0 ] && [ -s "$work/status" ]; then
    exit "$(cat "$work/status")"
fi
if [ "$ended" = 124 ] || [ "$ended" = 137 ]; then reason="did not finish in $seconds s"; else reason="stopped without a result"; fi
echo "run.sh: the machine $reason; its console is in $output/console.log" >&2
exit 125
