"""bob is out of Bluetooth range twice in the middle of a file. The first absence is short, and the link layer
retransmits what was lost. During the second absence the link ends and bob is reported lost. Each time bob comes back,
and the same transfer continues to the last byte."""

import time

from lab import check, main, step, wait_until
from lab.stage import Stage, links_up, look_for_doubles, peer_names
from lab.transfer import Transfer

FILE_BYTES = 1 << 20
MOMENT_SECONDS = 0.2                                 # shorter than any supervision timeout
AWAY_SECONDS = 6                                     # a lost peer is still shown for a shorter time


def scenario():
    with step("box, bob on Bluetooth LE and dave on Ethernet see each other"):
        stage = Stage(peers=("bob", "dave"))
        box, bob, dave = (stage[name] for name in ("box", "bob", "dave"))
        stage.wait_acquainted()

    with step("dave sends bob a file; a quarter of it arrives"):
        transfer = Transfer(dave, bob, FILE_BYTES)
        transfer.wait_arrived(FILE_BYTES // 4)

    with step(f"bob is out of range for {MOMENT_SECONDS} s: the link stands") as remark:
        (before,) = links_up(bob.status())
        stage.air.set_range("hci0", "hci1", "far")
        time.sleep(MOMENT_SECONDS)
        stage.air.set_range("hci0", "hci1", "near")
        transfer.wait_arrived(FILE_BYTES // 2)
        (after,) = links_up(bob.status())
        check(after["bytes_received"] > before["bytes_received"], "it is the same link", (before, after))
        remark(f"{transfer.arrived()} bytes had arrived")

    with step(f"bob is out of range for {AWAY_SECONDS} s: the link is lost, and bob is missed") as remark:
        left = time.monotonic()
        stage.air.set_range("hci0", "hci1", "far")
        transfer.check_under_way()
        box.wait_status("has lost the link to bob", lambda status: not links_up(status, "bluetooth-le"), 30)
        remark(f"link lost after {time.monotonic() - left:.1f} s")
        dave.wait_status("misses bob", lambda status: "bob" not in peer_names(status), 30)
        remark(f"bob missed after {time.monotonic() - left:.1f} s")
        time.sleep(max(0, left + AWAY_SECONDS - time.monotonic()))
        transfer.check_under_way()
        held = transfer.arrived()

    with step("bob is in range again") as remark:
        back = time.monotonic()
        stage.air.set_range("hci0", "hci1", "near")
        wait_until("bytes arrive again", lambda: transfer.arrived() > held, 60)
        remark(f"bytes arrive after {time.monotonic() - back:.1f} s, from {held} on")

    with step("the file arrives whole, in one transfer") as remark:
        wait_until("the transfer ends", lambda: look_for_doubles((box, bob, dave)) and transfer.is_over(), 90, 0.5)
        remark(f"{transfer.finish():.1f} s in all")


main(scenario)
