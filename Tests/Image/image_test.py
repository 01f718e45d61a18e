#!/usr/bin/env python3
"""The image of the virtual board: from the card's first start to an update that was cut at every write.

usage: image_test.py (after board/image/build.sh virtual-arm64; CAUSEWAY_UPDATE_KEY as there). KEEP=DIRECTORY keeps the logs of a
failure."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from board import PROJECT, Air, Board, card
from writes import writes

BUILT = PROJECT / "build/image/virtual-arm64"
BEGAN = time.monotonic()
MIB = 1 << 20
# Where board/image/build.sh puts the partitions: boot, slot a, slot b, data.
BOOT, SLOT_A, SLOT_B, DATA = 4 * MIB, 132 * MIB, 228 * MIB, 324 * MIB


@contextlib.contextmanager
def step(what):
    began, remarks = time.monotonic(), []
    try:
        yield remarks.append
    except BaseException:
        print(f"{time.monotonic() - BEGAN:7.1f}  FAILED  {what}", flush=True)
        raise
    print(f"{time.monotonic() - BEGAN:7.1f}  ok      {what} ({'; '.join([f'{time.monotonic() - began:.0f} s', *remarks])})", flush=True)


def check(is_right, what, got=""):
    if not is_right:
        raise AssertionError(f"{what}; got: {got}")


class Card:
    """A copy of the image in a directory of its own."""

    def __init__(self, directory, key, air):
        self.directory, self.key, self.air = directory, key, air
        self.image = directory / "card.img"
        subprocess.run(["cp", "--sparse=always", BUILT / "causeway.img", self.image], check=True)
        card(self.image, "mcopy", f"{key}.pub", "::authorized_keys")

    def start(self, drive=None):
        return Board(self.image, self.key, self.directory / "console.log", self.air, drive)


def ready_time(board):
    """Seconds from the kernel's start until the daemon was ready."""
    text = board.wait("systemctl show --value --property ActiveEnterTimestampMonotonic causeway | grep -v '^0$'")
    return int(text) / 1e6


def first_start(board_card):
    with step("the first start: the box serves") as remark:
        board = board_card.start()
        board.wait("true")
        daemon = ready_time(board)
        board.wait("causeway status --json | grep -q '\"group-owner\"' && causeway status | grep -q 'bluetooth-le *up'")
        air = float(board.shell("cut -d ' ' -f 1 /proc/uptime"))
        status = json.loads(board.shell("causeway status --json"))
        states = {bearer["name"]: bearer["state"] for bearer in status["bearers"] if bearer["name"] != "wifi-direct"}
        served = [states[name] for name in ("ethernet", "bluetooth-le", "dhcp", "status-page")]
        check(served == ["up"] * 4, "Ethernet, Bluetooth and the group serve", status["bearers"])
        failed = board.shell("systemctl --failed --plain --no-legend")
        check(failed == "", "no unit has failed", failed)
        remark(f"from the kernel's start to the daemon {daemon:.1f} s, to the last bearer on the air {air:.1f} s, memory used {board.shell('free -m').split()[8]} MB")
    with step("the accounts have the numbers of all images, and the shell that their service needs"):
        accounts = [line.split(":") for line in board.shell("getent passwd causeway causeway-diag").splitlines()]
        check([(name, number, shell) for name, _, number, _, _, _, shell in accounts] == [
            ("causeway", "871", "/usr/sbin/nologin"), ("causeway-diag", "874", "/bin/sh")], "871 and 874", accounts)
    with step("peers on Bluetooth, on Wi-Fi and on a cable, who share nothing but the box, exchange files") as remark:
        with open(pathlib.Path(__file__).parent / "bridge.sh", "rb") as script:
            said = board.shell("sh -s", stdin=script, timeout=600)
        times = [line for line in said.splitlines() if " to " in line]
        check(len(times) == 3, "three files arrived whole", said)
        remark("; ".join(times))
    with step("the root is a layer over the slot") as remark:
        mounts = board.shell("cat /proc/mounts")
        check("root / overlay" in mounts, "the root is a layer over the slot", mounts)
        board.shell("touch /etc/forgotten /data/kept && sync /data")
        size = board.shell("df --output=used -m /data | tail -1").strip()
        remark(f"data: {size} MiB used")
    return board


def identity(board):
    return (json.loads(board.wait("causeway status --json"))["box"]["id"], board.shell("cat /etc/ssh/keys/ssh_host_ed25519_key.pub"),
            board.shell("cat /etc/machine-id"))


def restart(board, board_card):
    board.shell("systemctl reboot", check=False)
    board.wait_end()
    return board_card.start()


def slots(image):
    """What a board would start: the slot of config.txt, and whether kernel, initial RAM disk and root of it are whole."""
    config = card(image, "mtype", "::config.txt", text=True)
    slot = next(line for line in config.splitlines() if line.startswith("os_prefix="))[10:-1]
    parts = {}
    for name in ("kernel.gz", "initrd"):
        parts[name] = hashlib.sha256(card(image, "mtype", f"::{slot}/{name}")).hexdigest()
    command_line = card(image, "mtype", f"::{slot}/cmdline.txt", text=True)
    check(f"causeway.slot={slot}" in command_line, "the command line names the slot", command_line)
    return slot, parts


def manifest():
    text = subprocess.run(["tar", "-xOf", BUILT / "causeway.update", "manifest"], check=True, capture_output=True, text=True).stdout
    return {name: (digest, int(size)) for digest, size, name in (line.split()[1:] for line in text.splitlines() if line.startswith("file "))}


def is_whole(image, slot, files):
    with open(image, "rb") as file:
        file.seek(SLOT_A if slot == "a" else SLOT_B)
        return hashlib.sha256(file.read(files["slot"][1])).hexdigest() == files["slot"][0]


def update(board, board_card):
    files = manifest()
    with step("an update whose signature is of nobody is refused, and so is one for another board"):
        directory = board_card.directory / "false"
        directory.mkdir()
        subprocess.run(["tar", "-xf", BUILT / "causeway.update", "-C", directory, "manifest", "manifest.sig"], check=True)
        manifest_file, archive = directory / "manifest", directory / "false.update"

        def refusal():
            subprocess.run(["tar", "-cf", archive, "-C", directory, "manifest", "manifest.sig"], check=True)
            board.send(archive, "/run/false.update")
            code, text = board.shell("causeway-update /run/false.update", check=False)
            check(code == 1, "it is refused", text)
            return text

        manifest_file.write_text(manifest_file.read_text().replace("version ", "version 9"))
        check("is not signed by a key that this image knows" in (text := refusal()), "for its signature", text)
        manifest_file.write_text(manifest_file.read_text().replace("board virtual-arm64", "board other"))
        (directory / "manifest.sig").unlink()
        subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", board_card.key, "-n", "causeway-update", manifest_file], check=True)
        check("is for another board than virtual-arm64" in (text := refusal()), "for its board", text)

    with step("every write of an update is noted, from the command to the confirmation") as remark:
        board.shell("systemctl poweroff", check=False)
        board.wait_end()
        before = board_card.directory / "before.img"
        subprocess.run(["cp", "--sparse=always", board_card.image, before], check=True)
        logs = []
        for number in range(2):
            log = board_card.directory / f"writes{number}.log"
            log.touch()
            logs.append(log)
            drive = (f"driver=blklogwrites,node-name=card,file.driver=file,file.filename={board_card.image},"
                     f"log.driver=file,log.filename={log}")
            board = board_card.start(drive)
            if number == 0:
                board.wait("true")
                board.send(BUILT / "causeway.update", "/run/u")
                check("on trial" in board.shell("causeway-update /run/u", timeout=600), "the other slot is started on trial")
                board.wait_end()
            else:
                text = board.wait("causeway-update --status && ! causeway-update --status | grep -q trial", 600)
                check("slot b runs" in text, "slot b runs", text)
                board.shell("systemctl poweroff", check=False)
                board.wait_end()
        noted = [list(writes(log)) for log in logs]
        remark(f"{len(noted[0])} and {len(noted[1])} writes, {sum(len(data) for log in noted for _, data in log) / 1e6:.0f} MB")

    with step("cut after any write, the board starts a slot that is whole") as remark:
        slot, counts = "a", {"a": 0, "b": 0}
        with open(before, "r+b") as image:
            for offset, data in (write for log in noted for write in log):
                image.seek(offset)
                image.write(data)
                image.flush()
                check(not SLOT_A <= offset < SLOT_B, "nobody writes slot a, which runs", offset)
                check(slot == "a" or not SLOT_B <= offset < DATA, "nobody writes slot b, which is started", offset)
                if BOOT <= offset < SLOT_A:
                    former = slot
                    slot, parts = slots(before)
                    check(all(parts[name] == files[name][0] for name in parts), f"slot {slot} has its kernel", parts)
                    check(slot == former or is_whole(before, slot, files), f"slot {slot} has its root")
                counts[slot] += 1
        check(min(counts.values()) > 0, "there were cuts before and after the change", counts)
        remark(f"{sum(counts.values())} cuts: after {counts['a']} it starts slot a, after {counts['b']} slot b")


def main():
    key = pathlib.Path(os.environ["CAUSEWAY_UPDATE_KEY"]).resolve()
    with tempfile.TemporaryDirectory(prefix="causeway-image-") as directory:
        air = Air(pathlib.Path(directory))
        board_card = Card(pathlib.Path(directory), key, air)
        size = (BUILT / "causeway.img").stat().st_size, (BUILT / "causeway.img.zst").stat().st_size
        print(f"image {size[0] / 1e6:.0f} MB, compressed {size[1] / 1e6:.1f} MB", flush=True)
        board = None
        try:
            board = first_start(board_card)
            with step("after a restart it is the same box, and what was written to the root is gone"):
                former = identity(board)
                board = restart(board, board_card)
                check(identity(board) == former, "identity, key of SSH and machine's id", former)
                board.shell("test ! -e /etc/forgotten && test -e /data/kept")
            with step("the power goes without a warning: the same box again"):
                board.cut()
                board = board_card.start()
                check(identity(board) == former, "identity, key of SSH and machine's id", former)
            update(board, board_card)
            with step("from now on it starts the new slot, and is the same box"):
                board = board_card.start()
                check(identity(board) == former, "identity, key of SSH and machine's id", former)
                check("slot b runs" in board.shell("causeway-update --status"), "slot b runs")
            with step("a slot on trial in which the box does not work is left again"):
                board.shell("sed -i 's/^\\[node\\]/[node]\\nno-such-key = 1/' /etc/causeway/causeway.conf && sync && causeway config check", check=False)
                board.shell("causeway-update --back")
                board.wait_end()
                board = board_card.start()
                check("slot a runs" in board.wait("causeway-update --status"), "slot a is tried")
                board.wait_end()
                board = board_card.start()
                check("slot b runs" in board.wait("causeway-update --status"), "slot b runs")
        except BaseException:
            if os.environ.get("KEEP"):
                shutil.copytree(directory, os.environ["KEEP"], dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.img", "wheels", "uart?", "air"))
            raise
        finally:
            if board:
                board.cut()
            air.stop()
    print("passed")


if __name__ == "__main__":
    main()
