#!/usr/bin/env python3
"""le_carrier.py SOCKET PORT CREDITS: carries TCP connections over an LE credit-based channel.

The program lets a node without Bluetooth act as a phone with little memory. Its Bluetooth host is not Linux's, and
grants CREDITS credits. It accepts TCP connections at PORT of this machine, one at a time. For each it finds a
box by its service, and carries the bytes to this box. SIGUSR1: grant no more credits; SIGUSR2: grant credits again."""

import asyncio
import contextlib
import signal
import struct
import sys

from bumble import core, hci, l2cap
from bumble.device import Device, Peer
from bumble.transport.unix import open_unix_client_transport

SERVICE = core.UUID("8A1C0001-6F5B-4E0B-9E5C-CA05E4A10001")
PSM_CHARACTERISTIC = core.UUID("ABDD3056-28FA-441D-A470-55A75A52553A")
ADDRESS = "C0:FF:EE:00:00:02"


class Carrier:
    def __init__(self, device, credits):
        self.device, self.credits = device, credits
        self.channel, self.is_stalled = None, False

    async def dial(self):
        """Find a box and open a channel to it. Returns the connection and the channel."""
        found = asyncio.get_running_loop().create_future()

        def on_advertisement(advertisement):
            offered = advertisement.data.get(core.AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS) or []
            if SERVICE in offered and not found.done():
                found.set_result(advertisement.address)

        self.device.on("advertisement", on_advertisement)
        await self.device.start_scanning(active=False)
        try:
            address = await asyncio.wait_for(found, 30)
        finally:
            self.device.remove_listener("advertisement", on_advertisement)
            await self.device.stop_scanning()
        connection = await self.device.connect(address, timeout=30)
        peer = Peer(connection)
        await peer.request_mtu(247)
        (service,) = await peer.discover_service(SERVICE)
        (characteristic,) = await service.discover_characteristics([PSM_CHARACTERISTIC])
        (psm,) = struct.unpack("<H", await characteristic.read_value())
        spec = l2cap.LeCreditBasedChannelSpec(psm=psm, mtu=2048, mps=245, max_credits=self.credits)
        return connection, await connection.create_l2cap_channel(spec=spec)

    async def carry(self, reader, writer):
        """Carry one TCP connection until it or its channel is closed."""
        connection, channel = await self.dial()
        print(f"connected, {self.credits} credits", flush=True)
        self.channel = channel
        self.apply()
        ended = asyncio.Event()
        channel.sink = writer.write
        channel.on("close", ended.set)
        connection.on("disconnection", lambda reason: ended.set())

        async def send():
            while data := await reader.read(1024):
                channel.write(data)
                await channel.drain()
            ended.set()

        sending = asyncio.ensure_future(send())
        await ended.wait()
        sending.cancel()
        self.channel = None
        with contextlib.suppress(Exception):
            await connection.disconnect()
        print("ended", flush=True)

    def stall(self, is_stalled):
        self.is_stalled = is_stalled
        print("stalled" if is_stalled else "goes on", flush=True)
        self.apply()

    def apply(self):
        """Grant credits when few are left. Grant none while the carrier is stalled by SIGUSR1."""
        if self.channel is None:
            return
        self.channel.peer_credits_threshold = -1 if self.is_stalled else self.credits // 2
        missing = self.credits - self.channel.peer_credits
        if not self.is_stalled and missing:
            self.channel.send_control_frame(l2cap.L2CAP_LE_Flow_Control_Credit(
                identifier=self.channel.manager.next_identifier(self.channel.connection),
                cid=self.channel.source_cid, credits=missing))
            self.channel.peer_credits = self.credits


async def main(path, port, credits):
    transport = await open_unix_client_transport(path)
    device = Device.with_hci(
        "phone", hci.Address(ADDRESS, hci.Address.RANDOM_DEVICE_ADDRESS), transport.source, transport.sink)
    await device.power_on()
    carrier, turn = Carrier(device, int(credits)), asyncio.Lock()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, carrier.stall, True)
    loop.add_signal_handler(signal.SIGUSR2, carrier.stall, False)

    async def serve(reader, writer):
        async with turn:
            try:
                await carrier.carry(reader, writer)
            except Exception as error:
                print(f"failed: {error!r}", flush=True)
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", int(port)) as server:
        print("ready", flush=True)
        await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
