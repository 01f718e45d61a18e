#!/usr/bin/env python3
"""client.py SOCKET|hciN|ADDRESS:PORT NAME [SECONDS [PEER TEXT]]: a Causeway client that is written only from
docs/protocol.md and shares no code with the firmware.

The first argument is its medium: SOCKET is bumble's Bluetooth host in the role of a phone; hciN is Bluetooth classic at
a controller of this kernel; ADDRESS:PORT is a box in an IP network. TLS is Python's `ssl`. The `openssl` command makes
keys and signatures, and its libssl does DTLS.

The client searches for a box, links with it, and announces itself and a service with signed advertisements. It verifies
the advertisements of others, answers pings, joins a session that invites it, and sends TEXT to the member on the node
PEER. It prints the messages that it receives. After SECONDS it leaves the session with a farewell and ends the link
with a goodbye. Each event is a line on stdout: a word, followed by `key=value` pairs."""

import asyncio
import base64
import hashlib
import os
import pathlib
import ssl
import struct
import subprocess
import sys
import tempfile
import time

from conversation import HANDSHAKE, SEALED, Conversation
from membership import KINDS, Membership, endpoint

SERVICE = "8A1C0001-6F5B-4E0B-9E5C-CA05E4A10001"
PSM_CHARACTERISTIC = "ABDD3056-28FA-441D-A470-55A75A52553A"
RANDOM_ADDRESS = "C0:FF:EE:00:00:01"

MARKER = 0x81
FRAME = struct.Struct(">BBBBBBH16s16s8s")
PAYLOAD_BYTES_MAX = 16640
ADVERTISEMENT_BYTES_MAX = 2048
HELLO, PING, PONG, GOODBYE, ADVERTISEMENT = 1, 2, 3, 4, 16
TTL, CONTROL, INTERACTIVE = 16, 0, 2
SEALED_FLAG = 1
# The node does not relay, and requires sealing.
OWN_FLAGS = 0
NOBODY = bytes(16)
TOPOLOGY, PROFILE, SERVICES = 1, 2, 3
SERVICE_TYPE, FAREWELL = "story", "the battery is empty"
LIFETIME_SECONDS = 180
SHUTTING_DOWN = 1
# Each medium: the number of its bearer, its cost, and its longest frame payload in bytes.
BLUETOOTH_LE, BLUETOOTH_CLASSIC, WIFI_DIRECT = (4, 8000, 4096), (4, 9000, 4096), (3, 120, PAYLOAD_BYTES_MAX)

SPKI_PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")
POINT_BYTES = 65


def tell(word, **pairs):
    print(word, *(f"{key}={value}" for key, value in pairs.items()), flush=True)


def openssl(*arguments, input=None):
    done = subprocess.run(["openssl", *map(str, arguments)], input=input, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.decode().strip()}")
    return done.stdout


# --- identity ----------------------------------------------------------------------------------------------------------


def node_id(point):
    return hashlib.sha256(SPKI_PREFIX + point).digest()[:16]


def point_of(certificate):
    """The public key in a DER certificate, as an uncompressed point."""
    start = certificate.find(SPKI_PREFIX)
    if start < 0:
        raise ValueError("the certificate's key is not P-256")
    point = certificate[start + len(SPKI_PREFIX) :][:POINT_BYTES]
    if len(point) != POINT_BYTES or point[0] != 4:
        raise ValueError("the certificate's key is not an uncompressed point")
    return point


class Identity:
    """The identity of a new node: a key with a self-signed certificate."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.key, self.certificate = self.directory / "key.pem", self.directory / "certificate.pem"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key,
                "-out", self.certificate, "-days", "3650", "-subj", "/CN=phone", "-sha256")
        self.point = point_of(ssl.PEM_cert_to_DER_cert(self.certificate.read_text()))
        self.id = node_id(self.point)
        # The stored counter in the upper half is 1, because the node starts for the first time.
        self.epoch = struct.pack(">I", 1) + os.urandom(4)

    @staticmethod
    def id_of_certificate(certificate):
        return node_id(point_of(certificate))

    def sign(self, message):
        """Sign a message. Returns the numbers r and s of the signature, 32 bytes each."""
        signature = openssl("dgst", "-sha256", "-sign", self.key, input=message)
        numbers, rest = [], signature[2:]            # DER: SEQUENCE { INTEGER r, INTEGER s }, lengths of one byte
        for _ in range(2):
            length = rest[1]
            numbers.append(int.from_bytes(rest[2 : 2 + length]))
            rest = rest[2 + length :]
        return b"".join(number.to_bytes(32) for number in numbers)


def is_signed(message, signature, point):
    def integer(raw):
        raw = raw.lstrip(b"\0") or b"\0"
        raw = b"\0" + raw if raw[0] & 0x80 else raw
        return bytes([2, len(raw)]) + raw

    numbers = integer(signature[:32]) + integer(signature[32:])
    body = base64.encodebytes(SPKI_PREFIX + point).decode()
    with tempfile.NamedTemporaryFile() as key, tempfile.NamedTemporaryFile() as der:
        key.write(f"-----BEGIN PUBLIC KEY-----\n{body}-----END PUBLIC KEY-----\n".encode())
        der.write(bytes([0x30, len(numbers)]) + numbers)
        key.flush()
        der.flush()
        try:
            openssl("dgst", "-sha256", "-verify", key.name, "-signature", der.name, input=message)
        except RuntimeError:
            return False
    return True


# --- TLS over a channel ------------------------------------------------------------------------------------------------


class SecureChannel:
    """The client's end of mutual TLS. `write` is called with the bytes for the channel below."""

    def __init__(self, identity, write):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE          # the key itself is the identity, so no authority has to confirm it
        context.load_cert_chain(identity.certificate, identity.key)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        self._write = write
        self.is_established = False
        self._go_on()

    @property
    def peer_certificate(self):
        return self._tls.getpeercert(binary_form=True)

    @property
    def description(self):
        return f"{self._tls.version()}/{self._tls.cipher()[0]}"

    def receive(self, data):
        """Decrypt bytes that arrived on the channel. Returns their plaintext."""
        self._incoming.write(data)
        if not self.is_established:
            self._go_on()
        plaintext = b""
        try:
            while self.is_established and (piece := self._tls.read(65536)):
                plaintext += piece
        except ssl.SSLWantReadError:
            pass
        self._flush()
        return plaintext

    def send(self, plaintext):
        self._tls.write(plaintext)
        self._flush()

    def _go_on(self):
        try:
            self._tls.do_handshake()
            self.is_established = True
        except ssl.SSLWantReadError:
            pass
        self._flush()

    def _flush(self):
        if data := self._outgoing.read():
            self._write(data)


# --- frames ------------------------------------------------------------------------------------------------------------


def frame(kind, payload, source, identifier=bytes(8), destination=NOBODY, flags=0, priority=CONTROL):
    """A frame of this node. In an advertisement the identifier is its age, and zero means that it is new."""
    return FRAME.pack(MARKER, kind, flags, TTL, priority, 0, len(payload), destination, source, identifier) + payload


def text_field(text):
    raw = text.encode()
    return bytes([len(raw)]) + raw


class Client:
    """The frames of a link. `send` is called with the bytes for the TLS stream."""

    def __init__(self, identity, name, peer_id, send, medium):
        self.identity, self.name, self.peer_id, self._send = identity, name, peer_id, send
        self._bearer, self._cost, self._payload_max = medium
        self._stream, self._counter, self._sequences = b"", 0, {}
        self._shown, self._newest = set(), {}
        self._states, self._names, self._conversations = {}, {}, {}
        self.endpoint = endpoint(SERVICE_TYPE, name)
        self.membership = Membership(identity, self.endpoint, self._say, is_signed, tell)
        self.last_sent = time.monotonic()
        self._write("hello", frame(HELLO, self._hello(), identity.id))

    def _write(self, what, data):
        self.last_sent = time.monotonic()
        if what not in self._shown:                  # prints one frame of each kind, for the protocol's worked example
            self._shown.add(what)
            tell("sent", what=what, bytes=data.hex())
        self._send(data)

    def _hello(self):
        relays_not = 0
        return (
            bytes([1, 1]) + struct.pack(">HI", self._payload_max, relays_not)
            + self.identity.epoch + self.identity.id + text_field(self.name)
        )

    def ping(self):
        self._write("ping", frame(PING, os.urandom(8), self.identity.id))

    def goodbye(self):
        self._write("goodbye", frame(GOODBYE, struct.pack(">BBH", SHUTTING_DOWN, 0, 0), self.identity.id))

    def announce(self):
        neighbour = self.peer_id + struct.pack(">HHB3x", self._cost, self._payload_max, self._bearer)
        self._advertise(TOPOLOGY, bytes([OWN_FLAGS, 1, 0, 0]) + neighbour)
        self._advertise(PROFILE, text_field(self.name) + text_field("causeway") + b"\1" + text_field("speaks=text"))
        info = text_field("from=paper")
        self._advertise(SERVICES, b"\1" + self.endpoint + text_field(SERVICE_TYPE) + struct.pack(">BH", 1, len(info)) + info)

    def _advertise(self, kind, body):
        self._sequences[kind] = self._sequences.get(kind, 0) + 1
        message = (
            struct.pack(">BBH", kind, 0, LIFETIME_SECONDS) + self.identity.epoch
            + struct.pack(">Q", self._sequences[kind]) + self.identity.point + body
        )
        payload = message + self.identity.sign(message)
        self._write(
            {TOPOLOGY: "topology", PROFILE: "profile", SERVICES: "services"}[kind],
            frame(ADVERTISEMENT, payload, self.identity.id),
        )

    def _identifier(self):
        self._counter += 1
        return self.identity.epoch[4:] + struct.pack(">I", self._counter)

    # --- conversations -------------------------------------------------------------------------------------------------

    def conversation(self, peer):
        """The conversation with a node, or None if the node has not advertised its topology."""
        if peer not in self._states:
            return None
        flags, epoch = self._states[peer]
        known = self._conversations.get(peer)
        if known is None or known.peer_epoch != epoch:
            def send(kind, payload):
                sealed = SEALED_FLAG if kind == SEALED else 0
                self._write({HANDSHAKE: "handshake", SEALED: "sealed"}[kind], frame(
                    kind, payload, self.identity.id, identifier=self._identifier(), destination=peer, flags=sealed,
                    priority=INTERACTIVE))

            def take(kind, message):
                if kind in KINDS:
                    self.membership.take(peer, kind, message)
                else:
                    tell("message", peer=peer.hex(), kind=kind, bytes=message.hex())

            known = Conversation(self.identity, peer, OWN_FLAGS, flags, epoch, send, tell, take)
            self._conversations[peer] = known
        return known

    def _say(self, peer, kind, message):
        conversation = self.conversation(peer)
        return conversation.say(kind, message) if conversation else lambda: False

    def say(self, text, name):
        """Send a text to the member on the node with this name. Returns false if there is no such connected member."""
        node = next((peer for peer, its_name in self._names.items() if its_name == name), None)
        to = next((address for address in self.membership.connected() if address[:16] == node), None)
        return to is not None and self.membership.say(text, to)

    def tick(self):
        self.membership.tick()
        for conversation in list(self._conversations.values()):
            conversation.tick()

    # --- received frames -----------------------------------------------------------------------------------------------

    def receive(self, data):
        self._stream += data
        while len(self._stream) >= FRAME.size:
            marker, kind, flags, ttl, priority, zero, length, _, source, _ = FRAME.unpack_from(self._stream)
            if marker != MARKER or not 1 <= length <= PAYLOAD_BYTES_MAX:
                raise ValueError(f"the stream lost its frames: {self._stream[:48].hex()}")
            if len(self._stream) < FRAME.size + length:
                return
            whole, self._stream = self._stream[: FRAME.size + length], self._stream[FRAME.size + length :]
            self._take(kind, source, whole[FRAME.size :], whole)

    def _take(self, kind, source, payload, whole):
        if kind == HELLO:
            self._take_hello(payload, whole)
        elif kind == PING:
            tell("ping", bytes=whole.hex())
            self._write("pong", frame(PONG, payload, self.identity.id))
        elif kind == PONG:
            tell("pong", bytes=whole.hex())
        elif kind == GOODBYE:
            reason, _, seconds = struct.unpack_from(">BBH", payload)
            tell("goodbye", reason=reason, seconds=seconds, bytes=whole.hex())
        elif kind == ADVERTISEMENT:
            self._take_advertisement(source, payload, whole)
        elif kind in (HANDSHAKE, SEALED) and (conversation := self.conversation(source)):
            if kind not in self._shown:
                self._shown.add(kind)
                tell({HANDSHAKE: "handshake", SEALED: "sealed-frame"}[kind], bytes=whole.hex())
            (conversation.take_handshake if kind == HANDSHAKE else conversation.take_sealed)(payload)
        else:
            tell("skipped", type=kind, payload_bytes=len(payload))

    def _take_hello(self, payload, whole):
        lowest, highest, payload_max, capabilities = struct.unpack_from(">BBHI", payload)
        epoch, claimed = payload[8:16], payload[16:32]
        name = payload[33 : 33 + payload[32]].decode()
        if claimed != self.peer_id:
            raise ValueError(f"the hello's id is {claimed.hex()}, the certificate's {self.peer_id.hex()}")
        tell("hello", name=name, id=claimed.hex(), epoch=epoch.hex(), versions=f"{lowest}-{highest}",
             payload_max=payload_max, capabilities=capabilities, bytes=whole.hex())
        self.announce()

    def _take_advertisement(self, source, payload, whole):
        message, signature = payload[:-64], payload[-64:]
        kind, _, lifetime = struct.unpack_from(">BBH", message)
        age = message[4:20]                          # epoch and sequence number; the greater is newer
        point, body = message[20:85], message[85:]
        if len(payload) > ADVERTISEMENT_BYTES_MAX or node_id(point) != source:
            raise ValueError(f"an advertisement that nobody should send: {whole.hex()}")
        if age <= self._newest.get((source, kind), b""):
            return
        if not is_signed(message, signature, point):
            raise ValueError(f"an advertisement with a wrong signature: {whole.hex()}")
        self._newest[source, kind] = age
        common = {"of": source.hex(), "lifetime": lifetime, "sequence": int.from_bytes(age[8:])}
        if kind == TOPOLOGY:
            self._states[source] = (body[0], age[:8])
            neighbours = []
            for number in range(body[1]):
                neighbour, cost, payload_max, bearer = struct.unpack_from(">16sHHB", body, 4 + 24 * number)
                neighbours.append(f"{neighbour.hex()}/{cost}/{payload_max}/{bearer}")
            tell("topology", **common, relays=body[0] & 1, neighbours=",".join(neighbours), bytes=whole.hex())
        elif kind == PROFILE:
            fields, rest = [], body
            for _ in range(2):
                fields.append(rest[1 : 1 + rest[0]].decode())
                rest = rest[1 + rest[0] :]
            pairs, count, rest = [], rest[0], rest[1:]
            for _ in range(count):
                pairs.append(rest[1 : 1 + rest[0]].decode())
                rest = rest[1 + rest[0] :]
            self._names[source] = fields[0]
            tell("profile", **common, name=fields[0], service=fields[1], info=",".join(pairs), bytes=whole.hex())


# --- the radio ---------------------------------------------------------------------------------------------------------


async def open_channel(path):
    """Find a box by its service, read the PSM of its channel from it, and open the channel."""
    from bumble import core, hci, l2cap
    from bumble.device import Device, Peer
    from bumble.transport.unix import open_unix_client_transport

    service = core.UUID(SERVICE)
    transport = await open_unix_client_transport(path)
    address = hci.Address(RANDOM_ADDRESS, hci.Address.RANDOM_DEVICE_ADDRESS)
    device = Device.with_hci("phone", address, transport.source, transport.sink)
    await device.power_on()
    found = asyncio.get_running_loop().create_future()

    def on_advertisement(advertisement):
        data = advertisement.data
        offered = data.get(core.AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS) or []
        if service not in offered:
            return
        hint = data.get(core.AdvertisingData.SERVICE_DATA_128_BIT_UUID)
        # The beginning of the box's id is in the scan response, which arrives as a separate report.
        if hint and not found.done():
            found.set_result((advertisement.address, hint[1]))

    device.on("advertisement", on_advertisement)
    await device.start_scanning(active=True)
    address, hint = await asyncio.wait_for(found, 60)
    await device.stop_scanning()
    tell("found", address=address, hint=hint.hex())
    connection = await device.connect(address, timeout=30)
    connection.on("disconnection", lambda reason: tell("disconnected", reason=reason))
    peer = Peer(connection)
    await peer.request_mtu(247)
    (remote_service,) = await peer.discover_service(service)
    (characteristic,) = await remote_service.discover_characteristics([core.UUID(PSM_CHARACTERISTIC)])
    (psm,) = struct.unpack("<H", await characteristic.read_value())
    tell("psm", value=psm)
    spec = l2cap.LeCreditBasedChannelSpec(psm=psm, mtu=2048, mps=245, max_credits=64)
    return await connection.create_l2cap_channel(spec=spec), hint


async def open_rfcomm(index):
    """Find a box by an inquiry, read the channel from its service records, and connect."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from lab import Management, classic

    service = bytes.fromhex(SERVICE.replace("-", ""))
    with Management() as kernel:
        own = kernel.address(index)
        address, response = classic.find(kernel, index, service)
        # The second UUID in the response is 8A1C0002-6F5B-4E0B followed by the beginning of the box's id. All UUIDs are
        # little-endian.
        start = response.index(bytes.fromhex("8a1c00026f5b4e0b")[::-1])
        hint = response[start - 8 : start][::-1]
        tell("found", address=address, hint=hint.hex())
        channel = classic.find_channel(own, address, service)
        tell("channel", value=channel)
        connected = classic.connect_rfcomm(own, address, channel)
    connected.setblocking(False)
    return Stream(*await asyncio.open_connection(sock=connected)), hint


class Stream:
    """A TCP or RFCOMM connection with the same interface as the Bluetooth channel that `open_channel` returns."""

    def __init__(self, reader, writer):
        self.write, self.drain, self.sink = writer.write, writer.drain, None
        self._pump = asyncio.ensure_future(self._take(reader))

    async def _take(self, reader):
        while data := await reader.read(65536):
            self.sink(data)


async def main(place, name, seconds="20", partner=None, text=None):
    identity = Identity()
    tell("self", id=identity.id.hex())
    if place.startswith("/"):
        medium, (channel, hint) = BLUETOOTH_LE, await open_channel(place)
    elif place.startswith("hci"):
        medium, (channel, hint) = BLUETOOTH_CLASSIC, await open_rfcomm(int(place[3:]))
    else:
        medium, hint = WIFI_DIRECT, b""
        channel = Stream(*await asyncio.open_connection(*place.rsplit(":", 1)))
    incoming = asyncio.Queue()
    channel.sink = lambda data: incoming.put_nowait(bytes(data))
    secure = SecureChannel(identity, channel.write)
    while not secure.is_established:
        rest = secure.receive(await asyncio.wait_for(incoming.get(), 10))
    peer_id = node_id(point_of(secure.peer_certificate))
    if not peer_id.startswith(hint):
        raise ValueError(f"{hint.hex()} was looked for, {peer_id.hex()} was found")
    tell("established", tls=secure.description, peer=peer_id.hex())
    client = Client(identity, name, peer_id, secure.send, medium)
    client.receive(rest)
    end, has_pinged = time.monotonic() + float(seconds), False
    while (now := time.monotonic()) < end:
        if not has_pinged and now > end - float(seconds) / 2:
            client.ping()
            has_pinged = True
        if text and client.say(text, partner):
            text = None
        client.tick()
        try:
            client.receive(secure.receive(await asyncio.wait_for(incoming.get(), 0.5)))
        except TimeoutError:
            pass
    if client.membership.connected():
        client.membership.leave(FAREWELL)
        for _ in range(10):
            client.tick()
            await asyncio.sleep(0.1)
    client.goodbye()
    await channel.drain()
    await asyncio.sleep(1)
    tell("done")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
