"""An application that offers or receives files. It follows docs/resources.md, or violates it for a test."""
import hashlib
import os
import struct
import time

from causeway import IncomingStream, Member, Outcome, State

OFFER, ANSWER, MANIFEST, READY, BEGIN, BYTES, ROOT, VERDICT, CANCEL = 1, 3, 4, 6, 7, 8, 9, 11, 14
ACCEPTED, DECLINED = 0, 2
STORED, DIFFERS = 0, 1


def record(kind, *fields):
    body = bytes([kind]) + b"".join(fields)
    return struct.pack(">I", len(body)) + body


def name(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return bytes([len(raw)]) + raw


def manifest(path, size):
    """The manifest of one file. `path` contains the names of its folders and its own name."""
    return bytes([0, len(path)]) + b"".join(map(name, path)) + struct.pack(">Q", size)


def folder(told, count):
    """The manifest of a folder with `count` files of one byte. The names of the files have the greatest length with
    which 65,000 files are within the limit of a manifest."""
    files = (bytes([0, 2]) + name(told) + name(f"{number:06d}".ljust(112, "n")) + struct.pack(">Q", 1) for number in range(count))
    return bytes([1, 1]) + name(told) + b"".join(files)


def leaf(data):
    """The root of the hash tree of a file that has at most one leaf."""
    return hashlib.sha256(b"\0" + data).digest()


class Records:
    """The records that arrive on a stream."""

    def __init__(self, stream):
        self.stream, self.data = stream, b""

    def next(self, kind):
        """Read records up to the next one of this kind. Returns its fields."""
        while True:
            while len(self.data) < 4 or len(self.data) < 4 + int.from_bytes(self.data[:4]):
                more = self.stream.read(20)
                assert more, f"the stream ended without a record {kind}"
                self.data += more
            end = 4 + int.from_bytes(self.data[:4])
            one, self.data = self.data[4:end], self.data[end:]
            if one[0] == kind:
                return one[1:]


def next_stream(session):
    """Wait for the next stream that a member opens, for at most 20 s."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if isinstance(event := session.next(20), IncomingStream):
            return event
    raise AssertionError("no stream came within 20 s")


class Offer:
    """An offer of a file to a receiver. The values in the offer may differ from what is sent."""

    def __init__(self, node, service, told, path, size, files=0, before=None):
        """`told` is the name in the offer, and `path` the names in the manifest. With `files`, the offer is a folder
        `told` with that many files. With `before`, the offer uses the session of that earlier offer."""
        self.session = before.session if before else node.open_session(service)
        address = self.address = before.address if before else self._come_to(service, node)
        self.manifest = folder(told, files) if files else manifest(path, size)
        counts = (files + 1, files, files) if files else (1, 1, size)
        digest = hashlib.sha256(self.manifest).digest()
        attempt = os.urandom(8).hex()
        self.stream = self.session.open_stream(f"causeway:resource:{digest[:8].hex()}:{attempt}", address)
        self.send(OFFER, struct.pack(">H", 1), digest, struct.pack(">IIIQ", len(self.manifest), *counts), name(told))
        answer = next_stream(self.session)
        assert answer.name == f"causeway:answer:{attempt}", answer.name
        self.records = Records(answer)

    def _come_to(self, service, node):
        """Invite an application that offers the service, and return its address. Tries again if the invitation fails,
        because the service of an application that restarts may be found although the application is absent."""
        address = next(each.address for each in node.browse(service) if each.kind == "found")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            outcome, why = self.session.invite(address).wait(20)
            if outcome == Outcome.CONNECTED:
                return address
            assert outcome == Outcome.NO_SERVICE, (outcome, why)
            time.sleep(0.05)
        raise AssertionError(f"nobody is at {address}")

    def send(self, kind, *fields):
        self.stream.write(record(kind, *fields), timeout=20)

    def send_manifest(self):
        """Wait until the offer is accepted, and send the manifest."""
        assert self.records.next(ANSWER)[0] == ACCEPTED
        for start in range(0, len(self.manifest), 32_768):
            self.send(MANIFEST, self.manifest[start:start + 32_768])
        self.records.next(READY)

    def send_file(self, data, root):
        """Wait until the offer is accepted, and send the manifest and the file. Returns the receiver's verdict."""
        self.send_manifest()
        return self.send_bytes(data, root)

    def send_bytes(self, data, root):
        """Send the file after the manifest. Returns the receiver's verdict."""
        self.send(BEGIN, struct.pack(">IQ", 0, 0))
        self.send(BYTES, data)
        self.send(ROOT, struct.pack(">I", 0), root)
        return self.records.next(VERDICT)[4]


def answer_offer(invitations, session, *records):
    """Accept the next invitation, read the offer that follows, and answer it with these records."""
    invitations.next(20).accept(session)
    offered = next_stream(session)
    Records(offered).next(OFFER)
    stream = session.open_stream("causeway:answer:" + offered.name.rsplit(":")[-1], offered.sender)
    stream.write(b"".join(records), timeout=20)


def wait_member(session):
    """Wait for the first member that is connected. Returns its address."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        event = session.next(20)
        if isinstance(event, Member) and event.state == State.CONNECTED:
            return event.address
    raise AssertionError("nobody came within 20 s")
