"""10,000 half-open connections to a box while two peers move a file through it: run.py BINARY half_open [--count N]

Prints the box's resident memory before, during and after the flood, how the connections ended, and the transfer's rate
with and without the flood. The flood takes processor time from all processes of this machine. The program
also measures the rate while the same flood goes to a decoy, a process that accepts and closes. The difference is the
part that the box causes. With --prefix each connection sends the first bytes of a ClientHello and stops. The program asserts only that the
transfers succeed, and that the box admits an honest node during the flood.
"""
import argparse
import collections
import contextlib
import itertools
import os
import resource
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from daemons import BINARY, Daemon, wait

ROUNDS = 3
HELLO = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])


def transfer(sender, receiver, path, size, into):
    """Send a file of `size` bytes to a receiver. Returns the rate in MB/s."""
    os.makedirs(into, exist_ok=True)
    receiving = subprocess.Popen(
        [BINARY, "receive", into, "--from", sender.id, "--count", "1", "--config", receiver.config],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    start = time.monotonic()
    done = subprocess.run([BINARY, "send", path, receiver.display, "--config", sender.config],
                          capture_output=True, text=True, timeout=300)
    seconds = time.monotonic() - start
    receiving.terminate()
    receiving.wait()
    assert done.returncode == 0, done.stderr
    return size / seconds / 1e6


class Flood:
    """A process that opens connections from many loopback addresses. It holds `count` of them, and closes the oldest
    ones beyond that; the box may close others.

    At its end the process prints how many connections it has opened, and in how many seconds."""

    def __init__(self, port, options):
        words = ["--port", str(port), "--count", str(options.count)] + ["--prefix"] * options.prefix
        self.process = subprocess.Popen(
            [sys.executable, __file__, BINARY, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()               # the line comes after the first tenth of the connections

    def stop(self):
        """Stop the process. Returns the number of connections that it opened, and their number per second."""
        opened, seconds = self.process.communicate("\n")[0].split()
        return int(opened), int(opened) / float(seconds)


def flood(options):
    """Open connections until a line arrives on standard input. This runs in the flood's own process."""
    held, opened, start = collections.deque(), 0, time.monotonic()
    while not select.select([sys.stdin], [], [], 0)[0]:
        connection = socket.socket()
        connection.setblocking(False)
        # The complete range 127.0.0.0/8 is loopback, so every connection can have its own source address.
        connection.bind((f"127.2.{opened // 250 % 250}.{opened % 250 + 1}", 0))
        connection.connect_ex(("127.0.0.1", options.port))
        held.append(connection)
        opened += 1
        if options.prefix:
            with contextlib.suppress(OSError):
                connection.send(HELLO)
        if len(held) == options.count:
            held.popleft().close()
        if opened == options.count // 10:
            print("under way", flush=True)
        time.sleep(max(0.0, start + opened / 10_000 - time.monotonic()))
    print(opened, time.monotonic() - start)


def decoy(port):
    """Accept connections and close each at once, without end."""
    with socket.create_server(("127.0.0.1", port), backlog=1024) as listener:
        while True:
            listener.accept()[0].close()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--prefix", action="store_true")
    options.add_argument("--size", type=int, default=64_000_000)
    options.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = options.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, options.count + 1000), hard))
    if options.port:
        return flood(options)
    with tempfile.TemporaryDirectory(prefix="causeway-") as root:
        path = root + "/file"
        with open(path, "wb") as file:
            file.write(os.urandom(1_000_000) * (options.size // 1_000_000))
        box = Daemon(root, "box").start()
        alice, bob = Daemon(root, "alice", [box]).start(), Daemon(root, "bob", [box]).start()
        late, target = Daemon(root, "late", [box]), Daemon(root, "decoy")
        threading.Thread(target=decoy, args=(target.port,), daemon=True).start()
        numbers = itertools.count()

        def rates(count):
            return [transfer(alice, bob, path, options.size, f"{root}/in{next(numbers)}") for _ in range(count)]

        try:
            wait("both are linked", lambda: box.neighbours() == ["alice", "bob"])
            wait("they see each other", lambda: "bob" in [peer["name"] for peer in alice.status["peers"]])
            rates(1)
            quiet, before = rates(ROUNDS), box.resident_bytes()
            beside, during = [], []
            for round in range(ROUNDS):
                elsewhere = Flood(target.port, options)
                beside += rates(2)
                elsewhere.stop()
                here = Flood(box.port, options)
                during += rates(2)
                peak = box.resident_bytes()
                if round < ROUNDS - 1:
                    here.stop()
            start = time.monotonic()
            late.start()
            wait("a newcomer is let in during the flood", lambda: "late" in box.neighbours(), 60)
            joined = time.monotonic() - start
            opened, pace = here.stop()
            time.sleep(6)
            print(f"{opened} connections opened in the last round, {pace:.0f} a second"
                  f"{', each with the beginning of a ClientHello' if options.prefix else ''}")
            print(f"box's memory: {before / 1e6:.1f} MB before, {peak / 1e6:.1f} MB during, {box.resident_bytes() / 1e6:.1f} MB after")
            quiet, beside, during = (statistics.median(each) for each in (quiet, beside, during))
            print(f"transfer through the box, medians: {quiet:.1f} MB/s without a flood, {beside:.1f} MB/s with one at a "
                  f"decoy, {during:.1f} MB/s with one at the box: {during / beside:.0%} of the decoy's")
            print(f"an honest newcomer was linked after {joined:.1f} s")
            print("".join(line[25:] + "\n" for line in box.log("warning").splitlines() if "not admitted" in line)[-600:], end="")
        finally:
            for daemon in (box, alice, bob, late):
                daemon.stop()


if __name__ == "__main__":
    main()
