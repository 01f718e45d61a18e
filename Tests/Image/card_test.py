#!/usr/bin/env python3
"""The card of a board, without starting the board: the partitions, and the files for firmware, kernel and radios.

usage: card_test.py BOARD (after board/build/image/build.sh BOARD)"""
import gzip
import json
import subprocess
import sys
import tempfile
import unittest

from board import FIRST_PARTITION, PROJECT, card

BOARD = sys.argv.pop(1)
IMAGE = PROJECT / "build/image" / BOARD / "causeway.img"
FILES = {
    "rpi4": ({"start4.elf", "fixup4.dat"}, "bcm2711-rpi-4-b.dtb", "brcmfmac43455-sdio"),
    "rpi-zero-2w": ({"bootcode.bin", "start.elf", "fixup.dat"}, "bcm2837-rpi-zero-2-w.dtb", "brcmfmac43430-sdio"),
}[BOARD]
SECTOR = 512


class Card(unittest.TestCase):
    def file(self, name):
        return card(IMAGE, "mtype", f"::{name}")

    def partitions(self):
        table = json.loads(subprocess.run(["sfdisk", "--json", IMAGE], check=True, capture_output=True).stdout)["partitiontable"]
        self.assertEqual(table["label"], "dos")
        return [(part["start"] * SECTOR, part["size"] * SECTOR, part["type"]) for part in table["partitions"]]

    def test_four_partitions_are_one_behind_the_other(self):
        parts = self.partitions()
        self.assertEqual([kind for _, _, kind in parts], ["c", "83", "83", "83"])
        self.assertEqual(parts[0][0], FIRST_PARTITION)
        self.assertEqual([start + size for start, size, _ in parts], [start for start, _, _ in parts[1:]] + [IMAGE.stat().st_size])

    def test_the_firmware_finds_itself_and_slot_a(self):
        names = {line.removeprefix("::/") for line in card(IMAGE, "mdir", "-b", "::", text=True).splitlines()}
        self.assertLessEqual(FILES[0] | {"config.txt"}, names)
        # The confirmation of an update overwrites only these bytes, so they must have a fixed place.
        self.assertEqual(self.file("config.txt")[:13], b"os_prefix=a/\n")
        self.assertLess(len(self.file("config.txt")), SECTOR)

    def test_slot_a_has_a_kernel_for_arm64_and_the_boards_device_tree(self):
        self.assertEqual(gzip.decompress(self.file("a/kernel.gz"))[0x38:0x3C], b"ARM\x64")
        self.assertEqual(self.file(f"a/{FILES[1]}")[:4], b"\xd0\x0d\xfe\xed")
        self.assertIn(b" causeway.slot=a\n", self.file("a/cmdline.txt"))

    def test_the_initial_ram_disk_has_a_driver_for_the_card(self):
        names = subprocess.run(["cpio", "--quiet", "-t"], input=gzip.decompress(self.file("a/initrd")), check=True, capture_output=True).stdout.decode()
        for name in ("init", "bin/busybox", "/sdhci-iproc.ko", "/bcm2835.ko", "/squashfs.ko", "/overlay.ko", "/ext4.ko"):
            self.assertIn(name, names)

    def test_the_root_has_the_box_and_the_radios_firmware(self):
        start, size, _ = self.partitions()[1]
        with tempfile.NamedTemporaryFile() as slot, open(IMAGE, "rb") as image:
            image.seek(start)
            slot.write(image.read(size))
            slot.flush()
            names = subprocess.run(["unsquashfs", "-l", slot.name], check=True, capture_output=True, text=True).stdout
        for name in ("usr/bin/causeway", "usr/sbin/causeway-update", "usr/bin/rauc", "etc/rauc/system.conf", "/dm-verity.ko", "multi-user.target.wants/causeway.service", FILES[2], "brcm/BCM43", "firmware/regulatory.db"):
            self.assertIn(name, names)
        for name in ("usr/bin/dpkg", "etc/rauc/keyring.pem", "etc/ssh/ssh_host_", "var/lib/causeway/"):
            self.assertNotIn(name, names)


if __name__ == "__main__":
    unittest.main()
