"""The compared systems: how each is started, and the protocol that the generator uses with it."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from bench_network import BINARY, FAR, RELAY_IN, RELAY_OUT, Node

RECEIVERS_MAX = 7
SIZES = (64, 1024, 16384)
# The bytes of a frame with 128 messages of 64 bytes, in the form that a sender with a backlog makes. Each message has 5
# bytes of channel header and 4 bytes of session header.
PACKED_MESSAGES = 128
PACKED_BYTES = PACKED_MESSAGES * 73
# The numbers of frames in flight through a box, by receivers and size. The numbers are so low that a box never drops a
# frame. (docs/protocol.md, “Limits”: 1024 frames and 256 KiB per flow, 1 MiB per neighbour.) Relays other than the box
# have no such limit.
WINDOWS_OF_A_BOX = {1: {64: 1024, 1024: 240, PACKED_BYTES: 24, 16384: 15}, 7: {64: 512, 1024: 128, 16384: 8}}
WINDOWS = {64: 4096, 1024: 1024, 16384: 64}
START_SECONDS_MAX = 15
LAUNCHERS = {os.path.basename(os.path.realpath(path)) for path in (sys.executable, *map(shutil.which, ("setpriv", "nsenter")))}


class System:
    """A relay in the namespace R. `title` is unique. `beside` is the title of the system that its ratios compare it
    with."""

    protocol, program, proxy = "hub", None, False

    def __init__(self, title, port, tls=False):
        self.title, self.port, self.tls = title, port, tls
        self.beside = "hub, TLS" if tls else "hub"
        self.process = None

    @property
    def alone(self):
        """Whether the system is a separate process, whose start and memory can be measured."""
        return True

    def installed(self):
        return shutil.which(self.program) is not None if self.program else True

    def version(self):
        return None

    def start(self, workshop, places):
        """Start the system. Returns the seconds from the execution of its program until it listens."""
        self.process = places.relay.start(*self.command(workshop), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self.listening_after()

    def listening_after(self):
        """Wait until the system listens. Reads the kernel's socket table, because a proxy would forward a test
        connection."""
        own = f":{self.port:04X} "
        begin = time.monotonic()
        # The time is measured from the end of setpriv and nsenter, which start the program.
        while os.path.basename(os.readlink(f"/proc/{self.process.pid}/exe")) in LAUNCHERS:
            begin = time.monotonic()
        while True:
            lines = [line for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/{self.process.pid}/net/{name}").read_text().splitlines()]
            if any(own in line and " 0A " in line for line in lines):
                return time.monotonic() - begin
            if self.process.poll() is not None or time.monotonic() - begin > START_SECONDS_MAX:
                raise SystemExit(f"{self.title} does not start: {' '.join(map(str, self.process.args))}")
            time.sleep(0.0002)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(10)
            self.process = None

    def words(self, workshop, near):
        """The options of the generator for an end in A (`near`) or in B."""
        words = ["--protocol", self.protocol, "--host", RELAY_IN if near else RELAY_OUT, "--port", self.port]
        return words + (["--tls", workshop.pem] if self.tls else [])

    def window(self, size, receivers):
        return WINDOWS[size]


class Kernel(System):
    """IP forwarding by the kernel of R, in place of a relay."""

    protocol, proxy, alone = "raw", True, False

    def start(self, workshop, places):
        return 0

    def words(self, workshop, near):
        return ["--protocol", "raw", "--host", FAR, "--port", self.port]


class Hub(System):
    def command(self, workshop):
        return [workshop.hub, self.port] + ([workshop.pem] if self.tls else [])


class Haproxy(System):
    protocol, program, proxy = "raw", "haproxy", True

    def version(self):
        return first_version("haproxy", "-v")

    def command(self, workshop):
        tls = f" ssl crt {workshop.pem} ca-file {workshop.pem} verify required" if self.tls else ""
        listeners = "".join(f"listen l{i}\n bind :{self.port + i}{tls}\n server s {FAR}:{self.port + i}{tls}\n" for i in range(RECEIVERS_MAX))
        splice = "" if self.tls else " option splice-auto\n"
        return ["haproxy", "-db", "-f", workshop.write(
            f"haproxy-{self.port}", "global\n nbthread 2\n maxconn 1024\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 1h\n"
            f" timeout server 1h\n{splice}{listeners}")]


class Nats(System):
    protocol, program = "nats", "nats-server"

    def version(self):
        return first_version("nats-server", "-v")

    def command(self, workshop):
        tls = f'tls {{ cert_file: "{workshop.pem}", key_file: "{workshop.pem}", ca_file: "{workshop.pem}", verify: true }}\n' if self.tls else ""
        return ["nats-server", "-c", workshop.write(f"nats-{self.port}", f"port: {self.port}\n{tls}")]


class Mosquitto(System):
    """Mosquitto, used with QoS 0."""

    protocol, program = "mqtt", "mosquitto"

    def version(self):
        return first_version("mosquitto", "-h")

    def command(self, workshop):
        tls = f"cafile {workshop.pem}\ncertfile {workshop.pem}\nkeyfile {workshop.pem}\nrequire_certificate true\n" if self.tls else ""
        return ["mosquitto", "-c", workshop.write(
            f"mosquitto-{self.port}", "persistence false\nuser root\nlog_type error\nset_tcp_nodelay true\nmax_queued_messages 0\n"
            f"max_inflight_messages 0\nlistener {self.port}\nallow_anonymous true\n{tls}")]


class Causeway(System):
    """The box. Sealed frames outside TLS and sealed frames inside TLS are measured on the same process."""

    protocol = "causeway"

    def __init__(self, title, inside=False, box=None):
        super().__init__(title, 41820)
        self.inside, self.host = inside, box
        self.beside = "hub, TLS" if inside else "hub"

    @property
    def alone(self):
        return not self.host

    def version(self):
        return first_version(BINARY, "version")

    def start(self, workshop, places):
        if self.host:
            self.process = self.host.process
            return 0
        self.box = Node(workshop.directory, "box", places.relay)
        self.box.process = self.process = places.relay.start(*self.command(workshop), stderr=subprocess.DEVNULL)
        return self.listening_after()

    def command(self, workshop):
        return [workshop.binary, "run", "--config", self.box.config]

    def stop(self):
        if self.host:
            self.process = None
        super().stop()

    def words(self, workshop, near):
        return super().words(workshop, near) + ["--inside", int(self.inside)]

    def window(self, size, receivers):
        return WINDOWS_OF_A_BOX[receivers][size]


def first_version(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    found = re.search(r"\d+\.\d+[\w.+~-]*", done.stdout + done.stderr)
    return found.group() if found else "?"


def all_systems():
    box = Causeway("Causeway")
    return [box, Causeway("Causeway, inside TLS", inside=True, box=box), Hub("hub", 7900), Hub("hub, TLS", 7901, True),
            Haproxy("haproxy", 7000), Haproxy("haproxy, TLS", 7100, True), Nats("nats", 4222), Nats("nats, TLS", 4223, True),
            Mosquitto("mosquitto", 1883), Mosquitto("mosquitto, TLS", 1884, True), Kernel("kernel", 7200)]
