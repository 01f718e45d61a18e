#!/usr/bin/env python3
"""select_modules.py SOURCE TARGET MODULE...: copies kernel modules and their dependencies, uncompressed.

SOURCE and TARGET are lib/modules/VERSION directories, and depmod has run on SOURCE. The guest's own depmod index is made
afterwards, from TARGET."""

import lzma
import pathlib
import shutil
import sys


def module_name(path):
    """drivers/gpio/gpio-sim.ko.xz -> gpio_sim, as modprobe spells it."""
    return pathlib.PurePath(path).name.split(".ko")[0].replace("-", "_")


def main(source, target, wanted):
    source, target = pathlib.Path(source), pathlib.Path(target)
    dependencies, path_of = {}, {}
    for line in (source / "modules.dep").read_text().splitlines():
        path, needed = line.split(":", 1)
        dependencies[path] = needed.split()
        path_of[module_name(path)] = path
    built_in = {module_name(line) for line in (source / "modules.builtin").read_text().split()}

    selected = set()
    for name in (module.replace("-", "_") for module in wanted):
        if name in path_of:
            selected |= {path_of[name], *dependencies[path_of[name]]}
        elif name not in built_in:
            print(f"lab: this kernel has no module {name}", file=sys.stderr)

    for path in sorted(selected):
        content = (source / path).read_bytes()
        if path.endswith(".xz"):
            content = lzma.decompress(content)
            path = path.removesuffix(".xz")
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    for index in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(source / index, target)


main(sys.argv[1], sys.argv[2], sys.argv[3:])
