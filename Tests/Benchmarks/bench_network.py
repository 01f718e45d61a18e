"""Three network namespaces A – R – B with a cable between neighbours, and the processes in them. The kernel of R does
not forward, so a relay in R has to carry all traffic from A to B. Each namespace ends when the standard input of its
keeper process is closed, so everything ends with this program."""
import os
import pathlib
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / name) for name in ("Tests/Daemons/support", "Tests/Daemons/measurements", "Examples/python")]
from daemons import BINARY, Daemon, wait  # noqa: E402
from group import Network  # noqa: E402

__all__ = ["BINARY", "Daemon", "wait", "Place", "Places", "Node", "processor_seconds", "resident_bytes", "RELAY_IN", "RELAY_OUT", "FAR"]

NEAR, RELAY_IN, RELAY_OUT, FAR = "10.77.1.2", "10.77.1.1", "10.77.2.1", "10.77.2.2"
# The networks of further addresses: one address for each node of the generator, because a box limits the new keys of
# one address.
NODES_A, NODES_B = "10.77.8", "10.77.9"


class Place(Network):
    """A namespace that uses the congestion control `reno`. Other algorithms pace the traffic, which would hide the cost
    of relays."""

    def __init__(self, nodes=None):
        super().__init__()
        self.nodes = nodes
        self.run("sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno", "net.ipv4.ip_forward=0")
        if nodes:
            self.run("ip", "route", "add", "local", f"{nodes}.0/24", "dev", "lo")

    def start(self, *words, **options):
        """Start a process in this namespace. The process ends with this program."""
        return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.command(*words)], **options)


class Places:
    def __init__(self):
        self.a, self.relay, self.b = Place(NODES_A), Place(), Place(NODES_B)
        for end, name, here, there in ((self.a, "in", RELAY_IN, NEAR), (self.b, "out", RELAY_OUT, FAR)):
            self.relay.run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", end.keeper.pid)
            for place, device, address in ((self.relay, name, here), (end, "eth0", there)):
                place.run("ip", "address", "add", f"{address}/24", "dev", device)
                place.run("ip", "link", "set", device, "up")
            end.run("ip", "route", "add", "default", "via", here)
            self.relay.run("ip", "route", "add", f"{end.nodes}.0/24", "via", there)

    def forward(self, on):
        self.relay.run("sysctl", "-qw", f"net.ipv4.ip_forward={int(on)}")

    def end(self):
        for place in (self.a, self.relay, self.b):
            place.end()


class Node(Daemon):
    """A daemon that runs in a namespace."""

    def __init__(self, root, name, place, peer=None, port=41820, **options):
        self.place, self.peer, self.fixed_port = place, peer, port
        super().__init__(root, name, **options)

    def write(self):
        self.port = self.fixed_port
        peer = f"peers = {self.peer}\n" if self.peer else ""
        pathlib.Path(self.config).write_text(
            f"[node]\ndisplay-name = {self.name}\nstate-directory = {self.state}\nruntime-directory = {self.directory}/run\n"
            f"relay = {'yes' if self.relay else 'no'}\n[ip]\nport = {self.port}\n{peer}"
            "[bluetooth]\nenabled = no\n[wifi-direct]\nenabled = no\n[discovery]\ndns-sd = off\n")

    def start(self):
        self.process = self.place.start(BINARY, "run", "--config", self.config, stderr=subprocess.DEVNULL)
        wait(f"{self.name} answers", lambda: self.run("status")[0] == 0)
        return self


def processor_seconds(pid):
    """The user and system time of all threads of a process, including ended ones. The source is the scheduler's clock
    of the process."""
    return time.clock_gettime((~pid << 3) | 2)


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
