"""A client written only from docs/protocol.md, tested with a real daemon.

The client speaks TLS, the bypass and DTLS over TCP on the loopback interface, with the system's OpenSSL. It shares no
code with the firmware. The tests include the error cases of docs/protocol.md."""
# seconds: 40
import concurrent.futures
import hashlib
import hmac
import pathlib
import re
import socket
import struct
import tempfile
import time
import unittest

import causeway
from bypass import LABEL, VERSIONS, Stream, sealed_unit, tag_of
from client import Identity, frame, is_signed, node_id, point_of, text_field
from conversation import ACKNOWLEDGEMENT_HEADER, SEALED_HELLO, SEGMENT_HEADER, Conversation
from daemons import Daemon, wait
from membership import KINDS, Membership, endpoint

PAPER = pathlib.Path(__file__).resolve().parents[3] / "docs/protocol.md"
HELLO, PING, PONG, GOODBYE, ADVERTISEMENT, HANDSHAKE, SEALED = 1, 2, 3, 4, 16, 36, 37
TOPOLOGY, PROFILE = 1, 2
UNASSIGNED = 1
ENDPOINT = endpoint("story", "stranger")
RELAYS, BYPASS = 1, 8
LOOPBACK = 5
PAYLOAD_MAX = 16640
REQUIRED = 0


class Node:
    """The client's node. Its frame identifiers and sequence numbers continue from one link to the next."""

    def __init__(self, name):
        self.name, self.identity, self.counter, self.sequences = name, Identity(), 0, {}

    @property
    def id(self):
        return self.identity.id

    def hello(self, capabilities, **changes):
        """A hello frame. `changes` replaces some of its fields by wrong values."""
        fields = {"lowest": 1, "highest": 1, "id": self.id, "payload_max": PAYLOAD_MAX, **changes}
        return frame(HELLO, struct.pack(">BBHI", fields["lowest"], fields["highest"], fields["payload_max"], capabilities)
                     + self.identity.epoch + fields["id"] + text_field(self.name), self.id)

    def advertisement(self, kind, body):
        self.sequences[kind] = self.sequences.get(kind, 0) + 1
        message = (struct.pack(">BBH", kind, 0, 600) + self.identity.epoch + struct.pack(">Q", self.sequences[kind])
                   + self.identity.point + body)
        return frame(ADVERTISEMENT, message + self.identity.sign(message), self.id)

    def identifier(self):
        self.counter += 1
        return self.identity.epoch[4:] + struct.pack(">I", self.counter)


class Link:
    """A link of the client's node with the box. `wait_for` handles frames until a predicate is true."""

    def __init__(self, node, port, version="TLSv1.3", capabilities=BYPASS):
        self.node, self.stream = node, Stream(port, node.identity, version)
        self.box = node_id(point_of(self.stream.certificate))
        self.frames, self.advertisements, self.beside, self.conversation = [], {}, 0, None
        self.told, self.membership = [], None
        self.stream.send(node.hello(capabilities))
        self.hello = self.wait_for(lambda: self.of_type(HELLO))[0]
        announced = struct.unpack_from(">I", self.hello, 48 + 4)[0]
        self.stream.may_bypass = bool(announced & capabilities & BYPASS)

    def of_type(self, kind):
        return [each for each in self.frames if each[1] == kind]

    def wait_for(self, predicate, seconds=10):
        end = time.monotonic() + seconds
        while not (result := predicate()):
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s; types that came: {[each[1] for each in self.frames]}")
            for each, came_beside in self.stream.receive():
                self._take(each, came_beside)
            if self.conversation:
                self.membership.tick()
                self.conversation.tick()
        return result

    def announce(self):
        """Advertise the link to the box and the profile of the node."""
        link = self.box + struct.pack(">HHB3x", 1, PAYLOAD_MAX, LOOPBACK)
        self.stream.send(self.node.advertisement(TOPOLOGY, bytes([REQUIRED, 1, 0, 0]) + link))
        self.stream.send(self.node.advertisement(
            PROFILE, text_field(self.node.name) + text_field("causeway") + b"\1" + text_field("speaks=text")))

    def converse(self):
        """Begin a sealed conversation with the box itself, once the box has advertised its links. Returns the
        conversation."""
        body = self.wait_for(lambda: self.advertisements.get((self.box, TOPOLOGY)))

        def send(kind, payload):
            self.stream.send(frame(
                kind, payload, self.node.id, self.node.identifier(), destination=self.box, flags=int(kind == SEALED),
                priority=2))

        def tell(word, **pairs):
            self.told.append((word, pairs))

        def take(kind, message):
            if kind in KINDS:
                self.membership.take(self.box, kind, message)
            else:
                tell("message", kind=kind, bytes=message.hex())

        self.conversation = Conversation(
            self.node.identity, self.box, REQUIRED, body[85], body[4:12], send, tell, take)
        self.membership = Membership(
            self.node.identity, ENDPOINT, lambda node, kind, message: self.conversation.say(kind, message), is_signed, tell)
        return self.conversation

    def wait_told(self, word, seconds=10):
        return self.wait_for(lambda: [pairs for each, pairs in self.told if each == word], seconds)

    def close(self):
        self.stream.close()

    def _take(self, each, came_beside):
        marker, kind, flags, ttl, priority, zero, length = struct.unpack_from(">BBBBBBH", each)
        assert marker == 0x81 and ttl > 0 and zero == 0 and priority <= 3 and length == len(each) - 48
        assert bool(flags & 1) == (kind == SEALED)
        source, payload = each[24:40], each[48:]
        self.frames.append(each)
        self.beside += came_beside
        if kind == PING:
            self.stream.send(frame(PONG, payload, self.node.id))
        elif kind == ADVERTISEMENT:
            message, signature, point = payload[:-64], payload[-64:], payload[20:85]
            assert node_id(point) == source and is_signed(message, signature, point)
            self.advertisements[source, payload[0]] = message
        elif kind in (HANDSHAKE, SEALED) and self.conversation:
            (self.conversation.take_handshake if kind == HANDSHAKE else self.conversation.take_sealed)(payload)


def exported(secret):
    """The exporter value of RFC 8446, section 7.5, with SHA-256. Its 32 bytes are one block of HKDF-Expand (RFC
    5869)."""
    def expand_label(secret, label, context):
        label = b"tls13 " + label
        info = struct.pack(">HB", 32, len(label)) + label + bytes([len(context)]) + context
        return hmac.digest(secret, info + b"\1", "sha256")

    empty = hashlib.sha256(b"").digest()
    return expand_label(expand_label(secret, LABEL, empty), b"exporter", empty)


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory(prefix="causeway-")
        cls.box = Daemon(cls.root.name, "box").start()
        cls.numbers = iter(range(100))

    @classmethod
    def tearDownClass(cls):
        cls.box.stop()
        cls.root.cleanup()

    def node(self):
        return Node(f"stranger {next(self.numbers)}")

    def link(self, node=None, **options):
        link = Link(node or self.node(), self.box.port, **options)
        self.addCleanup(link.close)
        return link

    # A link

    def test_hello_ping_advertisements_and_goodbye_over_both_versions_of_tls(self):
        for version in VERSIONS:
            link = self.link(version=version)
            self.assertEqual(link.stream.version, version)
            self.assertEqual(link.box.hex(), self.box.id)
            lowest, highest, payload_max, capabilities = struct.unpack_from(">BBHI", link.hello, 48)
            self.assertEqual((lowest, highest, payload_max, capabilities), (1, 1, PAYLOAD_MAX, RELAYS | BYPASS))
            self.assertEqual(link.hello[48 + 16 : 48 + 32], link.box)
            link.announce()
            link.stream.send(frame(PING, b"12345678", link.node.id))
            self.assertEqual(link.wait_for(lambda: link.of_type(PONG))[0][48:], b"12345678")
            link.wait_for(lambda: link.node.id in link.advertisements.get((link.box, TOPOLOGY), b""))
            wait("the client is a peer", lambda: link.node.name in [peer["name"] for peer in self.box.status["peers"]])
            link.stream.send(frame(GOODBYE, bytes([1, 0, 0, 0]), link.node.id))
            self.assertEqual(link.stream.until_end()[0], "close_notify")

    def test_who_reconnects_hears_its_own_advertisements_and_goes_on_counting(self):
        node = self.node()
        link = self.link(node)
        link.announce()
        link.wait_for(lambda: node.id in link.advertisements.get((link.box, TOPOLOGY), b""))
        link.close()
        again = self.link(node)
        own = again.wait_for(lambda: again.advertisements.get((node.id, TOPOLOGY)))
        self.assertEqual(int.from_bytes(own[12:20]), 1)
        again.announce()
        self.assertEqual(node.sequences, {TOPOLOGY: 2, PROFILE: 2})
        again.wait_for(lambda: node.id in again.advertisements.get((again.box, TOPOLOGY), b""))

    def test_a_frame_with_ttl_0_is_dropped_whatever_its_type(self):
        link = self.link()
        ping = bytearray(frame(PING, b"12345678", link.node.id))
        ping[3] = 0
        link.stream.send(bytes(ping))
        link.stream.send(frame(PING, b"87654321", link.node.id))
        self.assertEqual(link.wait_for(lambda: link.of_type(PONG))[0][48:], b"87654321")

    def test_a_hello_that_is_wrong_is_answered_with_a_goodbye_that_says_how(self):
        for reason, changes in ((4, {"payload_max": 2047}), (5, {"id": bytes(15) + b"\1"}), (6, {"lowest": 2, "highest": 3})):
            node = self.node()
            stream = Stream(self.box.port, node.identity)
            self.addCleanup(stream.close)
            stream.send(node.hello(BYPASS, **changes))
            how, frames = stream.until_end()
            self.assertEqual((how, frames[-1][1], frames[-1][48:]), ("close_notify", GOODBYE, bytes([reason, 0, 0, 0])))

    def test_new_keys_in_the_middle_of_tls_end_the_link(self):
        link = self.link()
        link.stream.update_keys()
        link.stream.until_end()

    # Admission

    def refused(self, first):
        with socket.create_connection(("127.0.0.1", self.box.port), timeout=10) as stream:
            stream.sendall(first)
            return stream.recv(100)

    def test_what_is_no_tls_gets_the_alert_80_in_the_clear(self):
        self.assertEqual(self.refused(b"GET / HTTP/1.1\r\n\r\n"), bytes.fromhex("15030300020250"))

    def test_the_fifth_stream_of_an_address_without_a_proven_key_gets_it_too(self):
        waiting = [socket.create_connection(("127.0.0.1", self.box.port)) for _ in range(4)]
        for each in waiting:
            self.addCleanup(each.close)
        with socket.create_connection(("127.0.0.1", self.box.port), timeout=10) as fifth:
            self.assertEqual(fifth.recv(100), bytes.fromhex("15030300020250"))
        for each in waiting:
            each.close()
        wait("their places are free", lambda: self.refused(b"GET / HTTP/1.1\r\n\r\n"), 10)

    # The bypass

    def test_a_session_with_an_application_of_the_box_beside_tls(self):
        application = causeway.Node.connect("application", f"{self.box.directory}/run/api.sock")
        self.addCleanup(application.close)
        for version in VERSIONS:
            link = self.link(version=version)
            link.announce()
            link.converse()
            link.wait_for(lambda: link.node.name in [peer["name"] for peer in self.box.status["peers"]])
            session = application.open_session("story")
            sent = session.invite(causeway.Address(link.node.id, int.from_bytes(ENDPOINT)), b"come in")
            link.wait_for(link.membership.connected, 20)
            self.assertEqual(link.wait_told("invited")[0]["context"], "come in")
            self.assertEqual(self.beside(link, lambda: sent.wait(10)), (causeway.Outcome.CONNECTED, ""))
            link.membership.say("beside the records", link.membership.connected()[0])
            self.assertEqual(self.beside(link, lambda: self.next_of(session, causeway.Message)).data, b"beside the records")
            results = self.beside(link, lambda: session.send(b"and back", timeout=10))
            self.assertEqual(list(results.values()), [causeway.Result.DELIVERED])
            self.assertEqual(link.wait_told("text")[0]["text"], "and back")
            link.membership.leave("bye")
            left = self.beside(link, lambda: self.next_of(session, causeway.Member))
            self.assertEqual((left.state, left.text), (causeway.State.LEFT, "bye"))
            self.assertGreater(link.stream.sequence, 0)
            self.assertEqual(link.beside, len(link.of_type(SEALED)))
            self.assertGreater(link.beside, 0)

    def beside(self, link, work):
        """Run `work` in a thread and serve the link meanwhile. Returns the result of `work`."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            result = pool.submit(work)
            link.wait_for(result.done, 20)
            return result.result()

    def next_of(self, session, kind):
        while not isinstance(event := session.next(15), kind):
            pass
        return event

    def sealed_frame(self, link, **changes):
        return frame(SEALED, bytes(64), link.node.id, link.node.identifier(), destination=link.box,
                     **{"flags": 1, "priority": 2, **changes})

    def test_what_is_wrong_beside_the_records_ends_the_link_by_an_alert(self):
        def altered(link):
            unit = bytearray(sealed_unit(link.stream.sending_key, 1, self.sealed_frame(link)))
            unit[8] ^= 1
            return bytes(unit)

        def repeated(link):
            return 2 * sealed_unit(link.stream.sending_key, 7, self.sealed_frame(link))

        def empty(link):
            header = self.sealed_frame(link)[:48]
            return sealed_unit(link.stream.sending_key, 1, header[:6] + bytes(2) + header[8:])

        for wrong, capabilities, alert in (
                (altered, BYPASS, 20), (repeated, BYPASS, 47), (empty, BYPASS, 10), (lambda link: b"\x80", BYPASS, 10),
                (lambda link: sealed_unit(link.stream.sending_key, 1, self.sealed_frame(link)), 0, 10)):
            link = self.link(capabilities=capabilities)
            link.stream.send_raw(wrong(link))
            self.assertEqual(link.stream.until_end()[0], f"alert {alert}")

    def test_a_sealed_frame_before_the_hello_ends_the_stream(self):
        node = self.node()
        stream = Stream(self.box.port, node.identity)
        self.addCleanup(stream.close)
        sealed = frame(SEALED, bytes(64), node.id, node.identifier(), destination=bytes(15) + b"\1", flags=1, priority=2)
        stream.send_raw(sealed_unit(stream.sending_key, 1, sealed))
        self.assertEqual(stream.until_end()[0], "alert 10")

    def test_a_gap_in_the_link_sequence_and_a_frame_without_the_flag_are_borne(self):
        link = self.link()
        link.stream.send_raw(sealed_unit(link.stream.sending_key, 9, self.sealed_frame(link)))
        link.stream.send_raw(sealed_unit(link.stream.sending_key, 1 << 40, self.sealed_frame(link, flags=0)))
        link.stream.send(frame(PING, b"12345678", link.node.id))
        self.assertEqual(link.wait_for(lambda: link.of_type(PONG))[0][48:], b"12345678")

    def test_the_papers_example_of_the_bypass(self):
        example = PAPER.read_text().partition("**Bypass.**")[2]
        self.assertTrue(LABEL.decode() in PAPER.read_text(), "the label")
        fields = dict(re.findall(r"^    ([a-z ]+?) {2,}([0-9a-f]+)$", example, re.M))
        header, keys = bytes.fromhex(fields["header"]), bytes.fromhex(fields["keying material"])
        self.assertEqual(keys, exported(bytes.fromhex(fields["exporter master secret"])))
        self.assertEqual(fields["client tag"], tag_of(keys[:16], 1, header).hex())
        self.assertEqual(fields["server tag"], tag_of(keys[16:], 1, header).hex())

    # Messages

    def test_the_papers_example_of_what_is_inside_a_session(self):
        example = PAPER.read_text().partition("**Inside a session**")[2].partition("**Bypass.**")[0]
        hexes = re.findall(r"^    ([0-9a-f]+) ", example, re.M)
        phone, dave = bytes.fromhex("00000001ac55e90b"), bytes.fromhex("00000001a84fda73")
        text, clock = struct.pack(">IB", 2, UNASSIGNED) + b"hi", 0x0badcafe
        self.assertEqual(bytes.fromhex("".join(hexes)), b"".join((
            bytes([1]), SEALED_HELLO.pack(1, 2, 0, 0, REQUIRED, REQUIRED, 0, phone, dave),
            bytes([32]), SEGMENT_HEADER.pack(dave, phone, 0, 0, 0, clock, 0), text,
            bytes([33]), ACKNOWLEDGEMENT_HEADER.pack(phone, dave, 0, 0, 0, clock, len(text), 73728))))

    def test_a_message_announced_longer_than_any_is_answered_with_a_reset_to_the_next_channel_epoch(self):
        link = self.link()
        link.announce()
        link.converse().say(UNASSIGNED, b"too long", length=65537)
        # The box answers each transmission of the message with a reset. All resets name the same two epochs.
        resets = {(int(reset["meant"], 16), int(reset["current"], 16)) for reset in link.wait_told("reset")}
        box = int.from_bytes(link.advertisements[link.box, TOPOLOGY][4:12])
        self.assertEqual(resets, {(box, box + 1)})

    def test_a_message_of_a_kind_that_is_not_assigned_is_taken_and_keeps_up_nothing(self):
        link = self.link()
        link.announce()
        # This test sends more unassigned messages than a lane's buffer holds, so the box must have discarded the first
        # messages.
        ends = [link.converse().say(UNASSIGNED, bytes(1000))]
        for _ in range(149):
            link.wait_for(ends[-1])
            ends.append(link.conversation.say(UNASSIGNED, bytes(1000)))
        link.wait_for(ends[-1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
