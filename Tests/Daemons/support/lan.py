"""Daemons on one LAN, each in its own network namespace with one interface, which is a port of a bridge. No traffic
leaves this machine. Needs root."""
import ctypes
import itertools
import os
import resource
import selectors
import subprocess
import time

from daemons import BINARY, Daemon, Watch

CLONE_NEWNET = 0x40000000
# The limit of open files. The limit covers the connections of the clients and the pipes to the daemons.
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
