"""The cast of the main job: a relay box, and three peers of which no two share a radio or a cable.

    bob   ── Bluetooth LE ──┐
    carol ── Wi-Fi Direct ──┤ box
    dave  ── Ethernet ──────┘
"""

import hashlib
import os
import pathlib
import threading
import time

from .bluetooth import BluetoothAir
from .box import Box, cable, load_radios
from .node import Node
from .story import CheckFailed, check
from .wifi import Supplicant


class Stage:
    def __init__(self, legacy=False, peers=("bob", "carol", "dave")):
        self.air = BluetoothAir(controllers=2, legacy=legacy, wait=False)
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
        """Until every node sees every other one."""
        for name, node in self.nodes.items():
            others = set(self.nodes) - {name}
            node.wait_status(
                f"sees {', '.join(sorted(others))}",
                lambda status: others <= {peer["name"] for peer in status["peers"]}, timeout,
            )


class Command:
    """A `causeway peer …` command running beside the scenario."""

    def __init__(self, node, *arguments, input=None, timeout=120):
        self.output, self.failure = None, None
        self.seconds = None

        def work():
            start = time.monotonic()
            try:
                self.output = node.cli(*arguments, input=input, timeout=timeout)
            except Exception as failure:
                self.failure = failure
            self.seconds = time.monotonic() - start

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def is_done(self):
        return not self._thread.is_alive()

    def wait(self, timeout=120):
        """The command's output; raises what made it fail."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise CheckFailed(f"a command still runs after {timeout} s")
        if self.failure:
            raise self.failure
        return self.output


def make_file(path, byte_count):
    """A file of random bytes; its SHA-256 in hexadecimal."""
    data = os.urandom(byte_count)
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def send_file(sender, receiver, byte_count, timeout=120, name="photo.bin"):
    """Send a file of random bytes, check what arrived by its hash; seconds that it took."""
    source = pathlib.Path(f"/tmp/files/{sender.name}/{name}")
    target = pathlib.Path(f"/tmp/files/{receiver.name}")
    target.mkdir(parents=True, exist_ok=True)
    expected = make_file(source, byte_count)
    receiving = Command(receiver, "peer", "receive", target, "--count", "1", timeout=timeout)
    sending = Command(sender, "peer", "send", source, "--to", receiver.name, timeout=timeout)
    sending.wait(timeout)
    receiving.wait(timeout)
    check(digest(target / name) == expected, "the file arrived unaltered")
    return sending.seconds
