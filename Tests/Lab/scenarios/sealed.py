"""What a box relays it cannot read. Somebody listens to all its bearers and reads its memory while peers send each other a
chat line and a file full of canaries: not one is seen. The same without sealing shows that one would have been."""

import pathlib

from lab import check, main, step
from lab.eavesdrop import Capture, find_in_memory
from lab.stage import Command, Stage, chat

CANARY = b"nightingale at dawn. "
CONTROL = b"blackbird on a roof. "
FILE_BYTES = 256 << 10


def scenario():
    with step("box, bob on Bluetooth LE, carol on Wi-Fi Direct and dave on Ethernet see each other"):
        stage = Stage()
        box, bob, carol, dave = (stage[name] for name in ("box", "bob", "carol", "dave"))
        stage.wait_acquainted()
        capture = Capture(box.box)

    with step("bob and carol chat, dave sends bob a file, both are full of canaries"):
        chat(bob, carol, CANARY.decode() * 8 + ".")
        send_canaries(dave, bob, CANARY)

    with step("the listener has seen it all, and who speaks with whom, but no canary") as remark:
        sizes = capture.sizes()
        check(sizes["ip"] > FILE_BYTES and sizes["bluetooth"] > FILE_BYTES, "all was captured", sizes)
        # Sealed frames leave as they are, behind a header that names both ends.
        for bearer, times in capture.find(bytes.fromhex(bob.status()["box"]["id"])).items():
            check(times > 10, f"frames to bob are seen on {bearer}", times)
        check(capture.find(CANARY) == {"ip": 0, "bluetooth": 0}, "no canary on any bearer", capture.find(CANARY))
        remark(f"{sizes['ip']} bytes of packets, {sizes['bluetooth']} bytes over Bluetooth, no canary")

    with step("the box's memory holds no canary, the receiver's does") as remark:
        at_box, at_bob = (find_in_memory(node.process, CANARY) for node in (box, bob))
        check(at_box == 0, "no canary in the box's memory", at_box)
        check(at_bob > 0, "a canary is found where it may be", at_bob)
        remark(f"box 0, bob {at_bob}")

    with step("the same between dave and carol without sealing: the air shows nothing, the box's memory does") as remark:
        for node in (dave, carol):
            node.reconfigure({"peer": {"encryption": "none"}})
            node.restart()
        stage.wait_acquainted()
        send_canaries(dave, carol, CONTROL)
        at_box = find_in_memory(box.process, CONTROL)
        check(at_box > 0, "what is not sealed, the box can read", at_box)
        check(capture.find(CONTROL)["ip"] == 0, "the links' own encryption hides it from the listener", capture.find(CONTROL))
        remark(f"box {at_box}, listener 0")
    capture.keep()


def send_canaries(sender, receiver, words):
    """A file of nothing but canaries, and a canary for its name, from one to the other."""
    name = words.decode().strip() + "txt"
    source, directory = (pathlib.Path("/tmp/files") / node.name for node in (sender, receiver))
    source.mkdir(parents=True, exist_ok=True)
    directory.mkdir(parents=True, exist_ok=True)
    (source / name).write_bytes(words * (FILE_BYTES // len(words)))
    receiving = Command(receiver, "peer", "receive", directory, "--count", "1")
    sender.cli("peer", "send", source / name, "--to", receiver.name, timeout=120)
    receiving.wait()
    check((directory / name).read_bytes() == (source / name).read_bytes(), "the file arrived unaltered")


main(scenario)
