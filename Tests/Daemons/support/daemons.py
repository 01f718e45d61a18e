"""Causeway daemons on the loopback interface, each with its own directory. Suites and measurements use them.
The first argument of a program that imports this module is the binary."""
import errno
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "build/x86_64/causeway"
# The first 11 bytes of a ClientHello, in a TLS record of 512 bytes.
CLIENT_HELLO_PREFIX = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])
PORTS, PORTS_OF_A_RUN = range(20_000, 32_000), 400


def _own_ports():
    """Reserve a block of ports for this run, below the kernel's ephemeral range. The block's first port stays bound, so
    that a parallel run takes another block. A block with a listener is skipped, because a daemon of a killed run may
    still use the block."""
    for first in PORTS[::PORTS_OF_A_RUN]:
        guard = socket.socket()
        try:
            guard.bind(("127.0.0.1", first))
            if all(_is_free(port) for port in range(first + 1, first + PORTS_OF_A_RUN)):
                return guard, iter(range(first + 1, first + PORTS_OF_A_RUN))
        except OSError:
            pass
        guard.close()
    raise SystemExit(f"in each {PORTS_OF_A_RUN} ports from {PORTS.start} to {PORTS.stop - 1} one is in use")


def _is_free(port):
    """Whether no process listens on a port of this machine, over IPv4 or IPv6. A port of connections that have just
    ended is free."""
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            probe = socket.socket(family)
        except OSError:
            continue                # this machine has no IPv6
        with probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return False
    return True


_guard, _ports = _own_ports()


class Daemon:
    """One node. `start` runs its daemon; the commands of the same binary read and change the node.

    peers: the daemons that the node dials; trust: the lines of its section [trust]; extra: more sections of its
    configuration."""

    def __init__(self, root, name, peers=(), trust="", display=None, relay=True, extra=""):
        self.directory = os.path.join(root, name)
        os.makedirs(self.directory + "/run", exist_ok=True)
        self.name, self.port, self.process = name, next(_ports), None
        self.display, self.peers, self.trust = display or name, list(peers), trust
        self.relay, self.extra = relay, extra
        self.write()

    def write(self):
        peers = "".join(f"peers = 127.0.0.1:{peer.port}\n" for peer in self.peers)
        with open(self.config, "w") as file:
            file.write(
                f"[node]\ndisplay-name = {self.display}\nstate-directory = {self.directory}/state\n"
                f"runtime-directory = {self.directory}/run\nrelay = {'yes' if self.relay else 'no'}\n"
                f"[trust]\n{self.trust}\n{self.extra}\n"
                f"[ip]\nport = {self.port}\nloopback = yes\ninterfaces = lo\n{peers}"
                "[bluetooth]\nenabled = no\n[wifi-direct]\nenabled = no\n[discovery]\ndns-sd = off\n")

    @property
    def config(self):
        return self.directory + "/conf"

    @property
    def state(self):
        return self.directory + "/state"

    def run(self, *words, **options):
        """Run a command with this box's configuration and without a terminal. Returns its exit status, output and
        errors."""
        done = subprocess.run(
            [BINARY, *words, "--config", self.config], capture_output=True, text=True, timeout=30, start_new_session=True, **options)
        return done.returncode, done.stdout, done.stderr

    def identity(self, *words):
        """Run an `identity` command that must succeed. Returns its standard output."""
        code, out, err = self.run("identity", *words)
        assert code == 0, (words, code, err)
        return out

    @property
    def id(self):
        return re.search(r"^node +(\w+)$", self.identity("show"), re.M).group(1)

    def start(self):
        # The kernel kills the daemon when this process ends for any reason.
        command = ["setpriv", "--pdeathsig", "KILL", BINARY, "run", "--config", self.config]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait(f"{self.name} answers", lambda: self.run("status")[0] == 0)
        return self

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(10)
            self.process = None

    # Resource use

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def processor_seconds(self):
        """The processor seconds of the daemon since its start, in user and system mode, with nanosecond resolution."""
        with open(f"/proc/{self.process.pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9

    def wake_ups(self):
        """The number of times that the daemon has waited since its start: its voluntary context switches."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("voluntary"))

    # Status and log

    @property
    def status(self):
        return json.loads(self.run("status", "--json")[1])

    def neighbours(self):
        return sorted(link["name"] for link in self.status["links"] if link["state"] == "up")

    def log(self, level="info"):
        return self.run("log", "--level", level)[1]


class Watch:
    """A client that receives the updates of the list of peers, over one connection to a daemon's control socket
    (Sources/ControlSocket/ControlProtocol.swift)."""

    def __init__(self, daemon):
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
        self.socket.send(b"A")
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

    def probe(self, to):
        """Send an empty message to a peer and wait until the peer has acknowledged it."""
        self.socket.send(b"Q" + struct.pack(">I16s", 1, to))
        while (packet := self.next())[:1] != b"C":
            pass
        if packet[5] != 0:
            raise SystemExit(f"a probe ended with {packet[5]}")


def wait(what, predicate, seconds=15):
    """Poll until the predicate is true. A timeout raises an AssertionError."""
    end = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class DaemonsTest(unittest.TestCase):
    """A test with a temporary directory, whose daemons are stopped after the test."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="causeway-")
        self.addCleanup(directory.cleanup)
        self.root = directory.name

    def path(self, name):
        return os.path.join(self.root, name)

    def daemon(self, name, *peers, **options):
        daemon = Daemon(self.root, name, peers, **options)
        self.addCleanup(daemon.stop)
        return daemon

    def refused(self, daemon, *words):
        """Run a command that must fail with one line on standard error. Returns that line."""
        code, out, err = daemon.run(*words)
        self.assertEqual((code, out), (1, ""), err)
        self.assertEqual(err.count("\n"), 1, err)
        return err
