"""Two boxes with only Bluetooth classic find each other by an inquiry, chat, send a file, lose each other and meet
again. Then a device answers inquiries with the service, but does not answer the request for its service record. The
boxes dial this device three times and give up. When the boxes also have Low Energy, they link over LE only."""

# seconds: 180

import threading
import time

from lab import BluetoothAir, Box, Management, Node, check, classic, main, step, wait_until
from lab.command import chat
from lab.node import bearer
from lab.stage import links_up, peer_names
from lab.transfer import Transfer

BOX, BOB, MALLORY = range(3)
FILE_BYTES = 1 << 20
SERVICE = bytes.fromhex("8a1c00016f5b4e0b9e5cca05e4a10001")
CLAIM = bytes.fromhex("8a1c00026f5b4e0b" + "11" * 8)
FIND_SECONDS_MAX = 15
DIALS_MAX, QUIET_SECONDS = 3, 25
INQUIRY_BEGINS = b"\1\1"


def scenario():
    with step("two boxes, classic alone, find each other") as remark:
        classic.load()
        air, kernel = BluetoothAir(controllers=3), Management()
        only = {"bluetooth": {"classic": "only"}}
        box = Node(Box("box"), adapter=f"hci{BOX}", extra=only)
        began = time.monotonic()
        bob = Node(Box("bob"), adapter=f"hci{BOB}", extra=only)
        acquainted(box, bob)
        took = time.monotonic() - began
        check(took < FIND_SECONDS_MAX, f"within {FIND_SECONDS_MAX} s", took)
        remark(f"{took:.1f} s after the second one began to start")

    with step("one link, and nothing of LE") as remark:
        for node in (box, bob):
            check([link["bearer"] for link in links_up(node.status())] == ["bluetooth-classic"], "one link", node.status()["links"])
            check(not [one for one in node.status()["bearers"] if one["name"] == "bluetooth-le"], "no LE", node.status()["bearers"])
        transports = {link["transport"] for link in air.links()}
        check(len(transports) == 1 and "BR_EDR" in transports.pop(), "one kind of link is on the air", air.links())
        remark(bearer(box.status(), "bluetooth-classic")["detail"])

    with step("they chat both ways"):
        chat(box, bob)

    with step("box sends bob a file, and neither inquires meanwhile") as remark:
        transfer = Transfer(box, bob, FILE_BYTES)
        transfer.wait_arrived(FILE_BYTES // 10)
        kernel.forget_events()
        while not transfer.is_over():
            time.sleep(0.1)
        inquiries = inquiries_begun(kernel)
        seconds = transfer.finish()
        check(not inquiries, "no inquiry began", inquiries)
        remark(f"{FILE_BYTES * 8 / seconds / 1000:.0f} kbit/s, in a lab without air time")

    with step("bob goes out of range, and is linked again when he is back") as remark:
        air.set_range(f"hci{BOX}", f"hci{BOB}", "far")
        box.wait_status("has lost bob", lambda status: "bob" not in peer_names(status), 40)
        back = time.monotonic()
        air.set_range(f"hci{BOX}", f"hci{BOB}", "near")
        acquainted(box, bob)
        remark(f"{time.monotonic() - back:.1f} s after he is in range")

    with step(f"a device that never answers for its record is dialled {DIALS_MAX} times and left, and bob is found beside it") as remark:
        box.stop()
        mallory = Mallory(kernel)
        began = time.monotonic()
        box.start()
        acquainted(box, bob)
        found = time.monotonic() - began
        wait_until("the device is left", lambda: told(box, "candidate lost", mallory) == 1, 60)
        left = time.monotonic()
        dials = told(box, "failed", mallory)
        check(dials == DIALS_MAX, f"after {DIALS_MAX} dials", dials)
        time.sleep(QUIET_SECONDS)
        calls = mallory.calls_of(kernel.address(BOX))
        check(0 < len(calls) <= DIALS_MAX and calls[-1] < left, f"no dial in the {QUIET_SECONDS} s after that", calls)
        remark(f"bob after {found:.1f} s, left after {left - began:.1f} s; called " + ", ".join(f"{call - began:.0f}" for call in calls) + " s")
        chat(box, bob)

    with step("the radio's time is counted") as remark:
        used = bearer(box.status(), "bluetooth-classic")
        remark(" | ".join(box.cli("radios").splitlines()))
        check(used["places_used"] >= 1, "a place is used", used)

    with step("with LE beside it they link over LE alone, and classic is still looked for") as remark:
        mallory.leave(kernel)
        for node in (box, bob):
            node.stop()
            node.reconfigure({"bluetooth": {"classic": "yes"}})
        kernel.forget_events()
        for node in (box, bob):
            node.start()
        acquainted(box, bob)
        kernel.wait_event(kernel.DISCOVERING, BOX, lambda told: told == INQUIRY_BEGINS, 40)
        time.sleep(15)
        for node in (box, bob):
            check([link["bearer"] for link in links_up(node.status())] == ["bluetooth-le"], "LE alone", node.status()["links"])

    with step("nobody has to complain"):
        for node in (box, bob):
            errors = node.cli("log", "--level", "error")
            check(not errors, f"{node.name}'s journal has no errors", errors)


def acquainted(box, bob):
    for node, other in ((box, "bob"), (bob, "box")):
        node.wait_status(f"sees {other}", lambda status, other=other: other in peer_names(status), 60)


def told(box, what, mallory):
    """The number of failed dials over classic, or of losses of mallory, in the journal since the daemon's last
    start."""
    lines = box.cli("log", "--level", "info").splitlines()
    lines = lines[max(number for number, line in enumerate(lines) if " started: epoch " in line) :]
    marks = {"candidate lost": f"claimed {mallory.hint}", "failed": "dial "}
    return sum(what in line and "over bluetooth-classic" in line and marks[what] in line for line in lines)


def inquiries_begun(kernel):
    return [event for event in kernel._events if event[0] == kernel.DISCOVERING and event[2] == INQUIRY_BEGINS]


class Mallory:
    """A device whose inquiry response lists the service. It accepts channels to its service records, and sends nothing
    on them."""

    hint = CLAIM[8:12].hex()

    def __init__(self, kernel):
        classic.power_on(kernel, MALLORY)
        classic.make_discoverable(kernel, MALLORY, "mallory", SERVICE, CLAIM)
        self._calls, self._taken = [], []
        self._listener = classic.listen_sdp(kernel.address(MALLORY))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                taken, address = classic.accept_sdp(self._listener)
            except OSError:
                return
            self._taken.append(taken)
            self._calls.append((time.monotonic(), address))

    def calls_of(self, address):
        """The times at which this controller has opened a channel."""
        return [at for at, caller in self._calls if caller == address]

    def leave(self, kernel):
        kernel.command(kernel.SET_POWERED, MALLORY, b"\0")
        self._listener.close()


main(scenario)
