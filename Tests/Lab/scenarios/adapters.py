"""A box with two Bluetooth adapters in different places. bob is in range of the first, erin is in range of the second.
One adapter is switched off, and comes back."""

import time

from lab import BluetoothAir, Box, Node, check, main, step
from lab.hotplug import BLUETOOTH, block, switches
from lab.stage import links_up, peer_names
from lab.transfer import Transfer

FILE_BYTES = 100_000
BACK_SECONDS_MAX = 10


def adapters(status):
    return [bearer for bearer in status["bearers"] if bearer["name"] == "bluetooth-le"]


def scenario():
    with step("bob is linked over one adapter of the box, erin over the other") as remark:
        air = BluetoothAir(controllers=4)
        for one, other in (("hci0", "hci3"), ("hci1", "hci2"), ("hci2", "hci3")):
            air.set_range(one, other, "far")
        box = Node(Box("box"), adapter="hci0, hci1")
        bob = Node(Box("bob"), adapter="hci2", extra={"node": {"relay": "no"}})
        erin = Node(Box("erin"), adapter="hci3", extra={"node": {"relay": "no"}})
        started = time.monotonic()
        for node, other in ((bob, "erin"), (erin, "bob")):
            node.wait_status(f"sees {other}", lambda status, other=other: {"box", other} <= peer_names(status), 40)
        remark(f"{time.monotonic() - started:.1f} s")
        used = [(bearer["state"], bearer["places_used"]) for bearer in adapters(box.status())]
        check(used == [("up", 1), ("up", 1)], "one link each", used)

    with step("bob sends erin a file, from the one adapter to the other") as remark:
        began = time.monotonic()
        Transfer(bob, erin, FILE_BYTES).wait_arrived(FILE_BYTES)
        remark(f"{FILE_BYTES / (time.monotonic() - began) / 1000:.0f} kB/s")

    second = switches(BLUETOOTH)[1]
    with step("the second adapter is blocked: bob's link stands, and the status names the one that is missing"):
        since = links_up(bob.status())[0]["bytes_received"]
        block(second, True)
        status = box.wait_status("names it", lambda status: adapters(status)[1]["problem"] and status, 15)
        first, lost = adapters(status)
        check(not first["problem"] and "rfkill unblock bluetooth" in lost["problem"], "the second alone", (first, lost))
        box.wait_status("has lost erin", lambda status: "erin" not in peer_names(status), 15)
        time.sleep(2)
        check(links_up(bob.status())[0]["bytes_received"] > since, "bob's link is the same")

    with step("erin comes near the first adapter: she is linked over it") as remark:
        came = time.monotonic()
        air.set_range("hci0", "hci3", "near")
        box.wait_status("has erin", lambda status: "erin" in peer_names(status), 60)
        remark(f"{time.monotonic() - came:.1f} s")
        check(adapters(box.status())[0]["places_used"] == 2, "two links over the first")

    with step("she goes back, and the second adapter is free again") as remark:
        air.set_range("hci0", "hci3", "far")
        box.wait_status("has lost erin", lambda status: "erin" not in peer_names(status), 30)
        freed = time.monotonic()
        block(second, False)
        box.wait_status("has erin", lambda status: "erin" in peer_names(status), 60)
        took = time.monotonic() - freed
        remark(f"{took:.1f} s")
        check(took <= BACK_SECONDS_MAX, f"she is back within {BACK_SECONDS_MAX} s", took)


main(scenario)
