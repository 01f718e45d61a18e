#!/usr/bin/env python3
"""10,000 half-open connections against a box while two peers move a file through it: half_open.py BINARY [--count N]

Prints the box's resident memory before, during and after, what became of the connections, and the transfer's rate
without and with the flood. With --prefix each connection sends the first bytes of a ClientHello and stops. Nothing is
asserted but that the transfer ends well and the box takes an honest newcomer during the flood.
"""
import argparse
import os
import resource
import socket
import subprocess
import tempfile
import threading
import time

from daemons import BINARY, Daemon, wait

HELLO = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])


def resident(daemon):
    with open(f"/proc/{daemon.process.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


def transfer(sender, receiver, path, size, into):
    """Send a file and give the rate in MB/s."""
    os.makedirs(into, exist_ok=True)
    receiving = subprocess.Popen([BINARY, "peer", "receive", into, "--config", receiver.config, "--count", "1"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    start = time.monotonic()
    done = subprocess.run([BINARY, "peer", "send", path, "--to", receiver.display, "--config", sender.config],
                          capture_output=True, text=True, timeout=300)
    seconds = time.monotonic() - start
    receiving.terminate()
    receiving.wait()
    assert done.returncode == 0, done.stderr
    return size / seconds / 1e6


class Flood(threading.Thread):
    """Opens connections from many loopback addresses and keeps each for as long as the box lets it."""

    def __init__(self, port, count, prefix):
        super().__init__(daemon=True)
        self.port, self.count, self.prefix = port, count, prefix
        self.opened, self.refused, self.seconds, self.going = 0, 0, 0.0, True

    def run(self):
        held = []
        start = time.monotonic()
        while self.going:
            connection = socket.socket()
            connection.setblocking(False)
            # 127.2.0.0/16 is loopback too: every connection may come from another address.
            connection.bind((f"127.2.{self.opened // 250 % 250}.{self.opened % 250 + 1}", 0))
            connection.connect_ex(("127.0.0.1", self.port))
            held.append(connection)
            self.opened += 1
            if self.prefix:
                try:
                    time.sleep(0.0001)
                    connection.send(HELLO)
                except OSError:
                    pass
            if len(held) >= self.count:
                held.pop(0).close()
            if self.opened == self.count:
                self.seconds = time.monotonic() - start
            time.sleep(max(0.0, start + self.opened / 10_000 - time.monotonic()))
        for connection in held:
            try:
                if connection.recv(16) in (b"",) or True:
                    self.refused += 1
            except BlockingIOError:
                pass
            except OSError:
                self.refused += 1
            connection.close()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--prefix", action="store_true")
    options.add_argument("--size", type=int, default=64_000_000)
    options = options.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, options.count + 1000), hard))
    with tempfile.TemporaryDirectory(prefix="causeway-") as root:
        path = root + "/file"
        with open(path, "wb") as file:
            file.write(os.urandom(1_000_000) * (options.size // 1_000_000))
        box = Daemon(root, "box").start()
        alice, bob = Daemon(root, "alice", [box]).start(), Daemon(root, "bob", [box]).start()
        late = Daemon(root, "late", [box])
        try:
            wait("both are linked", lambda: box.neighbours() == ["alice", "bob"])
            wait("they see each other", lambda: "bob" in [peer["name"] for peer in alice.status["peers"]])
            transfer(alice, bob, path, options.size, root + "/in")
            quiet = [transfer(alice, bob, path, options.size, root + f"/in{n}") for n in range(3)]
            before = resident(box)
            flood = Flood(box.port, options.count, options.prefix)
            flood.start()
            wait("the flood has begun", lambda: flood.opened > options.count // 10, 60)
            during_rates, peak = [], 0
            for n in range(3):
                during_rates.append(transfer(alice, bob, path, options.size, root + f"/during{n}"))
                peak = max(peak, resident(box))
            start = time.monotonic()
            late.start()
            wait("a newcomer is let in during the flood", lambda: "late" in box.neighbours(), 60)
            joined = time.monotonic() - start
            flood.going = False
            flood.join()
            time.sleep(6)
            after = resident(box)
            print(f"{flood.opened} connections opened, {flood.opened / max(flood.seconds, 0.001) * options.count / flood.opened:.0f} a second"
                  f"{', each with the beginning of a ClientHello' if options.prefix else ''}")
            print(f"box's memory: {before / 1e6:.1f} MB before, {peak / 1e6:.1f} MB during, {after / 1e6:.1f} MB after")
            best = lambda rates: sorted(rates)[len(rates) // 2]
            print(f"transfer through the box: {best(quiet):.1f} MB/s without, {best(during_rates):.1f} MB/s with the flood: "
                  f"{best(during_rates) / best(quiet):.0%}")
            print(f"an honest newcomer was linked after {joined:.1f} s")
            print("".join(line[25:] + "\n" for line in box.log("warning").splitlines() if "not let in" in line)[-600:])
        finally:
            for daemon in (box, alice, bob, late):
                daemon.stop()


main()
