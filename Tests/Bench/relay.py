#!/usr/bin/env python3
"""What relaying costs: relay.py BINARY [BYTES]

Three daemons on the loopback interface, a – box – b, of which a and b know only the box. Messages go from a to b; what is
measured is the processor time of the box and what arrives. Beside it, as the limit of this machine, stands what an echo
over a plain TCP connection costs in round trips."""

import os
import selectors
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
KIND = 7
OUTSTANDING = 48            # sends of one client; the daemon takes 64
INTERACTIVE, BULK = 0, 1


class Daemon:
    def __init__(self, binary, directory, name, port, dials=(), relay=False, extra=""):
        self.directory = f"{directory}/{name}"
        os.makedirs(f"{self.directory}/run")
        with open(f"{self.directory}/causeway.conf", "w") as file:
            file.write(
                f"[node]\ndisplay-name = {name}\nstate-directory = {self.directory}\n"
                f"runtime-directory = {self.directory}/run\nrelay = {'yes' if relay else 'no'}\n"
                f"[ip]\nport = {port}\nloopback = yes\ninterfaces = lo\n"
                + "".join(f"peers = 127.0.0.1:{other}\n" for other in dials)
                + "[bluetooth]\nenabled = no\n[wifi-direct]\nenabled = no\n[discovery]\ndns-sd = off\n" + extra)
        self.process = subprocess.Popen(
            [binary, "run", "--config", f"{self.directory}/causeway.conf"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def processor_seconds(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_mib(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)


class Client:
    """One connection to a daemon's control socket (Sources/Diagnostics/ControlProtocol.swift)."""

    def __init__(self, daemon, kinds=0):
        deadline = time.monotonic() + 10
        while True:
            try:
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                self.socket.connect(f"{daemon.directory}/run/control.sock")
                break
            except OSError:
                self.socket.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self.socket.send(b"A" + struct.pack(">I", kinds))
        self.socket.settimeout(30)
        self.peers = {}

    def next(self):
        packet = self.socket.recv(70_000)
        if packet[:1] == b"P":
            length = packet[35]
            self.peers[packet[36 : 36 + length].decode()] = packet[1:17]
        return packet

    def wait_peer(self, name):
        while name not in self.peers:
            self.next()
        return self.peers[name]

    def send_many(self, to, count, size, lane):
        """Send `count` messages and wait until all have arrived."""
        head = struct.pack(">16sBB", to, KIND, lane)
        message = head + os.urandom(size)
        sent = ended = 0
        while ended < count:
            while sent < count and sent - ended < OUTSTANDING:
                self.socket.send(b"M" + struct.pack(">I", sent) + message)
                sent += 1
            packet = self.next()
            if packet[:1] == b"C":
                if packet[5] != 0:
                    raise SystemExit(f"a send ended with {packet[5]}")
                ended += 1


def drain(client, stop):
    """Take what arrives, as an application would; send back what came in the interactive lane with a request to."""
    while not stop.is_set():
        try:
            packet = client.next()
        except TimeoutError:
            continue
        if packet[:1] == b"M" and packet[19:23] == b"echo":
            client.socket.send(b"M" + struct.pack(">I", 0) + packet[1:19] + packet[19:])


def round_trips(client, to, count=1000, pause=0.002):
    times = []
    for _ in range(count):
        start = time.perf_counter()
        client.socket.send(b"M" + struct.pack(">I16sBB", 0, to, KIND, INTERACTIVE) + b"echo")
        while client.next()[:1] != b"M":
            pass
        times.append((time.perf_counter() - start) * 1e6)
        time.sleep(pause)
    return percentiles(times)


def echo_round_trips(count=1000, pause=0.002):
    """The limit: two processes, one TCP connection on the loopback interface, twice there and back."""
    listener = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        connection = listener.accept()[0]
        while data := connection.recv(100):
            connection.send(data)
        os._exit(0)
    connection = socket.create_connection(listener.getsockname())
    times = []
    for _ in range(count):
        start = time.perf_counter()
        for _ in range(2):
            connection.send(b"echo")
            connection.recv(100)
        times.append((time.perf_counter() - start) * 1e6)
        time.sleep(pause)
    connection.close()
    os.wait()
    return percentiles(times)


def percentiles(values):
    ordered = sorted(values)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99)]


def measure(binary, title, byte_count, extra=""):
    with tempfile.TemporaryDirectory() as directory:
        base = 20_000 + os.getpid() % 20_000
        box = Daemon(binary, directory, "box", base, relay=True, extra=extra)
        a = Daemon(binary, directory, "a", base + 1, dials=[base], extra=extra)
        b = Daemon(binary, directory, "b", base + 2, dials=[base], extra=extra)
        stop = threading.Event()
        try:
            reader, sender = Client(b, kinds=1 << KIND), Client(a, kinds=1 << KIND)
            to = sender.wait_peer("b")
            threading.Thread(target=drain, args=(reader, stop), daemon=True).start()
            p50, p99 = round_trips(sender, to)
            print(f"{title}: round trip a – box – b and back: p50 {p50:.0f} µs, p99 {p99:.0f} µs")
            sender.send_many(to, 500, 16_384, BULK)
            for size, total, lane in ((16_384, byte_count, BULK), (64, byte_count // 64, INTERACTIVE)):
                count = total // size
                before, start = box.processor_seconds(), time.monotonic()
                sender.send_many(to, count, size, lane)
                seconds, used = time.monotonic() - start, box.processor_seconds() - before
                print(
                    f"{title}: {count} messages of {size} bytes: {count / seconds / 1000:.1f} k/s,"
                    f" {count * size / seconds / 1e6:.1f} MB/s; box {used / count * 1e6:.2f} µs a message,"
                    f" {used / (count * size) * 1e9:.2f} s/GB")
            print(f"{title}: the box holds {box.resident_mib():.1f} MiB")
        finally:
            stop.set()
            for daemon in (a, b, box):
                daemon.stop()


def main():
    binary = os.path.abspath(sys.argv[1])
    byte_count = int(sys.argv[2]) if len(sys.argv) > 2 else 256 << 20
    p50, p99 = echo_round_trips()
    print(f"limit: plain TCP echo, twice there and back: p50 {p50:.0f} µs, p99 {p99:.0f} µs")
    measure(binary, "relay", byte_count)


main()
