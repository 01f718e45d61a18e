"""A peer that joins a network over Bluetooth classic, for programs without Causeway. It is the role PANU of the PAN
profile, with the kernel's BNEP. One kernel makes only one such interface for each access point. Further peers therefore
hold their channels and read nothing."""

import ctypes
import fcntl
import socket
import struct

from .bluetooth import AF_BLUETOOTH, BTPROTO_L2CAP, SOL_BLUETOOTH, BT_SECURITY, BT_SECURITY_LOW, _bind, _libc, finish_connect
from .classic import IN_PROGRESS, _address
from .process import run
from .story import check

PSM, MTU = 15, 1691
NAP, PANU = 0x1116, 0x1115
REQUEST = b"\x01\x01\x02" + struct.pack(">HH", NAP, PANU)
SUCCESS = b"\x01\x02\x00\x00"
SOL_L2CAP, L2CAP_OPTIONS = 6, 1
BTPROTO_BNEP = 4
BNEPCONNADD = 0x400442C8


def load():
    """Load the kernel's module for BNEP. Usually the kernel loads it on demand by modprobe."""
    run("modprobe", "bnep", timeout=60)


def connect(own_address, address, timeout=20):
    """Open a channel to an access point, without sending a message."""
    new = socket.socket(AF_BLUETOOTH, socket.SOCK_SEQPACKET, BTPROTO_L2CAP)
    new.setsockopt(SOL_BLUETOOTH, BT_SECURITY, struct.pack("BB", BT_SECURITY_LOW, 0))
    options = bytearray(new.getsockopt(SOL_L2CAP, L2CAP_OPTIONS, 12))
    struct.pack_into("<HH", options, 0, MTU, MTU)
    new.setsockopt(SOL_L2CAP, L2CAP_OPTIONS, bytes(options))
    _bind(new, _address(own_address, 0))
    new.setblocking(False)
    target = _address(address, PSM)
    if _libc.connect(new.fileno(), target, len(target)) < 0 and ctypes.get_errno() != IN_PROGRESS:
        raise OSError(ctypes.get_errno(), "connect to the access point")
    return finish_connect(new, timeout)


def ask(channel, request=REQUEST, timeout=10):
    """Send a request. Returns the response, or empty bytes if the channel was closed."""
    channel.settimeout(timeout)
    try:
        channel.send(request)
        return channel.recv(64)
    except ConnectionError:
        return b""


def is_sent_away(own_address, address):
    """Whether the access point refuses this device: it closes a new channel without a response."""
    try:
        with connect(own_address, address) as channel:
            return ask(channel) == b""
    except ConnectionError:
        return True


def join(own_address, address, box, timeout=20):
    """Join the access point with an interface in a box. Returns (channel, interface name). The channel must stay
    open."""
    channel = connect(own_address, address, timeout)
    answer = ask(channel)
    check(answer == SUCCESS, "the access point lets it in", answer)
    control = socket.socket(AF_BLUETOOTH, socket.SOCK_RAW, BTPROTO_BNEP)
    request = bytearray(struct.pack("<iIH16s2x", channel.fileno(), 0, PANU, b"pan%d"))
    fcntl.ioctl(control, BNEPCONNADD, request)
    return channel, box.adopt(bytes(request[10:26]).split(b"\0")[0].decode())


def ends(channel, timeout):
    """Whether the other end closes the channel within `timeout` seconds."""
    channel.settimeout(timeout)
    try:
        while channel.recv(2048):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:                      # also if the kernel's BNEP has closed the channel
        return True
