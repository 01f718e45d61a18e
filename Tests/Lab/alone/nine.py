"""Nine applications in one session through one box: three on Bluetooth LE, three on Wi-Fi Direct, three on Ethernet.
Each application sends each other one a message, a stream of 100 KiB, and a file of 100 KiB: 72 directed pairs."""

import hashlib
import pathlib
import random
import tempfile
import threading
import time

import resources
from lab import BluetoothAir, Box, Node, Supplicant, cable, check, load_radios, main, step, wait_until
from lab.application import Application, everybody_sends_to_everybody

STREAM_BYTES = 100 << 10


def stage():
    """Start the box and the nine peers. Returns the box's node and the nodes of the peers."""
    air = BluetoothAir(controllers=4, wait=False)
    load_radios(4)
    box = Box("box")
    supplicants = [Supplicant(box, box.take_radio(0))]
    places, ends = [Box(f"peer{number}") for number in range(1, 10)], []
    interfaces = ["p2p-*"]
    for place in places[6:]:
        near, far = cable(box, place)
        interfaces.append(near)
        ends.append(far)
    air.wait_ready()
    centre = Node(box, adapter="hci0", wifi="wlan0", interfaces=interfaces,
                  extra={"wifi-direct": {"frequency": 2437}, "node": {"discovery-info": "role=relay"}})
    leaf = {"node": {"relay": "no"}}
    peers = [Node(place, adapter=f"hci{number}", extra=leaf) for number, place in enumerate(places[:3], 1)]
    for number, place in enumerate(places[3:6], 1):
        supplicants.append(Supplicant(place, place.take_radio(number)))
        peers.append(Node(place, wifi=f"wlan{number}", interfaces=["p2p-*"],
                          extra={**leaf, "wifi-direct": {"mode": "client", "frequency": 2437}}))
    peers += [Node(place, interfaces=[end], extra=leaf) for place, end in zip(places[6:], ends)]
    return centre, peers


def between_all(applications, work):
    """Call work(sender, receiver) for all pairs. Senders work in parallel, and each handles its receivers one after the
    other."""
    failures = []

    def begin(sender):
        try:
            for receiver in applications:
                if receiver is not sender:
                    work(sender, receiver)
        except Exception as failure:                    # the scenario reports the failure, not this thread
            failures.append((sender.name, failure))

    senders = [threading.Thread(target=begin, args=[one], daemon=True) for one in applications]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(240)
    check(not failures and not any(sender.is_alive() for sender in senders), "all went well, and in time", failures)


def scenario():
    with step("a box, and nine peers: three on each of its bearers") as remark:
        began = time.monotonic()
        box, peers = stage()
        for node in (box, *peers):
            node.wait_status("sees the nine others", lambda status: len(status["peers"]) == 9, 150)
        remark(f"everybody sees everybody after {time.monotonic() - began:.1f} s")
        bearers = sorted(peer.status()["links"][0]["bearer"] for peer in peers)
        check(bearers == ["bluetooth-le"] * 3 + ["ethernet"] * 3 + ["wifi-direct"] * 3, "three of each", bearers)

    with step("nine applications gather in one session") as remark:
        began = time.monotonic()
        applications = [Application(peer, members_max=9, directory=tempfile.mkdtemp()) for peer in peers]
        for one in applications:
            others = [other for other in applications if other is not one]
            wait_until(f"{one.name} meets the eight others", lambda: one.meets(others), 120, 0.05)
        remark(f"after {time.monotonic() - began:.1f} s")
        check(len({one.session.id for one in applications}) == 1, "it is one session")

    with step("all 72 pairs exchange a message") as remark:
        times = everybody_sends_to_everybody(applications)
        remark(f"{sorted(times)[len(times) // 2]:.0f} ms in the middle, {max(times):.0f} ms at most, for {len(times)} pairs")

    with step("all 72 pairs exchange a stream of 100 KiB") as remark:
        data = random.Random(1).randbytes(STREAM_BYTES)
        began, digest = time.monotonic(), hashlib.sha256(data).digest()

        def write(sender, receiver):
            stream = sender.session.open_stream(f"from {sender.name}", receiver.address)
            stream.write(data, timeout=120)
            stream.finish(timeout=120)

        between_all(applications, write)
        for one in applications:
            wait_until(f"{one.name} has read eight", lambda: len(one.streams) == 8, 20, 0.1)
            check(all(hashlib.sha256(received).digest() == digest for _, received in one.streams), "bit by bit")
        remark(f"in {time.monotonic() - began:.1f} s")

    with step("all 72 pairs exchange a file of 100 KiB") as remark:
        began = time.monotonic()

        def send(sender, receiver):
            path = pathlib.Path(sender.directory, "out", f"from {sender.name}")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            verdicts = sender.transfers.send([path], receiver.address)
            check(verdicts == [resources.STORED], f"{receiver.name} has stored it", verdicts)

        between_all(applications, send)
        for one in applications:
            files = [path for path in pathlib.Path(one.directory).iterdir() if path.is_file()]
            check(len(files) == 8, f"{one.name} has eight files", files)
            check(all(hashlib.sha256(path.read_bytes()).digest() == digest for path in files), "bit by bit")
        remark(f"in {time.monotonic() - began:.1f} s")

    with step("what the box was left with") as remark:
        kib = box.resident_kib()
        remark(f"{kib / 1024:.1f} MiB of memory; {box.status()['box']['frames_forwarded']} frames forwarded")
        check(kib <= 9 << 10, "at most 9 MiB", kib)


main(scenario)
