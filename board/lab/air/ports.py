"""The ports between a host and its controller. A port is the kernel's virtual HCI device or a unix socket."""

import asyncio
import os
import sys

from bumble.transport.common import PacketParser

VENDOR_PACKET = 0xFF
CREATE_PRIMARY = b"\xff\x00"
READS_AT_ONCE = 32                       # the packets read from one host before others have a turn
PACKET_LIMIT = 4096


class KernelPort:
    """The port of a controller of this machine's kernel, which names the controllers hci0, hci1, ..."""

    def __init__(self, controller):
        self.controller = controller
        self.device = os.open("/dev/vhci", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        os.write(self.device, CREATE_PRIMARY)
        controller.port = self
        asyncio.get_running_loop().add_reader(self.device, self.read)

    def read(self):
        for _ in range(READS_AT_ONCE):
            try:
                packet = os.read(self.device, PACKET_LIMIT)
            except BlockingIOError:
                return
            if packet[0] == VENDOR_PACKET:           # the kernel reports the number of the new controller
                self.controller.name = f"hci{int.from_bytes(packet[2:4], 'little')}"
            else:
                self.controller.on_packet(packet)

    def send(self, packet):
        os.write(self.device, packet)


class SocketPort:
    """The port of a controller at a unix socket (H4 framing), for one host at a time. The controller is off while no
    host is connected."""

    def __init__(self, controller, path):
        self.controller = controller
        self.path = path
        self.writer = None
        controller.port = self

    async def listen(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        await asyncio.start_unix_server(self.serve, self.path)

    async def serve(self, reader, writer):
        if self.writer:
            writer.close()
            return
        self.writer = writer
        parser = PacketParser(self.controller)
        try:
            while data := await reader.read(PACKET_LIMIT):
                parser.feed_data(data)
        except (ConnectionError, ValueError) as error:
            print(f"air: {self.controller.name}: {error}", file=sys.stderr)
        finally:
            self.writer = None
            writer.close()
            self.controller.power_down()

    def send(self, packet):
        if self.writer:
            self.writer.write(packet)
