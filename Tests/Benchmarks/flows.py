"""The measurements of one system: a flow of messages, round trips, memory, and its start. Results are in seconds and
bytes."""
import json
import pathlib
import subprocess
import time

from bench_network import NODES_A, NODES_B, processor_seconds, resident_bytes

FLOW_SECONDS_MAX = 40
LINKS = (8, 64)


class Bench:
    def __init__(self, workshop, places):
        self.workshop, self.places = workshop, places
        self.running = []

    def generator(self, system, role, near, **options):
        place = self.places.a if near else self.places.b
        words = [role, *system.words(self.workshop, near)]
        if system.protocol == "causeway":
            name = f"to{options.get('number', 0)}" if not near else "idle" if role == "idle" else "from"
            address = f"{NODES_B}.{options.get('number', 0) + 1}" if not near else NODES_A if role == "idle" else f"{NODES_A}.100"
            words += ["--key", f"{self.workshop.directory}/{name}.key", "--from", address]
        for option, value in options.items():
            words += ["--" + option.replace("_", "-"), value]
        process = place.start(self.workshop.generator, *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        return process

    def ready(self, process):
        """Wait until an end of the generator is ready. Returns its id."""
        line = process.stdout.readline()
        if not line.startswith("ready "):
            raise SystemExit(f"the generator failed: {process.communicate()[1].strip()}")
        return line.split()[1]

    def result(self, process, title):
        out, error = process.communicate(timeout=FLOW_SECONDS_MAX)
        if process.returncode:
            raise SystemExit(f"{title}: {error.strip()}")
        return json.loads(out.splitlines()[-1])

    def clear(self):
        for process in self.running:
            process.kill()
            process.wait()
        self.running = []

    def flow(self, system, size, receivers=1, one_by_one=False, seconds=1.0):
        """Send messages from one publisher to all receivers, which verify each message. Returns the measured
        figures."""
        window = system.window(size, receivers)
        if system.title == "kernel":
            self.places.forward(True)
        try:
            ends = [self.generator(system, "receive", False, number=number, size=size, window=window) for number in range(receivers)]
            ids = ",".join(self.ready(end) for end in ends)
            begin, machine, relay = time.monotonic(), machine_seconds(), clock(system)
            publisher = self.generator(system, "publish", True, size=size, window=window, seconds=seconds, receivers=receivers,
                                       one_by_one=int(one_by_one), to=ids)
            sent = self.result(publisher, system.title)
            used, passed = clock(system) - relay, time.monotonic() - begin
            busy, softirq = ((after - before) / passed for before, after in zip(machine, machine_seconds()))
            got = [self.result(end, system.title) for end in ends]
        finally:
            self.clear()
            self.places.forward(False)
        if sum(end["messages"] for end in got) != sent["messages"]:
            raise SystemExit(f"{system.title}: {sent['messages']} messages were sent, and {sum(end['messages'] for end in got)} came")
        messages, took = sent["messages"], sent["seconds"]
        return {"rate": messages / took, "cost": used / messages, "relay": used / took, "publisher": sent["processor"] / took,
                "receiver": max(end["processor"] for end in got) / took, "softirq": softirq, "machine": busy,
                "cipher": sent["cipher"]}

    def round_trips(self, system, seconds=2.0):
        """Measure round trips of messages of 64 bytes, at 500 per second."""
        if system.title == "kernel":
            self.places.forward(True)
        try:
            echo = self.generator(system, "echo", False, number=0)
            to = self.ready(echo)
            return self.result(self.generator(system, "ping", True, seconds=seconds, to=to), system.title)
        finally:
            self.clear()
            self.places.forward(False)

    def memory(self, system):
        """Measure the resident memory without a link, with 8 links, with 64 links, and after all links have ended. The
        system must be running and unused."""
        figures = [resident_bytes(system.process.pid)]
        for count in LINKS:
            try:
                if system.proxy:
                    self.ready(self.generator(system, "hold", False))
                self.ready(self.generator(system, "idle", True, count=count))
                time.sleep(1)
                figures.append(resident_bytes(system.process.pid))
            finally:
                self.clear()
            time.sleep(0.5)
        return figures + [resident_bytes(system.process.pid)]


def clock(system):
    return processor_seconds(system.process.pid) if system.process else 0


def machine_seconds():
    """The busy time of all processors, and the part of it in softirqs outside of processes. The kernel counts both in
    ticks."""
    values = [int(word) / 100 for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(values) - values[3] - values[4], values[6]
