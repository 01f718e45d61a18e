"""Bluetooth and Wi-Fi at once. While dave sends carol a file through the box's Wi-Fi group, the box scans little. bob,
on Bluetooth LE, arrives during the transfer and gets a link nevertheless."""

# seconds: 120

import time

from lab import Box, check, main, step, wait_until
from lab.node import bearer
from lab.stage import Stage, peer_names
from lab.transfer import Transfer

FILE_BYTES = 64 << 20
IDLE_SECONDS, BUSY_SECONDS = 20, 10
SCAN_SHARE_MAX = 0.35                                # one scan of 3 s may be part of this time
WORD = "few scans beside Wi-Fi"


class Scans:
    """Measures the shares of time in which the box scans and dials, from the constructor on."""

    def __init__(self, box):
        self.box, self.began, self.before = box, time.monotonic(), bearer(box.status(), "bluetooth-le")

    def share(self):
        now, span = bearer(self.box.status(), "bluetooth-le"), time.monotonic() - self.began
        return [(now[key] - self.before[key]) / 1000 / span for key in ("scanning_milliseconds", "dialling_milliseconds")]


def detail(box):
    return bearer(box.status(), "bluetooth-le")["detail"]


def scenario():
    with step("box, carol on Wi-Fi Direct and dave on Ethernet"):
        stage = Stage(peers=("carol", "dave"))
        box, carol, dave = (stage[name] for name in ("box", "carol", "dave"))
        stage.wait_acquainted(90)

    with step(f"{IDLE_SECONDS} s without a transfer") as remark:
        scans = Scans(box)
        time.sleep(IDLE_SECONDS)
        remark("scanned {:.0%}, dialled {:.0%} of the time".format(*scans.share()))

    with step("dave sends carol a file over Wi-Fi Direct: the scan ends"):
        transfer = Transfer(dave, carol, FILE_BYTES, timeout=300)
        wait_until("the radio says so", lambda: WORD in detail(box), 30)

    with step(f"{BUSY_SECONDS} s of the transfer") as remark:
        scans, arrived = Scans(box), transfer.arrived()
        time.sleep(BUSY_SECONDS)
        transfer.check_under_way()
        scanned, dialled = scans.share()
        remark(f"scanned {scanned:.0%}, dialled {dialled:.0%} of the time, "
               f"{(transfer.arrived() - arrived) / BUSY_SECONDS / 1000:.0f} kB/s over Wi-Fi")
        check(scanned <= SCAN_SHARE_MAX, f"at most {SCAN_SHARE_MAX:.0%} of the time", scanned)

    with step("bob comes, on Bluetooth LE") as remark:
        came = time.monotonic()
        stage.boxes["bob"] = Box("bob")
        stage.add("bob", "text", adapter="hci1")
        box.wait_status("sees bob", lambda status: "bob" in peer_names(status), 60)
        remark(f"linked after {time.monotonic() - came:.1f} s; the transfer is {'over' if transfer.is_over() else 'under way'}")

    with step("the file arrives whole, and the box scans as before") as remark:
        remark(f"{FILE_BYTES / transfer.finish(300) / 1000:.0f} kB/s")
        wait_until("the radio scans", lambda: ", scanning" in detail(box) and WORD not in detail(box), 30)


main(scenario)
