#!/usr/bin/env python3
"""phone.py central|peripheral SOCKET SERVICE CHARACTERISTIC: a Bluetooth host that shares no code with Linux.

It is bumble's host stack on a controller of the virtual air, with a random address. As a central it finds the service,
reads the PSM from the characteristic and opens a credit-based channel. As a peripheral it offers service,
characteristic and channel. In both roles it returns received text in capital letters. UUIDs are given as 32 hexadecimal
digits."""

import asyncio
import struct
import sys

from bumble import core, hci, l2cap
from bumble.device import Device, Peer
from bumble.gatt import Characteristic, Service
from bumble.transport.unix import open_unix_client_transport

ADDRESS = "C0:FF:EE:00:00:01"
SERVED_PSM = 0x0085
CHANNEL = {"mtu": 2048, "mps": 245, "max_credits": 64}


def say(*words):
    print(*words, flush=True)


def answer_in_capitals(channel):
    channel.sink = lambda data: channel.write(bytes(data).upper())


async def central(device, service, characteristic):
    found = asyncio.get_running_loop().create_future()

    def on_advertisement(advertisement):
        offered = advertisement.data.get(core.AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS) or []
        if service in offered and not found.done():
            found.set_result(advertisement.address)

    device.on("advertisement", on_advertisement)
    await device.start_scanning(active=True)
    address = await asyncio.wait_for(found, 30)
    await device.stop_scanning()
    say("found", address)
    connection = await device.connect(address, timeout=30)
    connection.on("disconnection", lambda reason: say(f"disconnected, reason 0x{reason:02x}"))
    peer = Peer(connection)
    await peer.request_mtu(247)
    (remote_service,) = await peer.discover_service(service)
    (remote_psm,) = await remote_service.discover_characteristics([characteristic])
    (psm,) = struct.unpack("<H", await remote_psm.read_value())
    say(f"PSM 0x{psm:04x}")
    channel = await connection.create_l2cap_channel(spec=l2cap.LeCreditBasedChannelSpec(psm=psm, **CHANNEL))
    answer_in_capitals(channel)
    channel.write(b"hello from the phone")


async def peripheral(device, service, characteristic):
    device.create_l2cap_server(
        spec=l2cap.LeCreditBasedChannelSpec(psm=SERVED_PSM, **CHANNEL), handler=answer_in_capitals
    )
    value = struct.pack("<H", SERVED_PSM)
    readable = Characteristic(characteristic, Characteristic.Properties.READ, Characteristic.READABLE, value)
    device.add_service(Service(service, [readable]))
    data = core.AdvertisingData(
        [
            (core.AdvertisingData.FLAGS, b"\x06"),
            (core.AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, bytes(service)),
        ]
    )
    await device.start_advertising(auto_restart=True, advertising_data=bytes(data))
    say("advertising")


async def main(role, path, service, characteristic):
    transport = await open_unix_client_transport(path)
    address = hci.Address(ADDRESS, hci.Address.RANDOM_DEVICE_ADDRESS)
    device = Device.with_hci("phone", address, transport.source, transport.sink)
    await device.power_on()
    say("powered")
    act = {"central": central, "peripheral": peripheral}[role]
    await act(device, core.UUID(service), core.UUID(characteristic))
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
