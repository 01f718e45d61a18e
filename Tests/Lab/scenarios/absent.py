"""A box without Bluetooth adapter, wpa_supplicant and avahi-daemon. The box reports each absence in one line and runs.
When one of the three appears later, the box uses it without a restart."""

import time

from lab import Box, MulticastDNS, Node, Supplicant, cable, check, load_radios, main, say, step
from lab.node import bearer

SOURCES = ("bluetooth", "wifi-direct", "dns-sd")


def lines(node):
    """The daemon's lines on standard error, by the source that they begin with."""
    said = {source: [] for source in SOURCES}
    for line in node.process.lines():
        for source in SOURCES:
            if line.startswith(f"causeway: {source}: "):
                said[source].append(line)
    return said


def scenario():
    with step("a computer with an Ethernet cable and a radio that nobody drives"):
        load_radios(1)
        computer, neighbour = Box("box"), Box("dave")
        near, far = cable(computer, neighbour)
        radio = computer.take_radio(0)

    with step("the box starts, and says what is missing in a line each"):
        # The controller hci7 does not exist. The machine has other controllers, because a machine without any
        # controller has no Bluetooth at all.
        box = Node(computer, adapter="hci7", wifi=radio, interfaces=[near, "p2p-*"])
        dave = Node(neighbour, interfaces=[far])
        time.sleep(6)                                # time for several attempts to find each
        check(box.process.is_running(), "the box runs")
        said = lines(box)
        for source, text in said.items():
            check(len(text) == 1, f"one line about {source}", text)
            say("          " + text[0])
        status = box.status()
        for name in ("bluetooth-le", "wifi-direct"):
            check(bearer(status, name)["problem"], f"status tells what is wrong with {name}", bearer(status, name))

    with step("Ethernet works all the same") as remark:
        box.wait_status("sees dave", lambda status: [peer["name"] for peer in status["peers"]] == ["dave"], 30)
        remark(f"dns-sd by the {bearer(box.status(), 'dns-sd')['state']} responder")

    with step("wpa_supplicant appears: the box has a group") as remark:
        appeared = time.monotonic()
        Supplicant(computer, radio)
        box.wait_status("has a group", lambda status: bearer(status, "wifi-direct")["state"] == "group-owner", 30)
        check(not bearer(box.status(), "wifi-direct")["problem"], "the problem is over")
        remark(f"after {time.monotonic() - appeared:.1f} s")

    with step("avahi-daemon appears: the box uses it, and its neighbour stays") as remark:
        appeared = time.monotonic()
        MulticastDNS(computer)
        box.wait_status("uses it", lambda status: bearer(status, "dns-sd")["state"] == "avahi-daemon", 60)
        remark(f"after {time.monotonic() - appeared:.1f} s")
        (link,) = box.status()["links"]
        check(link["name"] == "dave" and link["state"] == "up", "dave's link stands", link)

    with step("nothing was said twice"):
        for source, text in lines(box).items():
            check(len(text) == len(set(text)) and len(text) <= 2, f"few lines about {source}", text)
        check(dave.process.is_running(), "dave runs")


main(scenario)
