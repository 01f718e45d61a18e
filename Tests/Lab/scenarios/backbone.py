"""Boxes that reach each other over a mesh of Wi-Fi radios: a diamond of four. a and d are in range only of b and c. b
and c are out of range of each other. The daemons form the mesh from their configuration. Argument: the layer that
forwards.

  mesh      the radios (802.11s): every box is a neighbour of all others
  links     Causeway alone: neighbours are the boxes in radio range
  batman    batman-adv over the mesh, whose own forwarding is off

A file is sent from a to d. Meanwhile a box on its way falls silent, and wpa_supplicant of a box is killed. With `mesh`,
box a has a group for phones on the same radio.
"""

# variants: mesh
# seconds: 100

import json
import sys
import time

from lab import Box, Node, Supplicant, check, load_radios, main, run, step, wait_until
from lab.box import set_radio_range
from lab.node import bearer
from lab.stage import links_up, look_for_doubles, peer_names
from lab.transfer import Transfer, send_file

GROUPS = {"a": 0b0011, "b": 0b0101, "c": 0b1010, "d": 0b1100}      # radios with a common bit are in range
NOBODY = 0b10000
MESH = {"enabled": "yes", "ssid": "cw-backbone", "passphrase": "backbone secret", "frequency": 2437}


def use_batman(box, radio):
    """Set up bat0 over the mesh. Loop avoidance is disabled: it is needed only for a bat0 in a bridge, and would hold
    back broadcasts for 30 s."""
    box.run("ip", "link", "add", "bat0", "type", "batadv")
    box.run("batctl", "meshif", "bat0", "bridge_loop_avoidance", "0")
    join_batman(box, radio)
    box.run("ip", "link", "set", "bat0", "up")


def join_batman(box, radio):
    """Add the mesh interface to bat0, with room for its header of up to 60 bytes. Repeat this when the interface was
    recreated."""
    box.run("ip", "link", "set", radio, "mtu", "1560")
    box.run("ip", "link", "set", radio, "master", "bat0")


def is_member(status, neighbours):
    state = bearer(status, "mesh")
    return state["state"] == "member" and f"{neighbours} mesh peers" in state["detail"]


def bytes_sent(box, interface):
    return json.loads(box.run("ip", "-s", "-j", "link", "show", interface))[0]["stats64"]["tx"]["bytes"]


def neighbours(node):
    return " ".join(sorted(link["name"] for link in links_up(node.status())))


def longest_standstill(transfer):
    """The longest time without progress of a transfer, from now until its end, in seconds."""
    arrived, longest, last = transfer.arrived(), 0.0, time.monotonic()
    while not transfer.is_over():
        time.sleep(0.05)
        if transfer.arrived() != arrived:
            longest, arrived, last = max(longest, time.monotonic() - last), transfer.arrived(), time.monotonic()
    return longest


def sees_all(nodes):
    for node in nodes.values():
        others = set(nodes) - {node.name}
        node.wait_status(f"sees {', '.join(sorted(others))}", lambda status: others <= peer_names(status), 60)


def scenario():
    how = sys.argv[1] if len(sys.argv) > 1 else "mesh"
    boxes, radios, supplicants, nodes = {}, {}, {}, {}
    with step("four boxes with a radio each; a and d hear b and c, nobody else is heard"):
        load_radios(len(GROUPS))
        for number, (name, group) in enumerate(GROUPS.items()):
            boxes[name] = Box(name)
            radios[name] = boxes[name].take_radio(number)
            set_radio_range(number, group)
            supplicants[name] = Supplicant(boxes[name], radios[name])

    def range_of(name, group):
        set_radio_range(list(GROUPS).index(name), group)

    with step("their daemons make the mesh, and each radio has its two neighbours") as remark:
        if how == "batman":
            run("modprobe", "batman-adv", timeout=60)
        began = time.monotonic()
        for name, box in boxes.items():
            mesh = {**MESH, "interface": radios[name], "forwarding": "yes" if how == "mesh" else "no"}
            nodes[name] = Node(
                box, interfaces=["bat0" if how == "batman" else "mesh-*"], wifi=how == "mesh" and name == "a" and radios[name],
                extra={"mesh": mesh})
        for node in nodes.values():
            node.wait_status("has two neighbours", lambda status: is_member(status, 2), 60)
        remark(f"after {time.monotonic() - began:.1f} s")

    if how == "mesh":
        with step("a has a group on the same radio"):
            nodes["a"].wait_status("owns a group", lambda status: bearer(status, "wifi-direct")["state"] == "group-owner", 30)
            check(bearer(nodes["a"].status(), "mesh")["state"] == "member", "and its place in the mesh")
    if how == "batman":
        with step("bat0 on top"):
            for name, box in boxes.items():
                use_batman(box, f"mesh-{radios[name]}")

    with step("each sees the three others") as remark:
        began = time.monotonic()
        sees_all(nodes)
        remark(f"after {time.monotonic() - began:.1f} s")
    with step("at rest") as remark:
        time.sleep(5)
        carrier = f"mesh-{radios['a']}"
        before = bytes_sent(boxes["a"], carrier)
        time.sleep(10)
        remark(f"a is linked with {neighbours(nodes['a'])}, and sends {(bytes_sent(boxes['a'], carrier) - before) / 10:.0f} bytes a second")
    with step("1 MiB from a to d") as remark:
        remark(f"{send_file(nodes['a'], nodes['d'], 1 << 20):.2f} s")

    for silent in "bc":
        with step(f"4 MiB from a to d while {silent} falls silent") as remark:
            transfer = Transfer(nodes["a"], nodes["d"], 4 << 20, name=f"{silent}.bin")
            transfer.wait_arrived(1 << 19)
            range_of(silent, NOBODY)
            longest = longest_standstill(transfer)
            remark(f"{transfer.finish():.1f} s in all, longest standstill {longest:.1f} s")
        with step(f"{silent} is heard again"):
            # The neighbours may have kept the box as a mesh peer all the time, so no new membership is required.
            range_of(silent, GROUPS[silent])
            nodes[silent].wait_status("has its neighbours", lambda status: is_member(status, 2), 60)
            sees_all(nodes)

    for victim in "bc":
        with step(f"4 MiB from a to d while {victim}'s wpa_supplicant is killed") as remark:
            transfer = Transfer(nodes["a"], nodes["d"], 4 << 20, name=f"{victim}-killed.bin")
            transfer.wait_arrived(1 << 19)
            supplicants[victim].process.kill()
            longest = longest_standstill(transfer)
            remark(f"{transfer.finish():.1f} s in all, longest standstill {longest:.1f} s")
        with step("it is started again, and the daemon makes the mesh again") as remark:
            supplicants[victim].start()
            began = time.monotonic()
            nodes[victim].wait_status("has its neighbours", lambda status: is_member(status, 2), 90)
            if how == "batman":
                join_batman(boxes[victim], f"mesh-{radios[victim]}")
            sees_all(nodes)
            remark(f"after {time.monotonic() - began:.1f} s")

    with step("a daemon that ends takes its interface with it"):
        look_for_doubles(nodes.values())
        nodes["a"].stop()
        wait_until("it is gone", lambda: f"mesh-{radios['a']}" not in boxes["a"].run("ip", "-br", "link"), 10, 0.2)


main(scenario)
