#!/usr/bin/env python3
"""The image of the virtual board: the card's first start, false updates, and a valid update that is cut off after every write.

usage: image_test.py, after board/build/image/build.sh virtual-arm64 with the same CAUSEWAY_UPDATE_KEY. KEEP=DIRECTORY keeps the logs
of a failure."""
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
from bundles import Maker, Signer
from false_updates import NEWER, NO_FILES, false_updates
from writes import writes

BUILT = PROJECT / "build/image/virtual-arm64"
BEGAN = time.monotonic()
MIB = 1 << 20
# The offsets of the partitions that board/build/image/build.sh makes: boot, slot a, slot b, data.
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
    """A copy of the image, and a key for SSH that the copy accepts."""

    def __init__(self, directory, air):
        self.directory, self.air = directory, air
        self.board = None   # The board that was started last.
        self.key, self.image = directory / "ssh", directory / "card.img"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        subprocess.run(["cp", "--sparse=always", BUILT / "causeway.img", self.image], check=True)
        card(self.image, "mcopy", f"{self.key}.pub", "::authorized_keys")

    def start(self, drive=None):
        self.board = Board(self.image, self.key, self.directory / "console.log", self.air, drive)
        return self.board

    def digest(self):
        """The digest of the partitions that an update can change: boot, slot a and slot b."""
        with open(self.image, "rb") as file:
            file.seek(BOOT)
            return hashlib.sha256(file.read(DATA - BOOT)).hexdigest()


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


def configuration_is_missed(board, former):
    """Check the box with a first partition that cannot be read: it does not start without its configuration, and starts with it."""
    with step("without its configuration, and with a first partition that cannot be read, the box does not run"):
        board.shell("systemctl stop causeway && mv /etc/causeway/causeway.conf /data/away.conf && readlink /dev/causeway-boot > /run/boot-device"
                    " && ln -sf /dev/null /dev/causeway-boot")
        code, text = board.shell("systemctl restart causeway-first-start", check=False)
        check(code != 0, "what is made at the first start fails", text)
        code, text = board.shell("systemctl start causeway", check=False)
        check(code != 0 and "dependency" in text, "the box is not started", text)
        check(board.shell("ls /etc/causeway/causeway.conf", check=False)[0] != 0, "there is no configuration")
    with step("with a configuration it runs, whatever the first partition is"):
        board.shell("mv /data/away.conf /etc/causeway/causeway.conf && systemctl start causeway")
        check(identity(board) == former, "identity, key of SSH and machine's id", former)
        board.shell("ln -sf $(cat /run/boot-device) /dev/causeway-boot")


def restart(board, board_card):
    board.shell("systemctl reboot", check=False)
    board.wait_end()
    return board_card.start()


def text_of(image, name):
    """The text of a file on the first partition. Empty if there is no such file."""
    try:
        return card(image, "mtype", f"::{name}", text=True)
    except subprocess.CalledProcessError:
        return ""


def started_slot(image):
    config = text_of(image, "config.txt")
    return next(line for line in config.splitlines() if line.startswith("os_prefix="))[10:-1]


def boot_files(image, slot):
    """The digests of a slot's kernel and initial RAM disk. None if the slot cannot be started."""
    command_line = text_of(image, f"{slot}/cmdline.txt")
    if not command_line:
        return None
    check(f"causeway.slot={slot}" in command_line, "the command line names the slot", command_line)
    return {name: hashlib.sha256(card(image, "mtype", f"::{slot}/{name}")).hexdigest() for name in ("kernel.gz", "initrd")}


def root_of(image, slot, size):
    with open(image, "rb") as file:
        file.seek(SLOT_A if slot == "a" else SLOT_B)
        return hashlib.sha256(file.read(size)).hexdigest()


def contents(directory):
    """Extract the files of the built update with unsquashfs, so that they do not depend on RAUC. Returns the directory."""
    subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-d", directory, BUILT / "causeway.update"], check=True, stdout=subprocess.DEVNULL)
    return directory


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refused(text, reason, what):
    """Check that the output of causeway-update contains exactly one refusal, and that the refusal states this reason."""
    sentences = [line for line in text.splitlines() if line.startswith("causeway-update: ")]
    check(len(sentences) == 1 and reason in sentences[0], f"{what} is refused: {reason}", text)


def refuse_false_updates(board, board_card, maker):
    updates = list(false_updates(maker))
    before = board_card.digest()
    with step("a false update is refused with one sentence, and nothing is written to what the board is started from") as remark:
        board.shell("mkdir -p /run/false")
        archive = maker.directory / "all.tar"
        subprocess.run(["tar", "-cf", archive, "-C", maker.directory, *(path.name for path, _ in updates)], check=True)
        board.send(archive, "/run/all.tar")
        board.shell("tar -xf /run/all.tar -C /run/false && rm /run/all.tar")
        for path, reason in updates:
            code, text = board.shell(f"causeway-update /run/false/{path.name}", check=False)
            check(code == 1, f"{path.name} is refused", text)
            refused(text, reason, path.name)
        check(board_card.digest() == before, "the card is as it was")
        remark(f"{len(updates)} of them")
    with step("what is no file is refused at once") as remark:
        board.shell("mkdir /run/no")
        for making, name in NO_FILES:
            code, text = board.shell(f"{making} && timeout 20 causeway-update {name}", check=False)
            check(code == 1, f"{name} is refused", text)
            refused(text, "is no regular file", name)
        remark(f"{len(NO_FILES)} of them")
    with step("only root may ask RAUC"):
        for call in ("InstallBundle sa{sv} /run/false/good.update 0", "Mark ss active other", "GetSlotStatus"):
            code, text = board.shell("setpriv --reuid=causeway --regid=causeway --clear-groups busctl call de.pengutronix.rauc / "
                                     f"de.pengutronix.rauc.Installer {call}", check=False)
            check(code != 0 and "Access denied" in text, f"{call} is refused", text)
    with step("a slot that was never written is not started"):
        code, text = board.shell("causeway-update --back", check=False)
        check(code == 1, "it is refused", text)
        refused(text, "slot b has nothing that can be started", "--back")
    check(board_card.digest() == before, "the card is as it was")
    check("slot a runs" in (text := board.shell("causeway-update --status")) and "and is started" in text, "slot a runs, and is started", text)


# Manual edits of config.txt, as sed commands. The value is whether the edited file still names a slot.
EDITS = {"s/$/\\r/": True, "1s/$/ /": True, "$a [pi4]\\nos_prefix=a/": False, "1d": False, "s,a/,c/,": False}


def edit_configuration(board):
    with step("config.txt as an editor on Windows leaves it names a slot; one that names none is an error, and no trial to leave") as remark:
        write = "mkdir -p /run/card && mount /dev/causeway-boot /run/card && {}; umount /run/card"
        board.shell(write.format("cp /run/card/config.txt /run/config.txt"))
        for edit, is_right in EDITS.items():
            board.shell(write.format(f"sed '{edit}' /run/config.txt > /run/card/config.txt"))
            code, text = board.shell("causeway-update --status", check=False)
            if is_right:
                check(code == 0 and "slot a runs" in text and "and is started" in text, f"after {edit} slot a is started", text)
            else:
                check(code == 1 and text.startswith("slots: config.txt names no slot") and len(text.splitlines()) == 1, f"after {edit} it is an error", text)
            code, text = board.shell("causeway-update --confirm", check=False)
            check((code == 0) == is_right, f"after {edit} --confirm ends with {code}", text)
            # This unit restarts the board ten minutes after the start of a trial. No slot is on trial, so its condition fails.
            board.shell("systemctl start causeway-slot-failed", check=False)
            result = board.shell("systemctl show --value --property Result causeway-slot-failed").strip()
            check(result == "exec-condition", f"after {edit} the board does not restart", result)
        board.shell(write.format("cp /run/config.txt /run/card/config.txt"))
        remark(f"{len(EDITS)} edits")


def update(board, board_card, maker, built):
    files = {name: digest(built / path) for name, path in (("slot", "slot.img"), ("kernel.gz", "kernel.gz"), ("initrd", "initrd"))}
    size = (built / "slot.img").stat().st_size
    edit_configuration(board)
    refuse_false_updates(board, board_card, maker)
    foreign, small = maker.directory / "signed-by-a-stranger", maker.directory / "good.update"

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
            board.wait("true")
            if number == 0:
                board.send(BUILT / "causeway.update", "/run/u")
                board.send(foreign, "/run/foreign")
                # Once the update is checked, another file gets its name. RAUC must install the file that was checked.
                text = board.shell("causeway-update /run/u > /run/out 2>&1 & until grep -q 'is checked' /run/out; do sleep 0.1; done; "
                                   "mv -f /run/foreign /run/u; wait $!; cat /run/out", timeout=600)
                check("on trial" in text, "the other slot is started on trial", text)
                board.wait_end()
            else:
                # Stop the process that would confirm the trial after a minute, so that the trial lasts.
                board.wait("test \"$(systemctl is-active causeway-slot)\" = activating && systemctl kill --signal STOP causeway-slot")
                board.send(small, "/run/small")
                text = board.shell("causeway-update --status; causeway-update /run/small; rauc install /run/small; causeway-update --back; "
                                   "causeway-update --status", check=False)[1]
                check(text.count("on trial; slot a is started next") == 2, "slot b is on trial all the time", text)
                check(text.count("causeway-update: slot b is on trial") == 2 and "Failed marking slot system.0 non-bootable" in text,
                      "nothing installs into the slot to go back to", text)
                board.shell("systemctl kill --signal CONT causeway-slot")
                text = board.wait("causeway-update --status && ! causeway-update --status | grep -q trial", 600)
                check("slot b runs" in text, "slot b runs", text)
                board.shell("systemctl poweroff", check=False)
                board.wait_end()
        noted = [list(writes(log)) for log in logs]
        remark(f"{len(noted[0])} and {len(noted[1])} writes, {sum(len(data) for log in noted for _, data in log) / 1e6:.0f} MB")

    with step("cut after any write, the board starts a slot that is whole, and a slot that it can be told to start is whole") as remark:
        slot, counts, startable = "a", {"a": 0, "b": 0}, {"a"}
        with open(before, "r+b") as image:
            for offset, data in (write for log in noted for write in log):
                image.seek(offset)
                image.write(data)
                image.flush()
                check(not SLOT_A <= offset < SLOT_B, "nobody writes slot a, which runs", offset)
                check("b" not in startable or not SLOT_B <= offset < DATA, "nobody writes slot b once it can be started", offset)
                if BOOT <= offset < SLOT_A:
                    slot = started_slot(before)
                    for name in "ab":
                        parts = boot_files(before, name)
                        check(parts or name not in startable, f"slot {name} stays")
                        if parts:
                            check(all(parts[part] == files[part] for part in parts), f"slot {name} has its kernel", parts)
                            check(name in startable or root_of(before, name, size) == files["slot"], f"slot {name} has its root")
                            startable.add(name)
                    check(slot in startable, "a slot that can be started is started", slot)
                counts[slot] += 1
        check(min(counts.values()) > 0, "there were cuts before and after the change", counts)
        remark(f"{sum(counts.values())} cuts: after {counts['a']} it starts slot a, after {counts['b']} slot b")


def refuse_broken_installations(board, board_card):
    """Check installations that are killed or disturbed. Slot b runs, and slot a can be started."""
    with step("an installation that is killed leaves nothing to start: not even what was there before"):
        board.send(BUILT / "causeway.update", "/run/u")
        check(board.shell("/usr/lib/causeway/slots get-state a") == "good\n", "slot a can be started")
        written = "until [ $(/usr/lib/causeway/slots get-state a) = bad ]; do sleep 0.2; done"
        text = board.shell(f"causeway-update /run/u > /run/out 2>&1 & {written}; systemctl kill --signal KILL rauc; wait $!; cat /run/out",
                           check=False, timeout=600)[1]
        refused(text, "RAUC stopped without a result", "an installation that is killed")
        code, text = board.shell("causeway-update --back", check=False)
        check(code == 1, "it is refused", text)
        refused(text, "slot a has nothing that can be started", "--back")
    with step("a file that is overwritten while it is installed is refused"):
        overwrite = ("size=$(stat -c %s /run/u); dd if=/dev/urandom of=/run/u bs=4096 seek=24 count=$((size / 4096 - 600)) conv=notrunc status=none")
        text = board.shell("causeway-update /run/u > /run/out 2>&1 & "
                           "until [ -e /sys/block/dm-0 ]; do sleep 0.1; done; "
                           f"{overwrite}; wait $!; cat /run/out", check=False, timeout=600)[1]
        refused(text, "", "an update that is overwritten")
        check(board.shell("/usr/lib/causeway/slots get-state a") == "bad\n", "slot a cannot be started")
    check("slot b runs" in (text := board.shell("causeway-update --status")) and "and is started" in text, "slot b runs, and is started", text)


def downgrade(board, board_card, maker, built):
    with step("an older update is installed when it is asked for; it does not start, and the board goes back by itself"):
        older = maker.make("an-older-one", "0.0.1", files={name: built / name for name in ("kernel.gz", "initrd")})
        board.shell("rm -f /run/u")
        board.send(older, "/run/older")
        refused(board.shell("causeway-update /run/older", check=False)[1], "--allow-downgrade was not given", "an older update")
        check("on trial" in (text := board.shell("causeway-update --allow-downgrade /run/older", timeout=300)), "slot a is started on trial", text)
        board.wait_end()
        board = board_card.start()
        board.wait_end()
        board = board_card.start()
        check("slot b runs" in (text := board.wait("causeway-update --status")), "slot b runs", text)
    return board


def main():
    signer = Signer(pathlib.Path(os.environ["CAUSEWAY_UPDATE_KEY"]).resolve())
    with tempfile.TemporaryDirectory(prefix="causeway-image-") as directory:
        air = Air(pathlib.Path(directory))
        board_card = Card(pathlib.Path(directory), air)
        maker, built = Maker(pathlib.Path(directory) / "updates", signer), contents(pathlib.Path(directory) / "built")
        size = (BUILT / "causeway.img").stat().st_size, (BUILT / "causeway.img.zst").stat().st_size
        print(f"image {size[0] / 1e6:.0f} MB, compressed {size[1] / 1e6:.1f} MB", flush=True)
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
            configuration_is_missed(board, former)
            update(board, board_card, maker, built)
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
            refuse_broken_installations(board, board_card)
            board = downgrade(board, board_card, maker, built)
        except BaseException:
            if os.environ.get("KEEP"):
                shutil.copytree(directory, os.environ["KEEP"], dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.img", "wheels", "uart?", "air", "ssh-*"))
            raise
        finally:
            if board_card.board:
                board_card.board.cut()
            air.stop()
    print("passed")


if __name__ == "__main__":
    main()
