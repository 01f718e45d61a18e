"""Bluetooth classic (BR/EDR) for scenarios that act as a peer: inquiry, service records and RFCOMM, without pairing."""

import ctypes
import socket
import struct
import time

from .bluetooth import (
    AF_BLUETOOTH, BT_SECURITY, BT_SECURITY_LOW, BTPROTO_L2CAP, SOL_BLUETOOTH, _bind, _libc, address_bytes, address_text,
    finish_connect,
)
from .process import run
from .story import CheckFailed, check

BTPROTO_RFCOMM = 3
SDP_PSM = 1
SET_DISCOVERABLE, SET_SSP, SET_NAME, ADD_UUID, SET_IO_CAPABILITY = 0x06, 0x0B, 0x0F, 0x10, 0x18
NO_INPUT_NO_OUTPUT = b"\x03"
BREDR_ADDRESSES = b"\x01"                # the address type of a discovery
IN_PROGRESS = 115


def power_on(kernel, index):
    """Switch on a controller, let other devices connect to it, and let it pair without a question."""
    kernel.command(SET_SSP, index, b"\1")
    kernel.command(SET_IO_CAPABILITY, index, NO_INPUT_NO_OUTPUT)
    kernel.power_on(index)


def load():
    """Load the kernel's module for RFCOMM. Usually the kernel loads it on demand by modprobe."""
    run("modprobe", "rfcomm", timeout=60)


def make_discoverable(kernel, index, name, *uuids):
    """Answer inquiries with a name and services. `uuids` are bytes, the most significant first."""
    kernel.command(SET_NAME, index, name.encode().ljust(260, b"\0"))
    for uuid in uuids:
        kernel.command(ADD_UUID, index, uuid[::-1] + b"\0")
    kernel.command(SET_DISCOVERABLE, index, b"\1\0\0")


def inquire(kernel, index, address, timeout=15):
    """Inquire until a device with this address answers. Returns its extended inquiry response."""
    return _inquire(kernel, index, lambda found: found[:6] == address_bytes(address), timeout)[14:]


def find(kernel, index, service, timeout=30):
    """Inquire until a device answers that offers a service (a UUID as bytes). Returns its address and its extended
    inquiry response."""
    found = _inquire(kernel, index, lambda found: service[::-1] in found[14:], timeout)
    return address_text(found[:6]), found[14:]


def _inquire(kernel, index, is_wanted, timeout):
    """Inquire until a matching answer arrives. In the virtual air a device answers each inquiry once. The kernel
    announces a new service only after two seconds, so an inquiry may have to be repeated."""
    deadline = time.monotonic() + timeout
    while True:
        kernel.forget_events()
        kernel.command(kernel.START_DISCOVERY, index, BREDR_ADDRESSES)
        try:
            return kernel.wait_event(kernel.FOUND, index, lambda found: found[6] == 0 and is_wanted(found), 3)
        except CheckFailed:
            if time.monotonic() > deadline:
                raise
        finally:
            kernel.command(kernel.STOP_DISCOVERY, index, BREDR_ADDRESSES, check=False)


def _low(new):
    new.setsockopt(SOL_BLUETOOTH, BT_SECURITY, struct.pack("BB", BT_SECURITY_LOW, 0))
    return new


def listen_rfcomm(own_address):
    """Listen for RFCOMM connections. Returns the listener and its channel."""
    listener = _low(socket.socket(AF_BLUETOOTH, socket.SOCK_STREAM, BTPROTO_RFCOMM))
    listener.bind((own_address, 0))
    listener.listen(4)
    listener.settimeout(20)
    return listener, listener.getsockname()[1]


def connect_rfcomm(own_address, address, channel, timeout=20):
    connecting = _low(socket.socket(AF_BLUETOOTH, socket.SOCK_STREAM, BTPROTO_RFCOMM))
    connecting.bind((own_address, 0))
    connecting.settimeout(timeout)
    connecting.connect((address, channel))
    return connecting


def connect_sdp(own_address, address, timeout=20):
    """Connect an L2CAP channel to a device's server of service records (SDP)."""
    connecting = _low(socket.socket(AF_BLUETOOTH, socket.SOCK_SEQPACKET, BTPROTO_L2CAP))
    _bind(connecting, _address(own_address, 0))
    connecting.setblocking(False)
    target = _address(address, SDP_PSM)
    if _libc.connect(connecting.fileno(), target, len(target)) < 0 and ctypes.get_errno() != IN_PROGRESS:
        raise OSError(ctypes.get_errno(), "connect to the service records")
    return finish_connect(connecting, timeout)


def listen_sdp(own_address):
    """Listen for requests of service records (SDP), in place of the kernel's server."""
    listener = _low(socket.socket(AF_BLUETOOTH, socket.SOCK_SEQPACKET, BTPROTO_L2CAP))
    _bind(listener, _address(own_address, SDP_PSM))
    listener.listen(4)
    return listener


def accept_sdp(listener):
    """Accept a channel. Returns the channel and the address of the client."""
    taken, (address, *_) = listener.accept()
    return taken, address


def _address(address, psm):
    return struct.pack("<HH6sHBx", AF_BLUETOOTH, psm, address_bytes(address), 0, 0)


def find_channel(own_address, address, service):
    """Request the service records of a device. Returns the RFCOMM channel of a service (a UUID as bytes)."""
    with connect_sdp(own_address, address) as sdp:
        parameters = b"\x35\x11\x1c" + service + b"\x03\xf0" + b"\x35\x03\x09\x00\x04" + b"\0"
        sdp.send(struct.pack(">BHH", 6, 1, len(parameters)) + parameters)
        answer = sdp.recv(1024)
    check(answer[:3] == b"\x07\0\1", "an answer of the service records", answer)
    marker = b"\x19\x00\x03\x08"         # the UUID of RFCOMM, and the type of the byte that follows it
    if marker not in answer:
        raise CheckFailed(f"no such service: {answer.hex()}")
    return answer[answer.index(marker) + len(marker)]
