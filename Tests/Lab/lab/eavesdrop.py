"""What an eavesdropper sees on every bearer of a box, and what an attacker finds who reads a program's memory."""

import ctypes
import os
import pathlib
import socket
import struct
import threading

from .bluetooth import AF_BLUETOOTH, BTPROTO_HCI, _bind
from .process import LOGS
from .story import check

ETH_P_ALL = 3
CLONE_NEWNET = 0x40000000
HCI_DEV_NONE, HCI_CHANNEL_MONITOR = 0xFFFF, 2
MONITOR_ACL = (4, 5)                                 # opcodes of the monitor for data to and from a controller

_libc = ctypes.CDLL(None, use_errno=True)


class Capture:
    """A capture of the traffic of all interfaces of a box, and of all Bluetooth controllers of the machine. It begins
    at once."""

    def __init__(self, box):
        self.packets, self.radio = bytearray(), bytearray()
        self._sockets = [_packet_socket(box), _monitor_socket()]
        for take, source in zip((self._take_packet, self._take_radio), self._sockets):
            threading.Thread(target=self._read, args=(source, take), daemon=True).start()

    def find(self, words):
        """The number of times that these bytes were captured: {"ip": times, "bluetooth": times}."""
        return {"ip": self.packets.count(words), "bluetooth": self.radio.count(words)}

    def sizes(self):
        return {"ip": len(self.packets), "bluetooth": len(self.radio)}

    def keep(self):
        """Write the captured bytes to the scenario's logs."""
        (LOGS / "capture-ip.bin").write_bytes(self.packets)
        (LOGS / "capture-bluetooth.bin").write_bytes(self.radio)

    def _read(self, source, take):
        while True:
            take(source.recv(1 << 17))

    def _take_packet(self, packet):
        self.packets += packet

    def _take_radio(self, packet):
        opcode, _, length = struct.unpack_from("<HHH", packet)
        if opcode in MONITOR_ACL:
            # The HCI and L2CAP headers of each ACL packet are removed, so that the contents of one SDU are contiguous.
            self.radio += packet[6 + 4 : 6 + length]


def find_in_memory(process, words):
    """The number of times that these bytes occur in the writable memory of a process."""
    found = 0
    pid = process.pid
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, end = (int(number, 16) for number in span.split("-"))
                memory.seek(start)
                found += memory.read(end - start).count(words)
    return found


def _packet_socket(box):
    """A packet socket for all interfaces of a box. It also receives from interfaces that are added later."""
    made = []

    def work():                                      # in its own thread, because setns changes the calling thread
        with open(f"/proc/{box.pid}/ns/net") as space:
            if _libc.setns(space.fileno(), CLONE_NEWNET) < 0:
                return
        made.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    check(made, "the box's network can be listened to", os.strerror(ctypes.get_errno()))
    return _with_room(made[0])


def _monitor_socket():
    monitor = socket.socket(AF_BLUETOOTH, socket.SOCK_RAW | socket.SOCK_CLOEXEC, BTPROTO_HCI)
    _bind(monitor, struct.pack("<HHH", AF_BLUETOOTH, HCI_DEV_NONE, HCI_CHANNEL_MONITOR))
    return _with_room(monitor)


def _with_room(source):
    so_rcvbufforce = 33
    source.setsockopt(socket.SOL_SOCKET, so_rcvbufforce, 8 << 20)
    return source
