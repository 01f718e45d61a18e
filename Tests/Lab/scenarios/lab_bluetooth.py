"""Test of the lab: Bluetooth LE between three controllers of one kernel. The argument is the kind of advertising that
the controllers support: `legacy` or `extended`, which is the default."""

# variants: extended legacy

import errno
import sys
import threading
import time

from lab import BluetoothAir, Management, accept, check, close_hard, connect_channel, listen_channel, main, step
from lab.bluetooth import att_listener, begin_connect, connect_att, finish_connect

PSM = 0x0081
SERVICE_DATA = b"\x05\xff\xff\xff\x01\x02"           # 6 bytes of advertising data: manufacturer data
HUB, LEFT, RIGHT = 0, 1, 2


def exchange(a, b, text):
    """Send data over a channel in both directions, and check that it arrives."""
    a.send(b"to " + text)
    check(b.recv(2048) == b"to " + text, "data arrives")
    b.send(b"back " + text)
    check(a.recv(2048) == b"back " + text, "the answer arrives")


def bulk(sender, receiver, size=200_000, piece=1000):
    """Check that much data arrives in order. Returns the kbit/s, which say nothing about real radios."""
    start = time.monotonic()
    pattern = bytes(range(250)) * 4
    feeder = threading.Thread(target=lambda: [sender.send(pattern[:piece]) for _ in range(size // piece)])
    feeder.start()
    received = 0
    while received < size:
        data = receiver.recv(4096)
        check(data == pattern[:piece], "a message arrives whole")
        received += len(data)
    feeder.join()
    return size * 8 / 1000 / (time.monotonic() - start)


def ends_with(channel, *allowed):
    """Wait until a channel ends, and check how it ended."""
    try:
        data = channel.recv(2048)
        outcome = "end of file" if not data else data
    except OSError as error:
        outcome = errno.errorcode.get(error.errno, str(error))
    check(outcome in allowed, f"the channel ends with one of {allowed}", outcome)
    return outcome


def scenario():
    legacy = "legacy" in sys.argv[1:]
    with step(f"three controllers, {'legacy' if legacy else 'extended'} advertising"):
        air = BluetoothAir(controllers=3, legacy=legacy)
        kernel = Management()
        address = {}
        for index in (HUB, LEFT, RIGHT):
            kernel.power_on(index)
            address[index] = kernel.address(index)
        listener = {index: listen_channel(address[index], PSM) for index in address}

    def connect(central, peripheral):
        channel = connect_channel(address[central], address[peripheral], PSM)
        return channel, accept(listener[peripheral])

    with step("advertising is heard, with its signal strength"):
        air.set_range("hci0", "hci2", -77)
        kernel.advertise(HUB, SERVICE_DATA)
        for index, expected in ((LEFT, -60), (RIGHT, -77)):
            strength, data = kernel.discover(index, address[HUB])
            check(SERVICE_DATA in data, "the advertising data is the hub's", data)
            check(strength == expected, f"signal strength at hci{index}", strength)

    with step("left connects while hub advertises and left scans") as remark:
        kernel.start_discovery(LEFT)
        start = time.monotonic()
        left = connect(LEFT, HUB)
        remark(f"linked after {time.monotonic() - start:.2f} s")
        kernel.stop_discovery(LEFT)
        exchange(*left, b"left")

    with step("right connects to the same hub, which advertises again"):
        kernel.advertise(HUB, SERVICE_DATA)
        right = connect(RIGHT, HUB)
        exchange(*right, b"right")
        exchange(*left, b"left, still")
        check(sorted(kernel.connections(HUB)) == sorted((address[LEFT], address[RIGHT])), "the hub has two links")
        check(len(air.links()) == 2, "the air has two links")

    with step("much data over both links at once, both ways") as remark:
        rates = []
        jobs = [
            threading.Thread(target=lambda pair=pair: rates.append(bulk(*pair)))
            for pair in (left, left[::-1], right, right[::-1])
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join(60)
        check(len(rates) == 4, "all four transfers end")
        remark(f"{sum(rates):.0f} kbit/s in total")

    with step("left, central of one link, is peripheral of another"):
        kernel.advertise(LEFT, SERVICE_DATA)
        across = connect(RIGHT, LEFT)
        exchange(*across, b"across")
        check(len(kernel.connections(LEFT)) == 2, "left has both links")

    with step("links end when out of range, the others stay") as remark:
        kernel.forget_events()
        start = time.monotonic()
        air.set_range("hci0", "hci1", "far")
        reasons = [kernel.wait_disconnected(HUB, address[LEFT]), kernel.wait_disconnected(LEFT, address[HUB])]
        remark(f"noticed after {time.monotonic() - start:.2f} s")
        check(reasons == [1, 1], "both ends say timeout", reasons)
        ends_with(left[0], "ETIMEDOUT", "end of file")
        ends_with(left[1], "ETIMEDOUT", "end of file")
        exchange(*right, b"right, still")
        exchange(*across, b"across, still")

    with step("connecting to a peer that is not there can be given up"):
        kernel.advertise(HUB, SERVICE_DATA)
        pending = begin_connect(address[LEFT], address[HUB], PSM)
        time.sleep(2)
        close_hard(pending)
        time.sleep(0.5)
        check(not air.nodes()["hci1"]["connecting"], "the controller no longer tries", air.nodes)

    with step("back in range"):
        air.set_range("hci0", "hci1", "near")
        left = connect(LEFT, HUB)
        exchange(*left, b"left again")

    with step("a remote disconnect ends the channel"):
        kernel.disconnect(HUB, address[LEFT])
        ends_with(left[0], "ECONNRESET", "end of file")
        close_hard(*left)

    with step("the ATT channel, with its listener there before the link"):
        att = att_listener(address[HUB])
        kernel.advertise(HUB, SERVICE_DATA)
        client = connect_att(address[LEFT], address[HUB])
        server = accept(att)
        client.send(b"\x02\xf7\x00")                 # Exchange MTU Request: 247 bytes
        check(server.recv(100) == b"\x02\xf7\x00", "the request arrives")
        server.send(b"\x03\xf7\x00")
        check(client.recv(100) == b"\x03\xf7\x00", "the response arrives")
        channel, accepted = connect(LEFT, HUB)       # a second channel over the same link
        exchange(channel, accepted, b"beside ATT")
        close_hard(channel, accepted)

    with step("no listener on that channel number"):
        try:
            finish_connect(begin_connect(address[LEFT], address[HUB], 0x00F1))
            check(False, "the channel is refused")
        except OSError as error:
            check(error.errno == errno.ECONNREFUSED, "the channel is refused", error)

    with step("power off and on"):
        kernel.power_off(HUB)
        ends_with(client, "ECONNRESET", "ETIMEDOUT", "end of file")
        kernel.power_on(HUB)
        kernel.advertise(HUB, SERVICE_DATA)
        again = connect_channel(address[LEFT], address[HUB], PSM)
        exchange(again, accept(listener[HUB]), b"after power cycle")

    with step("hub and left dial each other at the same moment") as remark:
        for link in air.links():
            air.cut(link["central"], link["peripheral"])
        time.sleep(1)
        kernel.advertise(HUB, SERVICE_DATA)
        kernel.advertise(LEFT, SERVICE_DATA)
        attempts = [begin_connect(address[HUB], address[LEFT], PSM), begin_connect(address[LEFT], address[HUB], PSM)]
        outcomes = []
        for attempt in attempts:
            try:
                finish_connect(attempt, 8)
                outcomes.append("connected")
            except Exception as error:
                outcomes.append(str(error))
        check("connected" in outcomes, "at least one attempt succeeds", outcomes)
        remark(", ".join(outcomes))


main(scenario)
