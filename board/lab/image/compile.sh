#!/bin/bash
# compile.sh KERNEL-VERSION TARGET: compiles everything for the guest. The script runs inside the temporary tool root:
# /build has our sources, /guest is the guest's root, /kernel the unpacked kernel package.
set -euo pipefail
kernel=$1 target=$2

case $target in
    amd64) prefix= kernel_arch=x86 ;;
    arm64) prefix=aarch64-linux-gnu- kernel_arch=arm64 ;;
esac

# --- kernel modules that Debian does not build -------------------------------------------------------------------
cd /build
# gpio-sim needs irq_sim, which no Debian kernel contains, because nothing in those kernels selects irq_sim. So irq_sim
# is linked into gpio-sim. The handler of irq_sim uses irq_to_desc(), which modules may not use;
# generic_handle_irq_safe() does the same from any context.
if [ -f gpio-sim.c ]; then
    mv gpio-sim.c gpio_sim_core.c
    sed -i -e 's/handle_simple_irq(irq_to_desc(irqnum));/generic_handle_irq_safe(irqnum);/' -e '/EXPORT_SYMBOL_GPL/d' irq_sim.c
fi
{
    echo 'gpio-sim-y := gpio_sim_core.o irq_sim.o'
    for module in $(cat modules); do echo "obj-m += $module.o"; done
} > Makefile
make -s -C "/usr/src/linux-headers-$kernel" ARCH=$kernel_arch CROSS_COMPILE=$prefix CC=${prefix}gcc-14 M=/build modules
${prefix}strip --strip-debug ./*.ko

# --- the tool that lends Bluetooth sockets to a network namespace ------------------------------------------------
${prefix}gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -static -o /guest/usr/bin/nsbt nsbt.c

# --- modules into the guest --------------------------------------------------------------------------------------
modules=/kernel/usr/lib/modules/$kernel
[ -d "$modules" ] || modules=/kernel/lib/modules/$kernel
mkdir -p "$modules/extra" "/guest/usr/lib/modules/$kernel"
cp ./*.ko "$modules/extra/"
[ -e /kernel/lib/modules ] || { mkdir -p /kernel/lib; ln -s ../usr/lib/modules /kernel/lib/modules; }
depmod -b /kernel "$kernel"
python3 /build/select_modules.py "$modules" "/guest/usr/lib/modules/$kernel" $(cat guest-modules modules)
depmod -b /guest "$kernel"

# --- Python byte code: importing asyncio from source costs seconds on an emulated processor ----------------------
python=$(basename "$(ls -d /guest/usr/lib/python3.[0-9]*)")
"$python" - "$python" <<'PY'
import compileall, py_compile, sys
compileall.compile_dir(f"/guest/usr/lib/{sys.argv[1]}", quiet=2, stripdir="/guest", workers=1,
                       invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
PY
