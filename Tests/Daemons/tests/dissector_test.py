"""The dissector docs/wireshark/causeway.lua in tshark, with the golden bytes of the unit tests.

Needs no daemon, but tshark. Needs root, because tshark runs as another user."""
import os
import re
import struct
import sys
import unittest

from wireshark import FILE_HEADER, SCRIPT, fields, record, tshark

PROJECT = os.path.join(os.path.dirname(SCRIPT), "../..")
HERE, THERE = bytes(range(0x20, 0x30)), bytes(range(0x10, 0x20))
POINT, SIGNATURE = b"\4" + bytes(range(64)), bytes(range(0x80, 0xC0))
EPOCHS = bytes.fromhex("0102030405060708 1112131415161718")
BAD = ("causeway.bad.short", "causeway.bad.long", "causeway.bad.range", "causeway.bad.zero", "causeway.bad.marker")


def frame(kind, payload, priority=0, ttl=1, to=bytes(16), identifier=0):
    return (bytes([0x81, kind, kind == 37, ttl, priority, 0]) + struct.pack(">H", len(payload)) + to + HERE
            + struct.pack(">Q", identifier) + payload)


def routed(kind, payload, priority=2):
    return frame(kind, payload, priority, 7, THERE, 5 << 32 | 42)


HELLO = bytes.fromhex("01 01 4100 00000009 0000000700000009" + HERE.hex() + "03 626f62")
# The golden bytes of FrameTests and ChannelTests, with the fields that the dissector must find: frame → field → value.
GOLDEN = {
    frame(1, HELLO): {
        "hello.lowest": "1", "hello.highest": "1", "hello.payload_max": "16640", "hello.capabilities": "0x00000009", "hello.relays": "1",
        "hello.bypass": "1", "hello.parks": "0", "epoch": "0x0000000700000009", "hello.node": HERE.hex(), "name": "bob"},
    frame(2, bytes(range(8))): {"type": "2", "ping.data": "0001020304050607"},
    frame(3, bytes(range(8))): {"type": "3", "ping.data": "0001020304050607"},
    frame(4, bytes.fromhex("03 00 001e")): {"goodbye.reason": "3", "goodbye.retry": "30"},
    frame(5, bytes.fromhex("02 00 0000") + bytes(range(16)) + HERE): {
        "request.count": "2", "request.node": f"{bytes(range(16)).hex()},{HERE.hex()}"},
    frame(16, bytes.fromhex("01 00 00b4 0000000700000009 0000000000000002") + POINT + bytes.fromhex(
        "01 02 0000 000102030405060708090a0b0c0d0e0f 000a 4100 01 00 0000 101112131415161718191a1b1c1d1e1f 1f40 1000 04 00 0000")
        + SIGNATURE, identifier=1500): {
        "age": "1500", "adv.kind": "1", "adv.lifetime": "180", "epoch": "0x0000000700000009", "adv.sequence": "2", "key": POINT.hex(),
        "topology.forwards": "1", "topology.encryption": "0", "topology.count": "2", "topology.cost": "10,8000",
        "topology.payload_max": "16640,4096", "topology.bearer": "1,4", "signature": SIGNATURE.hex(),
        "topology.node": f"{bytes(range(16)).hex()},{THERE.hex()}"},
    frame(16, bytes.fromhex("02 00 0e10 0000000000000001 0000000000000001") + POINT + bytes.fromhex(
        "03 626f62 04 63686174 02 06 6c616e673d65 02 613d") + SIGNATURE): {
        "adv.kind": "2", "name": "bob", "service": "chat", "pairs": "2", "pair": "lang=e,a="},
    frame(16, bytes.fromhex("03 00 0e10 0000000000000001 0000000000000001") + POINT + bytes.fromhex(
        "01 fe0f30fe 04 63686174 01 0003 02 613d") + SIGNATURE): {
        "adv.kind": "3", "services.count": "1", "services.endpoint": "0xfe0f30fe", "service": "chat", "services.pairs_length": "3", "pair": "a="},
    frame(17, bytes.fromhex("0000 0002 0000000000000007 000000006b00df00") + POINT + HERE + THERE + SIGNATURE): {
        "deny.count": "2", "deny.serial": "7", "deny.node": f"{HERE.hex()},{THERE.hex()}", "signature": SIGNATURE.hex()},
    routed(32, EPOCHS + bytes.fromhex("01 00 0000 0badcafe 0000000000123456 68656c6c6f"), 3): {
        "type": "32", "ttl": "7", "priority": "3", "dst": THERE.hex(), "src": HERE.hex(), "id": "0x000000050000002a",
        "delivery.dst_epoch": "0x0102030405060708", "delivery.src_epoch": "0x1112131415161718", "delivery.lane": "1",
        "delivery.clock": str(0x0BADCAFE), "segment.offset": str(0x123456), "segment.data": "68656c6c6f"},
    routed(33, EPOCHS + bytes.fromhex("00 02 0000 0badcafe 0000000000001000 0000000000041000"
                                      "0000000000001400 0000000000001800 0000000000002000 0000000000002001")): {
        "delivery.lane": "0", "ack.ranges": "2", "ack.cumulative": "4096", "ack.limit": "266240", "ack.start": "5120,8192", "ack.end": "6144,8193"},
    routed(34, EPOCHS + bytes.fromhex("09 000000 0000000000000011 6869"), 1): {
        "datagram.kind": "9", "datagram.number": "17", "datagram.data": "6869", "priority": "1"},
    routed(35, EPOCHS): {"reset.of": "0x0102030405060708", "reset.epoch": "0x1112131415161718"},
    routed(36, EPOCHS + bytes.fromhex("16 fefd 0000 000000000000 0003 01aabb")): {
        "handshake.dst_epoch": "0x0102030405060708", "handshake.src_epoch": "0x1112131415161718", "dtls.type": "22", "dtls.message": "1",
        "dtls.body": "01aabb"},
    routed(37, bytes.fromhex("17 fefd 0001 000000000009 0004 aabbccdd")): {
        "sealed": "1", "dtls.type": "23", "dtls.version": "0xfefd", "dtls.epoch": "1", "dtls.sequence": "9", "dtls.length": "4",
        "dtls.body": "aabbccdd"},
}


def capture(*records):
    return FILE_HEADER + b"".join(records)


class DissectorTest(unittest.TestCase):
    def test_each_frame_is_read_field_by_field(self):
        names = sorted({name for values in GOLDEN.values() for name in values})
        rows = fields(capture(*map(record, GOLDEN)), *(f"causeway.{name}" for name in names))
        self.assertEqual(len(rows), len(GOLDEN))
        for (sent, values), row in zip(GOLDEN.items(), rows):
            seen = dict(zip(names, row))
            for name, value in values.items():
                # tshark prints booleans as numbers or as words, depending on its version.
                self.assertEqual(seen[name].replace("True", "1").replace("False", "0"), value, (sent[1], name))

    def test_no_legal_frame_is_called_malformed(self):
        for row in fields(capture(*map(record, GOLDEN)), *BAD, "causeway.unknown_type"):
            self.assertEqual("".join(row), "")

    def test_where_a_frame_was_seen(self):
        row, = fields(capture(record(frame(2, bytes(8)), sent=False, link=5, bearer=1)), "causeway.direction", "causeway.link", "causeway.bearer",
                      "causeway.beside", "causeway.neighbour", "_ws.col.Source")
        self.assertEqual((row[0], row[1], row[2], row[4], row[5]), ("0", "5", "1", bytes(range(8)).hex(), HERE[:4].hex()))

    def test_a_header_alone_is_no_malformed_frame(self):
        row, = fields(capture(record(frame(1, HELLO), captured=48)), "causeway.type", "causeway.headers_only", *BAD)
        self.assertEqual((row[0], "".join(row[2:])), ("1", ""))
        self.assertNotEqual(row[1], "")

    def test_payloads_that_are_cut_are_called_incomplete(self):
        # All bytes of a hello are required. The frame header has the length of the cut payload.
        cut = [record(frame(1, HELLO[:count])) for count in range(1, len(HELLO))]
        for row in fields(capture(*cut), "causeway.bad.short"):
            self.assertNotEqual(row[0], "")

    def test_no_prefix_and_no_changed_byte_stops_the_script(self):
        changed = []
        for golden in GOLDEN:
            payload = golden[48:]
            changed += [record(golden[:6] + struct.pack(">H", count) + golden[8:48 + count]) for count in range(1, len(payload))]
            changed += [record(golden[:place] + bytes([golden[place] ^ 0xFF]) + golden[place + 1:]) for place in range(len(golden))]
            changed += [record(golden, captured=count) for count in range(0, len(golden), 7)]
        rows = fields(capture(*changed), "frame.number")
        self.assertEqual(len(rows), len(changed))

    def test_what_is_illegal_is_marked(self):
        bad = {"causeway.bad.range": routed(32, EPOCHS + bytes.fromhex("02 00 0000 0badcafe 0000000000123456 68")),
               "causeway.bad.zero": frame(4, bytes.fromhex("03 01 001e")), "causeway.bad.long": frame(4, bytes.fromhex("03 00 001e 00")),
               "causeway.bad.marker": b"\x82" + frame(2, bytes(8))[1:], "causeway.unknown_type": routed(99, b"x")}
        for name, wrong in bad.items():
            row, = fields(capture(record(wrong)), name)
            self.assertNotEqual(row[0], "", name)

    def test_the_papers_name_every_field(self):
        with open(SCRIPT) as script:
            names = set(re.findall(r'^field\("\w+", "([a-z_.]+)"', script.read(), re.M))
        with open(os.path.join(PROJECT, "docs/operations/read-the-box.md")) as file:
            documented = set(re.findall(r"`causeway\.([a-z_.]+)`", file.read()))
        self.assertEqual(names - documented, set())

    def test_the_packet_list_says_what_each_is(self):
        lines = tshark(capture(*map(record, GOLDEN))).splitlines()
        self.assertIn("→ link 3: hello, 36 bytes, bob, hops 1, control", lines[0])
        self.assertIn("handshake, 32 bytes, client_hello", lines[-2])


if __name__ == "__main__":
    # The first argument is the binary, as for every suite.
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
