"""Peers with only Bluetooth classic. A phone, a program written only from docs/protocol.md, finds the box by an inquiry
and its service record. The phone joins a session with dave on Ethernet. A node behind RFCOMM receives a file from dave,
goes out of range and comes back. Then an attacker sends malformed requests for service records and leaves streams open.
Last, the attacker opens and closes streams without end."""

# seconds: 150

import json
import os
import time

import causeway
from lab import BluetoothAir, Box, CheckFailed, Management, Node, Process, cable, check, classic, main, run, step, wait_until
from lab.node import bearer
from lab.stage import links_up, peer_names
from lab.told import Story, invite
from lab.transfer import Transfer

NAME, SECONDS = "Ada’s phone", 40
CANARY = "the canary sings at noon"
BOX, PHONE, ERIN, MALLORY = range(4)
FILE_BYTES, PORT = 1 << 20, 5000
SERVICE = bytes.fromhex("8a1c00016f5b4e0b9e5cca05e4a10001")
HANDSHAKE_SECONDS = 10
NONSENSE = (
    b"\0", b"\6", os.urandom(48), bytes(48), b"\6\0\1\xff\xff" + bytes(40),
    b"\2\0\1\0\5" + b"\x37\xff\xff\xff\xff", b"\4\0\1\0\7" + b"\0\1\0\0\0\7\0", b"\7\0\1\0\0", b"\6\0\1\0\2\x35\0" * 6,
)


def scenario():
    with step("box with Bluetooth classic beside LE, and dave on Ethernet") as remark:
        classic.load()
        air, kernel = BluetoothAir(controllers=4), Management()
        computer, neighbour = Box("box"), Box("dave")
        near, far = cable(computer, neighbour)
        box = Node(computer, adapter="hci0", interfaces=[near], extra={"bluetooth": {"classic": "yes"}})
        dave = Node(neighbour, interfaces=[far], extra={"node": {"relay": "no"}})
        status = box.wait_status("is discoverable", lambda status: "discoverable" in bearer(status, "bluetooth-classic")["detail"] and status)
        check(bearer(status, "bluetooth-le")["state"] == "up", "LE is up too", status["bearers"])
        remark(bearer(status, "bluetooth-classic")["detail"])
        for index in (PHONE, ERIN, MALLORY):
            classic.power_on(kernel, index)
        addresses = [kernel.address(index) for index in range(4)]

    with step("BlueZ's sdptool reads the record") as remark:
        record = run("sdptool", "-i", f"hci{PHONE}", "browse", addresses[BOX], timeout=60)
        for part in ("Service Name: Causeway", "8a1c0001-6f5b-4e0b-9e5c-ca05e4a10001", '"RFCOMM" (0x0003)', "Channel: "):
            check(part in record, f"{part} is in it", record)
        remark(" ".join(record.split()))

    with step("a phone finds the box by an inquiry, and its channel in the record") as remark:
        began = time.monotonic()
        phone = Story(Process("phone", "python3", "/lab/lab/client.py", f"hci{PHONE}", NAME, SECONDS, "dave", CANARY))
        found = phone.wait("found", 40)
        check(found["address"] == addresses[BOX] and box.status()["box"]["id"].startswith(found["hint"]), "the start of the id", found)
        remark(f"channel {phone.wait('channel')['value']}")

    with step("it is a peer of dave") as remark:
        established = phone.wait("established")
        dave.wait_status("sees the phone", lambda status: any(
            peer["name"] == NAME and peer["hops"] == 2 for peer in status["peers"]), 30)
        (link,) = [link for link in links_up(box.status(), "bluetooth-classic")]
        check(link["name"] == NAME and link["remote"] == addresses[PHONE], "over classic", link)
        remark(f"{time.monotonic() - began:.1f} s, {established['tls']}")

    with step("an application of dave invites it, and they talk"):
        session, sighting = invite(dave, phone)
        results = session.send(b"Hello phone, dave here.", timeout=20)
        check(results == {sighting.address: causeway.Result.DELIVERED}, "dave's line is delivered", results)
        check(phone.wait("text", 40)["text"] == "Hello phone, dave here.", "and shown on the phone")
        while not isinstance(event := session.next(40), causeway.Message):
            pass
        check(event.data == CANARY.encode(), "the phone's line at dave's application", event)

    with step("the kernel keeps no key of it, and nobody was asked"):
        kept = [event for event in kernel._events if event[0] == 0x09 and event[2][0]]
        asked = [event for event in kernel._events if event[0] in (0x0E, 0x0F, 0x10)]
        check(not kept and not asked, "no bond and no question", (kept, asked))

    with step("erin, a node behind RFCOMM, becomes a peer") as remark:
        erin = Box("erin")
        channel = classic.find_channel(addresses[ERIN], addresses[BOX], SERVICE)
        erin.spawn("carrier", "python3", "/lab/lab/carrier.py", PORT, addresses[ERIN], addresses[BOX], channel, bluetooth=True)
        erin = Node(erin, interfaces=["lo"], extra={
            "node": {"relay": "no"}, "ip": {"loopback": "yes", "peers": f"127.0.0.1:{PORT}"}})
        dave.wait_status("sees erin", lambda status: "erin" in peer_names(status), 40)

    with step("dave sends erin a file") as remark:
        seconds = Transfer(dave, erin, FILE_BYTES).finish()
        remark(f"{FILE_BYTES * 8 / seconds / 1000:.0f} kbit/s, in a lab without air time")

    with step("erin leaves in the middle of another, and comes back") as remark:
        transfer = Transfer(dave, erin, FILE_BYTES, "other.bin")
        transfer.wait_arrived(FILE_BYTES // 4)
        left = time.monotonic()
        air.set_range("hci0", f"hci{ERIN}", "far")
        box.wait_status("has lost erin", lambda status: not any(link["name"] == "erin" for link in links_up(status)), 30)
        remark(f"lost after {time.monotonic() - left:.1f} s")
        held, back = transfer.arrived(), time.monotonic()
        air.set_range("hci0", f"hci{ERIN}", "near")
        wait_until("bytes arrive again", lambda: transfer.arrived() > held, 60)
        remark(f"bytes arrive {time.monotonic() - back:.1f} s after it is in range")
        transfer.finish()

    with step("nonsense to the service records is refused or ends the channel") as remark:
        remark(", ".join(answer_to(addresses, request) for request in NONSENSE))

    with step("who asks without end is left after 64 requests") as remark:
        remark(f"{ask_without_end(addresses)} answers")

    with step(f"a stream that says nothing is closed within {HANDSHAKE_SECONDS} s") as remark:
        began = time.monotonic()
        with classic.connect_rfcomm(addresses[MALLORY], addresses[BOX], channel) as silent:
            check(ends(silent, HANDSHAKE_SECONDS + 5), "it is closed")
        remark(f"{time.monotonic() - began:.1f} s")

    with step("streams come and go, some with noise: erin gets her file, the box its memory back") as remark:
        before = (box.resident_kib(), box.process.descriptors())
        transfer, opened = Transfer(dave, erin, FILE_BYTES, "third.bin"), 0
        while not transfer.is_over():
            try:
                with classic.connect_rfcomm(addresses[MALLORY], addresses[BOX], channel, timeout=5) as stream:
                    stream.send(os.urandom(600))
                opened += 1
            except OSError:
                time.sleep(0.1)
        seconds = transfer.finish()
        wait_until("the descriptors are back", lambda: box.process.descriptors() <= before[1], 30)
        grown = box.resident_kib() - before[0]
        check(grown < 2048, "within 2 MiB", grown)
        remark(f"{opened} streams in {seconds:.1f} s, {FILE_BYTES * 8 / seconds / 1000:.0f} kbit/s, {grown} KiB")

    with step("a box that ends is found no more"):
        box.stop()
        check(not kernel.settings(BOX)[1] & 0x0A, "neither connectable nor discoverable", kernel.settings(BOX))


def answer_to(addresses, request):
    """Send one request to the box's service records. Returns the kind of the answer's PDU, or “closed” if the channel
    ends."""
    with classic.connect_sdp(addresses[MALLORY], addresses[BOX]) as records:
        records.settimeout(5)
        records.send(request)
        try:
            answer = records.recv(1024)
        except ConnectionError:
            answer = b""
    check(not answer or answer[0] in (1, 7), "an error, or an empty answer", answer)
    return {0: "closed", 1: "error"}.get(answer[0] if answer else 0, "answer")


def ask_without_end(addresses):
    request, answers = b"\2\0\1\0\x08\x35\3\x19\0\3\0\1\0", 0
    with classic.connect_sdp(addresses[MALLORY], addresses[BOX]) as records:
        records.settimeout(5)
        while answers < 1000:
            try:
                records.send(request)
                if not records.recv(1024):
                    break
            except ConnectionError:
                break
            answers += 1
    check(answers == 64, "answers until the end", answers)
    return answers


def ends(stream, timeout):
    stream.settimeout(timeout)
    try:
        return stream.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


main(scenario)
