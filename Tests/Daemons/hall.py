#!/usr/bin/env python3
"""Many daemons on one LAN: hall.py BINARY [--nodes N[,N...]] [--settle SECONDS] [--rest SECONDS] [--leave K]

Each daemon has its own network namespace with one interface, which is a port of a bridge. No traffic leaves this
machine. For each N the program measures the time until every node sees all others, and the cost of a node at rest. Then
K nodes leave at once and come back, and the program measures the time until every node sees all others again. Needs
root."""
import argparse
import ctypes
import itertools
import os
import resource
import selectors
import statistics
import subprocess
import tempfile
import time

from daemons import BINARY, Daemon, Watch

CLONE_NEWNET = 0x40000000
WAIT_SECONDS = 120
# The limit of open files. It covers the connections of the clients and the pipes to the daemons.
FILES_MIN = 4096
_ports = itertools.count()


class Attendee(Daemon):
    """A daemon at a port of the bridge, and a client of the daemon that follows the number of peers."""

    def __init__(self, root, number):
        super().__init__(root, f"n{number}", trust="policy = open")
        self.number, self.peers_seen, self.watch = number, set(), None

    def write(self):
        with open(self.config, "w") as file:
            file.write(
                f"[node]\ndisplay-name = {self.name}\nstate-directory = {self.directory}/state\n"
                f"runtime-directory = {self.directory}/run\n[discovery]\ndns-sd = embedded\n"
                "[bluetooth]\nenabled = no\n[wifi-direct]\nenabled = no\n")

    def plug_in(self):
        """Make the namespace with its port. The daemon itself begins in `start`, so that all daemons can begin at
        once."""
        self.process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c",
             f"read _; ip link set lo up; ip address add 10.77.{self.number >> 8}.{(self.number & 255)}/16 dev eth0;"
             f" ip link set eth0 up; exec {BINARY} run --config {self.config}"],
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        hall = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.process.pid}/ns/net") == hall:
            time.sleep(0.002)
        # The port has a new name each time, because the kernel removes the port of an ended namespace only after a
        # while.
        port = f"port{next(_ports)}"
        ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(self.process.pid))
        ip("link", "set", port, "master", "bridge", "up")

    def start(self):
        self.process.stdin.close()
        return self

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None
        if self.watch:
            self.watch.socket.close()
            self.watch = None
        self.peers_seen = set()

    def begin_watch(self):
        self.watch = Watch(self)

    def take(self):
        packet = self.watch.socket.recv(70_000)
        if packet[:1] == b"P":
            self.peers_seen.add(packet[1:17])
        elif packet[:1] == b"L":
            self.peers_seen.discard(packet[1:17])

    def costs(self):
        """The processor seconds, the bytes sent, and the waits of the daemon since its start."""
        with open(f"/proc/{self.process.pid}/net/dev") as file:
            sent = next(int(line.split()[9]) for line in file if line.strip().startswith("eth0:"))
        return self.processor_seconds(), sent, self.wake_ups()


def make_network():
    """Move this process into a new network namespace and make the bridge there. Namespace and bridge end with the
    process."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MIN, FILES_MIN))
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise SystemExit(f"no namespace of its own: {os.strerror(ctypes.get_errno())}; run it as root")
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge", "type", "bridge")
    ip("link", "set", "bridge", "up")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def follow(attendees, is_done, seconds):
    """Read the clients' events until `is_done` returns true. Returns the seconds that this took, or None after
    `seconds`."""
    selector = selectors.DefaultSelector()
    for attendee in attendees:
        selector.register(attendee.watch.socket, selectors.EVENT_READ, attendee)
    start = time.monotonic()
    while not is_done():
        left = start + seconds - time.monotonic()
        if left <= 0:
            return None
        for key, _ in selector.select(min(left, 1)):
            key.data.take()
    return time.monotonic() - start


def begin(attendees):
    """Start all attendees at once. Returns the time before the first one began."""
    for attendee in attendees:
        attendee.plug_in()
    start = time.monotonic()
    for attendee in attendees:
        attendee.start()
    for attendee in attendees:
        attendee.begin_watch()
    return start


def whole(attendees, others):
    return all(len(attendee.peers_seen) == others for attendee in attendees)


def measure(count, settle, rest, leave):
    with tempfile.TemporaryDirectory(prefix="causeway-") as root:
        attendees = [Attendee(root, number + 1) for number in range(count)]
        try:
            start = begin(attendees)
            found = follow(attendees, lambda: whole(attendees, count - 1), WAIT_SECONDS) and time.monotonic() - start
            follow(attendees, lambda: False, settle)
            before, at = [attendee.costs() for attendee in attendees], time.monotonic()
            follow(attendees, lambda: False, rest)
            span = time.monotonic() - at
            spent = [tuple(new - old for new, old in zip(attendee.costs(), was)) for attendee, was in zip(attendees, before)]
            links = [len(attendee.neighbours()) for attendee in attendees]
            returned = come_back(attendees, leave) if leave else None
        finally:
            for attendee in attendees:
                attendee.stop()
    processor, sent, wake_ups = (statistics.mean(column) for column in zip(*spent))
    print(f"{count:5} {seconds(found):>9} {min(links):4}–{max(links):<4} {sent / 1000 * 60 / span:12,.0f} "
          f"{processor / span * 100:10.2f} {wake_ups / span:10.1f} {seconds(returned):>11}", flush=True)


def come_back(attendees, leave):
    """Kill the first `leave` attendees, and start them again when the others have noticed. Returns the seconds from
    this start until every attendee sees all others."""
    leavers, stayers = attendees[:leave], attendees[leave:]
    for attendee in leavers:
        attendee.stop()
    if follow(stayers, lambda: whole(stayers, len(stayers) - 1), WAIT_SECONDS) is None:
        return None
    start = begin(leavers)
    if follow(attendees, lambda: whole(attendees, len(attendees) - 1), WAIT_SECONDS) is None:
        return None
    return time.monotonic() - start


def seconds(value):
    return f"{value:.1f} s" if value else "never"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="8,16", help="how many daemons, one measurement each (default 8,16)")
    parser.add_argument("--settle", type=float, default=60, help="seconds between whole and rest (default 60)")
    parser.add_argument("--rest", type=float, default=60, help="seconds at rest that are measured (default 60)")
    parser.add_argument("--leave", type=int, help="how many leave at once and come back (default: half)")
    options = parser.parse_args()
    make_network()
    print("nodes whole after links     kB/min each  CPU % each wake-ups/s back after", flush=True)
    for count in map(int, options.nodes.split(",")):
        measure(count, options.settle, options.rest, options.leave if options.leave is not None else count // 2)


if __name__ == "__main__":
    main()
