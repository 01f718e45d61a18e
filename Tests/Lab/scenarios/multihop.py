"""Two boxes in a row. bob on Bluetooth LE and dave on a cable at the second box meet over three hops, chat, and send a
file. The boxes forward the file without an error in their journals.

  bob ── Bluetooth LE ── box1 ── Ethernet ── box2 ── Ethernet ── dave
"""

from lab import BluetoothAir, Box, Node, cable, check, main, say, step
from lab.command import chat
from lab.transfer import send_file

FILE_BYTES = 256 << 10
HOPS = 3


def build():
    air = BluetoothAir(controllers=2, wait=False)
    boxes = {name: Box(name) for name in ("bob", "box1", "box2", "dave")}
    towards_box2, towards_box1 = cable(boxes["box1"], boxes["box2"])
    towards_dave, towards_box = cable(boxes["box2"], boxes["dave"])
    air.wait_ready()
    end = {"node": {"relay": "no"}}
    return {
        "bob": Node(boxes["bob"], adapter="hci1", extra=end),
        "box1": Node(boxes["box1"], adapter="hci0", interfaces=[towards_box2]),
        "box2": Node(boxes["box2"], interfaces=[towards_box1, towards_dave]),
        "dave": Node(boxes["dave"], interfaces=[towards_box], extra=end),
    }


def scenario():
    with step("bob, two boxes and dave, each linked to the next alone"):
        nodes = build()
    bob, box1, box2, dave = (nodes[name] for name in ("bob", "box1", "box2", "dave"))

    with step("bob and dave see each other over three hops"):
        for node, other in ((bob, "dave"), (dave, "bob")):
            node.wait_status(
                f"sees {other} over {HOPS} hops",
                lambda status: any(p["name"] == other and p["hops"] == HOPS for p in status["peers"]), 60,
            )
        for node, count in ((bob, 1), (box1, 2), (box2, 2), (dave, 1)):
            links = node.status()["links"]
            check(len(links) == count, f"{node.name} has {count} links", links)

    with step("they chat both ways"):
        chat(bob, dave)

    with step(f"dave sends bob a file of {FILE_BYTES >> 10} KiB") as remark:
        seconds = send_file(dave, bob, FILE_BYTES)
        remark(f"{FILE_BYTES / seconds / 1000:.0f} kB/s")

    with step("the boxes forwarded, and have nothing to complain of") as remark:
        for node in (box1, box2):
            box = node.status()["box"]
            check(box["frames_forwarded"] > 0, f"{node.name} forwarded frames")
            check(box["bytes_forwarded"] >= FILE_BYTES, f"{node.name} forwarded the file", box["bytes_forwarded"])
            check(not box["refusals"], f"{node.name} refused no frame", box["refusals"])
            complaints = node.cli("log", "--level", "error")
            check(not complaints, f"{node.name}'s journal has no errors", complaints)
            remark(f"{node.name} {box['frames_forwarded']} frames")

    for node in (bob, box1, box2, dave):
        say(f"\n{node.name}:\n{node.cli('peers')}")


main(scenario)
