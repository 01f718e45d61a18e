"""The local API as applications use it, tested with the causeway binary.

Two real daemons run on the loopback interface. Their clients are written from docs/local-api.md
(Examples/python/causeway.py)."""
# seconds: 75
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import causeway
import session_member
from causeway import (Address, CausewayError, Code, Ended, IncomingStream, Member, Message, Mode, Node, Outcome, Question, Result,
                      Room, State, StreamEnd, StreamError)
from daemons import Daemon, wait
from local_api import following, path

HERE = os.path.dirname(os.path.abspath(__file__))
LONG = 64_000


class ApplicationsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory(prefix="causeway-")
        cls.a = Daemon(cls.root.name, "a", extra="[applications]\nservice-groups = closed:54321")
        cls.b = Daemon(cls.root.name, "b", [cls.a])
        for daemon in (cls.a, cls.b):
            daemon.start()

    @classmethod
    def tearDownClass(cls):
        for daemon in (cls.a, cls.b):
            daemon.stop()
        cls.root.cleanup()

    def connect(self, daemon, name):
        node = Node.connect(name, path(daemon))
        self.addCleanup(node.close)
        return node

    def raw(self, daemon):
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(stream.close)
        stream.connect(path(daemon))
        stream.settimeout(20)
        return stream

    def found(self, node, name):
        """The address at which the application `name` offers the service “story”."""
        browse = node.browse("story")
        while True:
            sighting = browse.next(timeout=20)
            if sighting.kind == "found" and sighting.info == {"name": name}:
                browse.close()
                return sighting.address

    def joined(self, name):
        """Connect two applications, one on each box, in one session. Returns both sessions and the second one's
        address."""
        a, b = self.connect(self.a, name), self.connect(self.b, name)
        service = b.advertise("story", {"name": name})
        ours, theirs = a.open_session("story"), b.open_session("story")
        address = self.found(a, name)
        self.assertEqual((service.address, theirs.address), (address, address))
        sent = ours.invite(address)
        service.next(timeout=20).accept(theirs)
        self.assertEqual(sent.wait(20), (Outcome.CONNECTED, ""))
        following(theirs, Member, state=State.CONNECTED)
        service.close()
        return ours, theirs, address

    # The protocol

    def test_the_client_writes_the_golden_requests(self):
        vectors = {}
        with open(os.path.join(HERE, "../../LocalAPITests/vectors.txt")) as file:
            for line in file:
                if not line.startswith("#"):
                    name, digits = line.split()
                    vectors[name] = bytes.fromhex(digits)
        to = Address(bytes.fromhex("00112233445566778899aabbccddeeff"), 0x0A0B0C0D)
        for name, packet in {
            "advertise": causeway.packet(2, 2, causeway.text("photos"), b"\2", causeway.text("room=4"), causeway.text("hq")),
            "browse": causeway.browse(3, "photos"),
            "open": causeway.open_session(4, "photos", 1, 16),
            "open-unsealed": causeway.open_session(4, "photos", 2, 8),
            "close": causeway.close(5, 3),
            "invite": causeway.invite(6, 4, to, 20_000, b"hi"),
            "cancel": causeway.cancel(7, 6),
            "accept": causeway.answer(8, 77, 4, ""),
            "decline": causeway.answer(8, 77, 0, "later"),
            "leave": causeway.leave(9, 4, "bye"),
            "send-all": causeway.send(10, 4, Mode.RELIABLE, [], b"hello"),
            "send-one": causeway.send(10, 4, Mode.BULK, [to], b"\0\xff"),
            "send-unreliable": causeway.send(10, 4, Mode.UNRELIABLE, [to, to], b""),
            "window": causeway.window(4, 262_144),
            "gather": causeway.gather(12, 4),
            "stream": causeway.open_stream(13, 4, to, "log"),
            "take": causeway.take(14, 99, 1, 65_536),
            "refuse": causeway.take(15, 99, 0, 0),
            "write": causeway.write(13, b"hello"),
            "stream-window": causeway.stream_window(14, 131_072),
            "finish": causeway.finish(16, 13),
            "reset": causeway.reset(17, 14),
            "eject": causeway.eject(18, 4, to, "out"),
            "decide": causeway.decide(19, 4, to, True),
            "connect": causeway.connect(20, 4, to, 30_000),
        }.items():
            self.assertEqual(packet, vectors["request-" + name], name)

    def test_a_client_of_the_first_version_is_served_as_ever(self):
        node = self.connect(self.b, "new")
        session = node.open_session("story")
        service = node.advertise("story", {"name": "new"})
        known = {"a": self.connect(self.a, "id").id, "b": node.id}
        known["b-endpoint"] = struct.pack(">I", self.found(self.connect(self.a, "seeker"), "new").endpoint)
        stream = self.raw(self.a)
        packets = stream.makefile("rb")
        self.addCleanup(packets.close)

        def peer():
            service.next(timeout=20).accept(session)
            following(session, Message)
            following(session, Message)
            old = session.connected()[0]
            # The old client does not know streams. This attempt to open a stream must not disturb the client.
            try:
                session.open_stream("new", old)
            except CausewayError:
                pass
            session.send(b"back", [old], timeout=20)

        thread, passed = threading.Thread(target=peer), []
        thread.start()
        with open(os.path.join(HERE, "first_version.txt")) as file:
            for line in file:
                if line.startswith("#"):
                    continue
                digits = re.sub(r"{(.*?)}", lambda name: known[name[1]].hex(), line[1:])
                digits = digits.replace(" ", "").strip()
                if line[0] == ">":
                    request = bytes.fromhex(digits)
                    stream.sendall(struct.pack(">I", len(request)) + request)
                    continue
                while not any(re.match(digits, packet) for packet in passed):
                    try:
                        passed.append(packets.read(int.from_bytes(packets.read(4))).hex())
                    except TimeoutError:
                        self.fail(f"{digits} does not come, but {passed}")
                passed.remove(next(packet for packet in passed if re.match(digits, packet)))
        thread.join(20)

    def test_an_unknown_request_is_unsupported_and_a_wrong_length_ends_the_connection(self):
        stream = self.raw(self.a)
        answers = stream.makefile("rb")
        self.addCleanup(answers.close)
        stream.sendall(causeway.hello(1, "raw"))
        welcome = answers.read(int.from_bytes(answers.read(4)))
        self.assertEqual(welcome[:5], b"\x81\0\0\0\1")
        # A packet arrives one byte at a time. After this packet, two packets arrive in one write.
        for byte in causeway.packet(99, 2, b"later"):
            stream.sendall(bytes([byte]))
        stream.sendall(causeway.packet(99, 3) + causeway.packet(99, 4))
        for number in (2, 3, 4):
            self.assertEqual(answers.read(11), struct.pack(">IBIBB", 7, 128, number, Code.UNSUPPORTED, 0))
        stream.sendall(struct.pack(">I", 66_561))
        self.assertEqual(answers.read()[4:10], struct.pack(">BIB", 128, 0, Code.INVALID))

    def test_a_type_that_is_granted_to_a_group_is_refused_to_others(self):
        with self.assertRaises(CausewayError) as refused:
            self.connect(self.a, "group").browse("closed")
        self.assertEqual(refused.exception.code, Code.NOT_ALLOWED)
        self.connect(self.b, "group").browse("closed")

    def test_the_socket_is_for_its_user_and_group_and_comes_back_when_it_was_removed(self):
        self.assertEqual(os.stat(path(self.b)).st_mode & 0o777, 0o660)
        os.unlink(path(self.b))
        wait("the socket is there again", lambda: os.path.exists(path(self.b)), 90)
        self.connect(self.b, "again")

    # Sessions

    def test_who_advertises_is_found_changed_invited_and_lost(self):
        a, b = self.connect(self.a, "one"), self.connect(self.b, "one")
        service = b.advertise("photos", {"room": "4"})
        browse = a.browse("photos")
        kinds = []
        while (sighting := browse.next(timeout=20)).kind != "found":
            kinds.append(sighting.kind)
        self.assertEqual((sighting.info, sighting.peer.name), ({"room": "4"}, "b"))
        while "allTold" not in kinds:
            kinds.append(browse.next(timeout=20).kind)
        service.update({"room": "5"})
        changed = browse.next(timeout=20)
        self.assertEqual((changed.kind, changed.address, changed.info), ("changed", sighting.address, {"room": "5"}))

        ours = a.open_session("photos")
        sent = ours.invite(sighting.address, b"secret", timeout=20)
        invitation = service.next(timeout=20)
        self.assertEqual((invitation.context, invitation.peer.name, invitation.member_count), (b"secret", "a", 1))
        invitation.decline("not now")
        self.assertEqual(sent.wait(20), (Outcome.DECLINED, "not now"))

        sent = ours.invite(sighting.address)
        cancelled = service.next(timeout=20)
        sent.cancel()
        self.assertEqual(cancelled.wait(20)[0], Outcome.CANCELLED)

        service.close()
        self.assertEqual(browse.next(timeout=20).kind, "lost")

    def test_a_node_that_moves_to_another_reference_is_not_told_as_lost(self):
        browse = causeway.Browse(None, 1)

        def services(reference, id, *endpoints):
            entries = [struct.pack(">I", endpoint) + causeway.text("story") + b"\0" for endpoint in endpoints]
            browse._services(causeway.Reader(
                struct.pack(">H", reference) + id + b"\1\0\0" + bytes([len(entries)])
                + b"".join(struct.pack(">H", len(entry)) + entry for entry in entries)))
            return [browse.next(timeout=1).kind for _ in range(browse._queue.qsize())]

        one, two = bytes(15) + b"\1", bytes(15) + b"\2"
        self.assertEqual(services(0, one, 7), ["found"])
        self.assertEqual(services(1, two, 8, 9), ["found", "found"])
        self.assertEqual(services(0, two, 8), ["lost", "lost"])
        self.assertEqual(services(1, bytes(16)), [])
        self.assertEqual(services(0, bytes(16)), ["lost"])

    def test_messages_go_both_ways_with_a_result_and_who_leaves_says_why(self):
        ours, theirs, address = self.joined("two")
        self.assertEqual(ours.id, theirs.id)
        for data in (b"hello", b"", bytes(65_000)):
            self.assertEqual(ours.send(data, timeout=20), {address: Result.DELIVERED})
            self.assertEqual(following(theirs, Message).data, data)
        sender = following(ours, Member, state=State.CONNECTED).address
        self.assertEqual(sender, address)
        own = theirs.connected()[0]
        self.assertEqual(theirs.send(b"back", [own], Mode.BULK, timeout=20), {own: Result.DELIVERED})
        self.assertEqual(following(ours, Message), Message(address, b"back", True))
        self.assertEqual(ours.send(b"now", mode=Mode.UNRELIABLE, timeout=20), {})
        self.assertEqual(following(theirs, Message).is_reliable, False)
        theirs.leave("tired")
        self.assertIsNotNone(following(theirs, Ended))
        self.assertIsNone(theirs.next(timeout=20))
        left = following(ours, Member, state=State.LEFT)
        self.assertEqual((left.reason, left.text), (1, "tired"))
        self.assertEqual(ours.send(b"to nobody", timeout=20), {})
        with self.assertRaises(CausewayError) as refused:
            theirs.send(b"late", timeout=20)
        self.assertEqual(refused.exception.code, Code.UNKNOWN)

    def test_a_thousand_messages_arrive_in_order_as_fast_as_they_are_taken(self):
        ours, theirs, address = self.joined("order")
        heard = []

        def read():
            while len(heard) < 1000:
                heard.append(int.from_bytes(following(theirs, Message, 60).data[:4]))

        reader = threading.Thread(target=read)
        reader.start()
        for number in range(1000):
            while ours.send(number.to_bytes(4) * 500, timeout=20)[address] == Result.NO_ROOM:
                following(ours, Room)
        reader.join(60)
        self.assertEqual(heard, list(range(1000)))

    def test_unreliable_messages_arrive_whole_each_at_most_once(self):
        ours, theirs, _ = self.joined("unreliable")
        for number in range(100):
            self.assertEqual(ours.send(b"%03d" % number * 300, mode=Mode.UNRELIABLE, timeout=20), {})
        ours.send(b"end", timeout=20)
        numbers = []
        while (message := following(theirs, Message)).data != b"end":
            self.assertFalse(message.is_reliable)
            self.assertEqual(message.data, message.data[:3] * 300)
            numbers.append(int(message.data[:3]))
        self.assertEqual(len(numbers), len(set(numbers)))
        self.assertGreater(len(numbers), 50)

    def test_an_unreliable_message_that_does_not_fit_every_frame_is_refused(self):
        ours, theirs, _ = self.joined("long")
        ours.send(bytes(1900), mode=Mode.UNRELIABLE, timeout=20)
        self.assertEqual(following(theirs, Message).data, bytes(1900))
        with self.assertRaises(CausewayError) as refused:
            ours.send(bytes(1901), mode=Mode.UNRELIABLE, timeout=20)
        self.assertEqual((refused.exception.code, str(refused.exception)), (Code.INVALID, "an unreliable message has at most 1900 bytes"))

    def test_a_stopped_application_holds_up_no_other_and_goes_on_where_it_stopped(self):
        ours, theirs, y = self.joined("three")
        process = subprocess.Popen([sys.executable, session_member.__file__, path(self.b), "stopped"],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        z = self.found(ours._node, "stopped")
        self.assertEqual(ours.invite(z).wait(20)[0], Outcome.CONNECTED)
        following(theirs, Member, state=State.CONNECTED, address=z)
        process.send_signal(signal.SIGSTOP)

        # The deadline is longer than the time after which the daemon closes silent clients of the control socket.
        end, sent, delivered = time.monotonic() + 35, 0, []
        while time.monotonic() < end:
            results = ours.send(sent.to_bytes(8) * 1250, timeout=5)
            self.assertEqual(results[y], Result.DELIVERED)
            if results[z] == Result.DELIVERED:
                delivered.append(sent)
            self.assertEqual(following(theirs, Message, 5).data[:8], sent.to_bytes(8))
            theirs.send(b"yes", ours_only := [a for a in theirs.connected() if a != z], timeout=5)
            self.assertEqual(len(ours_only), 1)
            following(ours, Message, 5)
            sent += 1
            time.sleep(0.1)
        self.assertGreater(sent, len(delivered))
        # The daemon holds 96 KiB of unread messages for a client, and lends it 64 KiB more once. The client's socket
        # buffers 64 KiB, and one write holds 32 KiB. A message has 10,000 bytes.
        self.assertIn(len(delivered), range(16, 28))

        process.send_signal(signal.SIGCONT)
        heard = []
        while len(heard) < len(delivered):
            words = process.stdout.readline().split()
            self.assertNotEqual(words, [], "the stopped application was closed")
            if words[0] == "message":
                heard.append(int(words[1], 16))
        self.assertEqual(heard, delivered)
        following(ours, Room, address=z)
        self.assertEqual(ours.send(b"again", [z], timeout=20), {z: Result.DELIVERED})

        process.kill()
        left = following(ours, Member, state=State.LEFT, address=z)
        self.assertEqual(left.reason, 2)

    def test_an_application_decides_on_members_and_who_founded_the_session_ejects(self):
        a, b = self.connect(self.a, "judge"), self.connect(self.b, "judge")
        service = b.advertise("story", {"name": "judge"})
        ours, theirs = a.open_session("story", decides=True), b.open_session("story")
        for accepted in (True, False):
            sent = ours.invite(service.address)
            service.next(timeout=20).accept(theirs)
            question = following(ours, Question)
            self.assertEqual((question.address, question.peer.name), (service.address, "b"))
            ours.decide(question.address, accepted)
            if accepted:
                self.assertEqual(sent.wait(20)[0], Outcome.CONNECTED)
                following(ours, Member, state=State.CONNECTED)
                self.assertEqual(ours.send(b"yes", timeout=20), {service.address: Result.DELIVERED})
                with self.assertRaises(CausewayError) as refused:
                    theirs.eject(ours.address, "no")
                self.assertEqual(refused.exception.code, Code.NOT_ALLOWED)
            else:
                following(ours, Member, state=State.REJECTED)
            ours.eject(service.address, "out")
            self.assertEqual(following(ours, Member, state=State.EJECTED).text, "out")
            self.assertEqual(following(theirs, Ended), Ended(1, "out"))
            theirs = b.open_session("story")

    # Streams

    def test_a_stream_arrives_intact_and_whole_and_its_writer_knows(self):
        ours, theirs, address = self.joined("stream")
        data = os.urandom(10 << 20)
        stream = ours.open_stream("photo", address)

        def write():
            stream.write(data, timeout=20)
            stream.finish(timeout=20)

        writer = threading.Thread(target=write)
        began = time.monotonic()
        writer.start()
        incoming = following(theirs, IncomingStream)
        self.assertEqual((incoming.name, incoming.sender), ("photo", theirs.connected()[0]))
        came = b"".join(iter(lambda: incoming.read(timeout=20), b""))
        print(f"10 MiB in a stream: {time.monotonic() - began:.2f} s")
        self.assertEqual(came, data)
        writer.join(20)
        self.assertEqual((stream.end, incoming.end), (StreamEnd.FINISHED, StreamEnd.FINISHED))

    def test_a_reader_that_stops_delays_its_own_stream_alone(self):
        ours, theirs, address = self.joined("stop")
        slow, fast = ours.open_stream("slow", address), ours.open_stream("fast", address)
        there = {}
        while len(there) < 2:
            incoming = following(theirs, IncomingStream)
            there[incoming.name] = incoming
        data = {"slow": os.urandom(1 << 20), "fast": os.urandom(1 << 20)}

        def write(stream, bytes):
            stream.write(bytes, timeout=30)
            stream.finish(timeout=30)

        writers = [threading.Thread(target=write, args=pair) for pair in ((slow, data["slow"]), (fast, data["fast"]))]
        for writer in writers:
            writer.start()
        begin = there["slow"].read(timeout=20)
        stopped = time.monotonic()
        self.assertEqual(b"".join(iter(lambda: there["fast"].read(timeout=5), b"")), data["fast"])
        self.assertEqual(ours.send(b"message", timeout=5), {address: Result.DELIVERED})
        following(theirs, Message, 5)
        time.sleep(max(0.0, stopped + 10 - time.monotonic()))
        self.assertIsNone(slow.end)
        rest = b"".join(iter(lambda: there["slow"].read(timeout=20), b""))
        self.assertEqual(begin + rest, data["slow"])
        for writer in writers:
            writer.join(20)
        self.assertEqual((slow.end, fast.end), (StreamEnd.FINISHED, StreamEnd.FINISHED))

    def test_a_stream_that_is_cut_refused_or_lost_is_no_finished_one(self):
        ours, theirs, address = self.joined("cut")
        cut = ours.open_stream("cut", address)
        cut.write(b"half", timeout=20)
        incoming = following(theirs, IncomingStream)
        self.assertEqual(incoming.read(timeout=20), b"half")
        cut.reset()
        with self.assertRaises(StreamError) as ended:
            incoming.read(timeout=20)
        self.assertEqual(ended.exception.end, StreamEnd.CUT)

        refused = ours.open_stream("refused", address)
        following(theirs, IncomingStream).refuse()
        with self.assertRaises(StreamError) as ended:
            refused.finish(timeout=20)
        self.assertEqual(ended.exception.end, StreamEnd.REFUSED)

        lost = ours.open_stream("lost", address)
        lost.write(b"half", timeout=20)
        incoming = following(theirs, IncomingStream)
        self.assertEqual(incoming.read(timeout=20), b"half")
        ours.leave()
        with self.assertRaises(StreamError) as ended:
            incoming.read(timeout=20)
        self.assertEqual(ended.exception.end, StreamEnd.LOST)

    # Limits

    def test_those_who_stop_in_the_middle_of_a_long_packet_keep_no_other_from_sending_one(self):
        ours, theirs, address = self.joined("four")
        stuck = [self.raw(self.a) for _ in range(4)]
        for number, stream in enumerate(stuck):
            stream.sendall(causeway.hello(1, f"stuck {number}"))
            stream.recv(4096)
            stream.sendall(struct.pack(">I", LONG) + bytes(100))
        time.sleep(0.5)
        self.assertEqual(ours.send(bytes(LONG), timeout=20), {address: Result.DELIVERED})
        self.assertEqual(len(following(theirs, Message).data), LONG)
        # The daemon closed one of the clients with an incomplete packet, and kept the connections of all other clients.
        closed = 0
        for stream in stuck:
            stream.settimeout(0.1)
            try:
                closed += stream.recv(4096) != b""
            except TimeoutError:
                pass
        self.assertEqual(closed, 1)

    def test_the_65th_client_is_told_that_all_places_are_taken(self):
        nodes = []
        with self.assertRaises(CausewayError) as refused:
            for number in range(65):
                nodes.append(self.connect(self.b, f"crowd {number}"))
        self.assertIn("64 connections are shared: user 0 has 64", refused.exception.text)
        self.assertGreater(len(nodes), 50)
        nodes.pop().close()

        def connects():
            try:
                self.connect(self.b, "late")
                return True
            except CausewayError:
                return False

        wait("a slot is free", connects)


if __name__ == "__main__":
    unittest.main()
