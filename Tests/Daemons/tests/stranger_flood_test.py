"""Floods of strangers that make a box compute: complete ClientHellos from many addresses, and multicast DNS packets with
costly names. The processor time of the box stays bounded, its links stay fast, and a newcomer is linked. Needs root."""
# seconds: 40
import os
import socket
import ssl
import struct
import subprocess
import sys
import time
import unittest

import lan
from daemons import BINARY, DaemonsTest, Watch, wait
from multicast import GROUP, PORT, open_socket

ADDRESSES = 254


def client_hello():
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["causeway/1"])
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()


def send_hellos(port, byte_count):
    """Send the first `byte_count` bytes of hellos from 254 addresses in turn, up to 1,600 a second, until killed."""
    hello, number, held = client_hello()[:byte_count], 0, []
    while True:
        for _ in range(32):
            number += 1
            stream = socket.socket()
            stream.setblocking(False)
            held.append(stream)
            try:
                stream.bind((f"127.40.0.{number % ADDRESSES + 1}", 0))
                stream.connect_ex(("127.0.0.1", port))
                stream.send(hello)
            except OSError:
                continue
        while len(held) > 128:
            held.pop(0).close()
        time.sleep(0.02)


def costly_packets():
    """Packets of multicast DNS that cost a responder much: a name that points to itself, a long name that is repeated,
    and many questions."""
    pointer = b"\xc0\x0c" + struct.pack(">HHIH", 12, 1, 120, 2) + b"\xc0\x0c"
    for first, count in (((b"\x3f" + b"a" * 63) * 66 + pointer, 300), ((b"\x3f" + b"a" * 63) * 3 + b"\0" + pointer[2:], 100)):
        yield struct.pack(">6H", 0, 0x8400, 0, count + 1, 0, 0) + first + pointer * count
    questions = b"".join(b"\xc0\x0c" + struct.pack(">HH", kind, 1) for kind in range(127))
    yield struct.pack(">6H", 0, 0, 128, 0, 0, 0) + b"\x09_causeway\x04_tcp\x05local\0" + struct.pack(">HH", 12, 1) + questions


def send_packets():
    sender = open_socket()
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.77.0.200"))
    packets = list(costly_packets())
    while True:
        for packet in packets:
            sender.sendto(packet, (GROUP, PORT))
        time.sleep(0.002)


def run(*words, prefix=()):
    return subprocess.Popen([*prefix, sys.executable, os.path.abspath(__file__), BINARY, *words], env={
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, stdout=subprocess.DEVNULL)


class StrangerFloodTest(DaemonsTest):
    def flood(self, box, attacker, probe, seconds=5):
        """Return the median time of a probe, and the share of a processor that the box uses, during a flood."""
        self.addCleanup(attacker.wait)
        self.addCleanup(attacker.kill)
        time.sleep(2)
        times, before, began = [], box.processor_seconds(), time.monotonic()
        while time.monotonic() - began < seconds:
            start = time.monotonic()
            probe()
            times.append(time.monotonic() - start)
            time.sleep(0.02)
        self.assertIsNone(attacker.poll())
        attacker.kill()
        return sorted(times)[len(times) // 2], (box.processor_seconds() - before) / (time.monotonic() - began)

    def test_hellos_from_many_addresses_leave_the_links_fast_and_let_a_newcomer_in(self):
        box = self.daemon("box", trust="policy = open").start()
        alice = self.daemon("alice", box, trust="policy = open").start()
        wait("a link", lambda: "alice" in box.neighbours())
        watch = Watch(alice)
        watch.wait_peer("box")
        def flood(byte_count):
            attacker = run("hellos", str(box.port), str(byte_count))
            return self.flood(box, attacker, lambda: watch.probe(bytes.fromhex(box.id)))
        # The beginnings of hellos cost the box no signature, and the machine as much as complete ones.
        reference, _ = flood(11)
        median, share = flood(10_000)
        print(f"{reference * 1000:.1f} ms, with complete hellos {median * 1000:.1f} ms, {share:.2f} processors", file=sys.stderr)
        self.assertLess(median, 3 * reference + 0.02)
        self.assertLess(share, 0.5)
        self.daemon("bob", box, trust="policy = open").start()
        wait("the link of a newcomer", lambda: "bob" in box.neighbours(), 5)

    def test_costly_packets_of_multicast_dns_leave_the_links_fast(self):
        lan.make_network()
        boxes = [lan.Attendee(self.root, number) for number in (1, 2)]
        for box in boxes:
            self.addCleanup(box.stop)
        lan.begin(boxes)
        lan.follow(boxes, lambda: lan.whole(boxes, 1), 20)
        stranger = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up; echo ready; exec cat"], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True)
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        stranger.stdout.readline()
        lan.ip("link", "add", "stranger", "type", "veth", "peer", "name", "eth0", "netns", str(stranger.pid))
        lan.ip("link", "set", "stranger", "master", "bridge", "up")
        prefix = ("nsenter", f"--net=/proc/{stranger.pid}/ns/net")
        subprocess.run([*prefix, "ip", "address", "add", "10.77.0.200/16", "dev", "eth0"], check=True)
        subprocess.run([*prefix, "ip", "link", "set", "eth0", "up"], check=True)
        time.sleep(1.5)
        watch = Watch(boxes[0])
        watch.wait_peer("n2")
        median, share = self.flood(boxes[1], run("packets", prefix=prefix), lambda: watch.probe(watch.peers["n2"]))
        print(f"{median * 1000:.1f} ms, {share:.2f} processors", file=sys.stderr)
        self.assertLess(median, 0.1)
        self.assertLess(share, 0.3)


if __name__ == "__main__":
    if sys.argv[1:2] == ["hellos"]:
        send_hellos(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["packets"]:
        send_packets()
    else:
        unittest.main()
