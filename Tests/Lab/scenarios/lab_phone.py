"""Test of the lab: a phone meets this kernel in both roles. The phone is a Bluetooth host other than Linux, bumble's.
As the central it connects from a random address, reads a PSM by GATT, opens a credit-based channel, and is killed while
linked. Then it is the peripheral."""

import struct
import threading

from lab import (
    BluetoothAir, Management, accept, att_listener, check, connect_att, connect_channel, listen_channel, main, step, wait_until,
)
from lab.bluetooth import LE_RANDOM
from lab.process import Process

PSM = 0x0081
SERVICE = bytes.fromhex("6e400001b5a3f393e0a9e50e24dcca9e")
CHARACTERISTIC = bytes.fromhex("6e400002b5a3f393e0a9e50e24dcca9e")
COMPLETE_128_BIT_SERVICES = 0x07
PHONE_ADDRESS = "C0:FF:EE:00:00:01"              # a random address of the static kind


def serve_att(channel):
    """Serve GATT: one service with one readable characteristic, whose value is the PSM."""
    service, characteristic = SERVICE[::-1], CHARACTERISTIC[::-1]

    def refuse(opcode, handle):
        attribute_not_found = 0x0A
        channel.send(struct.pack("<BBHB", 0x01, opcode, handle, attribute_not_found))

    while True:
        try:
            request = channel.recv(600)
        except OSError:
            return
        if not request:
            return
        opcode = request[0]
        first = struct.unpack_from("<H", request, 1)[0] if len(request) >= 3 else 0
        if opcode == 0x02:                           # Exchange MTU Request
            channel.send(struct.pack("<BH", 0x03, 247))
        elif opcode == 0x10 and first <= 1:          # Read By Group Type Request: the service has handles 1 to 3
            channel.send(bytes([0x11, 20]) + struct.pack("<HH", 1, 3) + service)
        elif opcode == 0x06 and first <= 1 and request[7:] == service:        # Find By Type Value Request
            channel.send(b"\x07" + struct.pack("<HH", 1, 3))
        elif opcode == 0x08 and request[5:] == b"\x03\x28" and first <= 2:    # Read By Type Request: the declaration
            channel.send(bytes([0x09, 21]) + struct.pack("<HBH", 2, 0x02, 3) + characteristic)
        elif opcode == 0x0A and first == 3:          # Read Request: the characteristic's value
            channel.send(b"\x0b" + struct.pack("<H", PSM))
        else:
            refuse(opcode, first)


def scenario():
    with step("one kernel controller, one for the phone"):
        air = BluetoothAir(controllers=1, sockets=["phone"])
        kernel = Management()
        kernel.power_on(0)
        own = kernel.address(0)
        att, channels = att_listener(own), listen_channel(own, PSM)
        advertising_data = bytes([17, COMPLETE_128_BIT_SERVICES]) + SERVICE[::-1]
        kernel.advertise(0, advertising_data)

    def phone(role):
        return Process(
            f"phone-{role}", "python3", "/lab/lab/phone.py", role, BluetoothAir.socket_path("phone"),
            SERVICE.hex(), CHARACTERISTIC.hex(),
        )

    with step("the phone finds the service, reads the PSM and opens a channel"):
        central = phone("central")
        server = accept(att, 60)
        threading.Thread(target=serve_att, args=(server,), daemon=True).start()
        channel = accept(channels, 30)
        check(channel.recv(2048) == b"hello from the phone", "the phone's first message")
        channel.send(b"x" * 1000)
        check(channel.recv(2048) == b"X" * 1000, "the phone's answer")

    with step("the phone is killed: its link dies of silence") as remark:
        kernel.forget_events()
        peer = kernel.connections(0)[0]
        central.kill()
        check(kernel.wait_disconnected(0, peer, 15) == 1, "the reason is timeout")
        remark(peer)

    with step("the phone as peripheral") as remark:
        started = phone("peripheral")
        wait_until("the phone advertises", lambda: "advertising" in started.output(), 60)
        _, data = kernel.discover(0, PHONE_ADDRESS)
        check(SERVICE[::-1] in data, "the phone offers the service", data)
        client = connect_att(own, PHONE_ADDRESS, LE_RANDOM)
        client.send(b"\x08\x01\x00\xff\xff" + CHARACTERISTIC[::-1])           # Read By Type Request over all handles
        answer = client.recv(600)
        check(answer[0] == 0x09, "the phone's GATT server answers", answer)
        psm = struct.unpack_from("<H", answer, 4)[0]
        channel = connect_channel(own, PHONE_ADDRESS, psm, LE_RANDOM)
        channel.settimeout(20)
        channel.send(b"shout")
        check(channel.recv(2048) == b"SHOUT", "the phone answers over its channel")
        remark(f"PSM 0x{psm:04x}")


main(scenario)
