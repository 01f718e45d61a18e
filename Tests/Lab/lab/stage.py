"""The nodes of the main scenarios: a relay box and three peers. No two peers share a radio or a cable.

  bob   ── Bluetooth LE ──┐
  carol ── Wi-Fi Direct ──┤ box
  dave  ── Ethernet ──────┘
"""

from .bluetooth import BluetoothAir
from .box import Box, cable, load_radios
from .node import Node
from .story import check
from .wifi import Supplicant


class Stage:
    def __init__(self, legacy=False, peers=("bob", "carol", "dave"), controllers=2):
        """`controllers` is the number of Bluetooth controllers in the air. box and bob use the first two."""
        self.air = BluetoothAir(controllers=controllers, legacy=legacy, wait=False)
        load_radios(2)
        self.boxes = {name: Box(name) for name in ("box", *peers)}
        box = self.boxes["box"]
        self.supplicants = {"box": Supplicant(box, box.take_radio(0))}
        interfaces = ["p2p-*"]
        if "dave" in peers:
            near, far = cable(box, self.boxes["dave"])
            interfaces.append(near)
        self.air.wait_ready()
        self.nodes = {}
        self.nodes["box"] = Node(
            box, adapter="hci0", wifi="wlan0", interfaces=interfaces,
            extra={"node": {"discovery-info": "role=relay"}, "wifi-direct": {"frequency": 2437}},
        )
        if "bob" in peers:
            self.add("bob", "text,files", adapter="hci1")
        if "carol" in peers:
            carol = self.boxes["carol"]
            self.supplicants["carol"] = Supplicant(carol, carol.take_radio(1))
            self.add("carol", "text", wifi="wlan1", interfaces=["p2p-*"],
                     extra={"wifi-direct": {"mode": "client", "frequency": 2437}})
        if "dave" in peers:
            self.add("dave", "files", interfaces=[far])

    def add(self, name, speaks, extra=None, **how):
        sections = {"node": {"relay": "no", "discovery-info": f"speaks={speaks.replace(',', '+')}"}}
        for section, keys in (extra or {}).items():
            sections.setdefault(section, {}).update(keys)
        self.nodes[name] = Node(self.boxes[name], extra=sections, **how)

    def __getitem__(self, name):
        return self.nodes[name]

    def wait_acquainted(self, timeout=60):
        """Wait until all other nodes are peers of every node."""
        for name, node in self.nodes.items():
            others = set(self.nodes) - {name}
            node.wait_status(
                f"sees {', '.join(sorted(others))}",
                lambda status: others <= {peer["name"] for peer in status["peers"]}, timeout,
            )


def look_for_doubles(nodes):
    """Check that no node lists a peer twice. Returns the status of each node by the node's name."""
    found = {}
    for node in nodes:
        status = found[node.name] = node.status()
        for key in ("name", "id"):
            values = [peer[key] for peer in status["peers"]]
            check(len(values) == len(set(values)), f"{node.name} sees nobody twice by {key}", values)
    return found


def peer_names(status):
    return {peer["name"] for peer in status["peers"]}


def links_up(status, bearer=None):
    """The links of a status that are up. With `bearer` only the links over that bearer."""
    return [link for link in status["links"] if link["state"] == "up" and bearer in (None, link["bearer"])]
