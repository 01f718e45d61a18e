#!/usr/bin/env python3
"""cpio.py DIRECTORY > ARCHIVE: writes a directory tree as an initramfs ("newc" cpio) archive.

All files belong to root, times are zero (the same tree gives the same bytes), hard links become copies. --devices adds the console
and null devices, which the kernel needs before devtmpfs is mounted. The kernel accepts several archives in a row: later ones add
files, and replace files of earlier ones."""

import argparse
import os
import stat
import sys


class Archive:
    def __init__(self, output):
        self.output = output
        self.inode = 0

    def add(self, name, mode, content=b"", device=(0, 0)):
        self.inode += 1
        encoded = os.fsencode(name) + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self.output.write(header + padding(len(header), 4))
        self.output.write(content)
        self.output.write(padding(len(content), 4))

    def add_tree(self, root):
        for directory, subdirectories, files in os.walk(root):
            subdirectories.sort()
            # os.walk lists a link to a directory among the directories; in this archive, such a link is an ordinary
            # entry.
            for entry in sorted(files + subdirectories):
                path = os.path.join(directory, entry)
                name = os.path.relpath(path, root)
                status = os.lstat(path)
                if stat.S_ISLNK(status.st_mode):
                    self.add(name, status.st_mode, os.fsencode(os.readlink(path)))
                elif stat.S_ISDIR(status.st_mode):
                    self.add(name, status.st_mode)
                elif stat.S_ISREG(status.st_mode):
                    with open(path, "rb") as file:
                        self.add(name, status.st_mode, file.read())

    def finish(self):
        self.add("TRAILER!!!", 0)
        self.output.write(padding(self.output.tell(), 512))


class Counted:
    """An output that counts its bytes, because a pipe has no position."""

    def __init__(self, output):
        self.output, self.count = output, 0

    def write(self, data):
        self.output.write(data)
        self.count += len(data)

    def tell(self):
        return self.count


def padding(length, alignment):
    return b"\0" * (-length % alignment)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", action="store_true")
    parser.add_argument("directory")
    arguments = parser.parse_args()
    archive = Archive(Counted(sys.stdout.buffer))
    archive.add_tree(arguments.directory)
    if arguments.devices:
        archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
        archive.add("dev/null", stat.S_IFCHR | 0o666, device=(1, 3))
    archive.finish()


main()
