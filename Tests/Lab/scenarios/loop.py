"""Two boxes that are linked twice, by a cable and by Wi-Fi, form a loop. No frame circulates in the loop, and no frame
arrives twice. When the cable is cut in the middle of a file, the file continues over Wi-Fi. It continues over the cable
when that is back.

  ann ── Ethernet ── box1 ══ Ethernet and Wi-Fi Direct ══ box2 ── Ethernet ── dave
"""

import time

from lab import Box, Node, Supplicant, cable, check, load_radios, main, step, wait_until
from lab.command import chat
from lab.stage import links_up, look_for_doubles, peer_names
from lab.transfer import Transfer, send_file

FILE_BYTES = 6 << 20
SMALL_BYTES = 256 << 10
LINES = 5


def build():
    load_radios(2)
    boxes = {name: Box(name) for name in ("ann", "box1", "box2", "dave")}
    ann_cable, near1 = cable(boxes["ann"], boxes["box1"])
    between1, between2 = cable(boxes["box1"], boxes["box2"])
    near2, dave_cable = cable(boxes["box2"], boxes["dave"])
    for number, name in enumerate(("box1", "box2")):
        Supplicant(boxes[name], boxes[name].take_radio(number))
    end = {"node": {"relay": "no"}}
    nodes = {
        "box1": Node(boxes["box1"], wifi="wlan0", interfaces=[near1, between1, "p2p-*"],
                     extra={"wifi-direct": {"frequency": 2437}}),
        "box2": Node(boxes["box2"], wifi="wlan1", interfaces=[near2, between2, "p2p-*"],
                     extra={"wifi-direct": {"mode": "client", "frequency": 2437}}),
        "ann": Node(boxes["ann"], interfaces=[ann_cable], extra=end),
        "dave": Node(boxes["dave"], interfaces=[dave_cable], extra=end),
    }
    return nodes, lambda up: boxes["box1"].set_link(between1, up)


def between(node, other):
    """The bearers of the links that are up between a node and another node."""
    return sorted(link["bearer"] for link in links_up(node.status()) if link["name"] == other.name)


def is_complete(nodes):
    return all(peer_names(status) == set(nodes) - {name} for name, status in look_for_doubles(nodes.values()).items())


def forwarded(node):
    """The number of bytes that a box has forwarded, and of duplicate frames that it has refused."""
    box = node.status()["box"]
    return box["bytes_forwarded"], sum(box["refusals"].get(name, 0) for name in ("duplicate", "looped-source"))


def scenario():
    with step("two boxes in a loop, and a peer at each, see each other"):
        nodes, set_cable = build()
        ann, box1, box2, dave = (nodes[name] for name in ("ann", "box1", "box2", "dave"))
        both = ["ethernet", "wifi-direct"]
        wait_until("two links join the boxes", lambda: between(box1, box2) == between(box2, box1) == both, 60, 0.3)
        wait_until("everybody sees everybody", lambda: is_complete(nodes), 30, 0.3)
        for node, other in ((ann, "dave"), (dave, "ann")):
            hops = [peer["hops"] for peer in node.status()["peers"] if peer["name"] == other]
            check(hops == [3], f"{node.name} sees {other} over three hops", hops)

    with step("they chat: each line comes once"):
        for _ in range(LINES):
            chat(ann, dave)

    with step(f"dave sends ann {SMALL_BYTES >> 10} KiB: each box forwards it once") as remark:
        before = forwarded(box1), forwarded(box2)
        seconds = send_file(dave, ann, SMALL_BYTES, name="small.bin")
        remark(f"{SMALL_BYTES / seconds / 1000:.0f} kB/s")
        for node, (byte_count, doubles) in zip((box1, box2), before):
            now = forwarded(node)
            share = (now[0] - byte_count) / SMALL_BYTES
            check(1 <= share < 1.3, f"{node.name} forwarded the file once", share)
            # Some duplicates are allowed: flooded frames return over the second path, and advertisements may be renewed
            # in this time.
            check(now[1] - doubles < 8, f"{node.name} met no frame of it twice", now[1] - doubles)

    with step("dave sends ann a file; the cable between the boxes is cut in the middle") as remark:
        transfer = Transfer(dave, ann, FILE_BYTES)
        transfer.wait_arrived(FILE_BYTES // 4)
        cut, held = time.monotonic(), transfer.arrived()
        set_cable(False)
        wait_until("one link joins the boxes", lambda: between(box1, box2) == ["wifi-direct"], 30, 0.1)
        remark(f"link lost after {time.monotonic() - cut:.1f} s, at {held >> 10} KiB")
        wait_until("bytes arrive", lambda: transfer.arrived() > held, 30, 0.02)
        remark(f"bytes again after {time.monotonic() - cut:.1f} s")
        check(is_complete(nodes), "nobody is missed")

    with step("the file arrives whole over Wi-Fi") as remark:
        remark(f"{transfer.finish():.1f} s in all")

    with step("the cable is back, and in use"):
        set_cable(True)
        wait_until("two links join the boxes", lambda: between(box1, box2) == both, 40, 0.3)
        box1.wait_status("reaches box2 by cable", lambda status: [
            peer["bearer"] for peer in status["peers"] if peer["name"] == "box2"] == ["ethernet"], 30)
        chat(ann, dave)
        check(is_complete(nodes), "everybody is there once")


main(scenario)
