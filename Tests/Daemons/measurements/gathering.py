"""Many applications that auto-join at once: run.py BINARY gathering [--applications N[,N...]] [--settle SECONDS]
[--rest SECONDS]

Four daemons run on the loopback interface, each linked with all others. All applications are in this process. Each is a
client written from docs/local-api.md (Examples/python/causeway.py). For each N the program measures the time until all
applications are in one session and each sees all others. Then each sends one message to all others at once. The printed
resource use is the median of the four daemons."""
import argparse
import os
import queue
import statistics
import sys
import tempfile
import threading
import time

from causeway import Ended, Message, Node, Result, Room
from daemons import Daemon, wait

DAEMONS = 4
WAIT_SECONDS = 150
MESSAGE_BYTES = 100


class Application:
    """One client, whose thread reads all its events."""

    def __init__(self, daemon, number):
        self.node = Node.connect(f"application {number}", f"{daemon.directory}/run/api.sock")
        self.session = self.node.open_session("story", 64)
        self.came, self.room, self.lost, self.ended = [], queue.SimpleQueue(), 0, None
        threading.Thread(target=self.read, daemon=True).start()

    def begin(self):
        self.session.gather()
        self.service = self.node.advertise("story", {})

    def read(self):
        for event in self.session:
            if isinstance(event, Message):
                self.came.append(time.monotonic() - float(event.data[:MESSAGE_BYTES].split(b" ")[0]))
            elif isinstance(event, Room):
                self.room.put(event.address)
            elif isinstance(event, Ended):
                self.ended = event

    def say(self):
        """Send one message to each other member. If a member's buffer has no space, send it again when the space is
        reported."""
        data = f"{time.monotonic()} ".encode().ljust(MESSAGE_BYTES, b".")
        results = self.session.send(data, timeout=WAIT_SECONDS)
        waiting = {address for address, result in results.items() if result == Result.NO_ROOM}
        self.lost += sum(result not in (Result.DELIVERED, Result.NO_ROOM) for result in results.values())
        while waiting:
            try:
                address = self.room.get(timeout=30)
            except queue.Empty:
                self.lost += len(waiting)
                return
            if address in waiting:
                result = self.session.send(data, [address], timeout=WAIT_SECONDS)[address]
                if result != Result.NO_ROOM:
                    waiting.remove(address)
                    self.lost += result != Result.DELIVERED


def until(condition):
    """Wait until the condition is true. Returns the seconds, or None after WAIT_SECONDS."""
    start = time.monotonic()
    while time.monotonic() - start < WAIT_SECONDS:
        if condition():
            return time.monotonic() - start
        time.sleep(0.05)
    return None


def middle(values):
    return statistics.median(values)


def measure(root, count, settle, rest):
    daemons = []
    for number in range(DAEMONS):
        daemons.append(Daemon(root, f"d{number}", daemons[:], trust="policy = open"))
    try:
        for daemon in daemons:
            daemon.start()
        for daemon in daemons:
            wait("all are linked", lambda: len(daemon.neighbours()) == DAEMONS - 1, 30)
        applications = [Application(daemons[number % DAEMONS], number) for number in range(count)]
        before = [daemon.processor_seconds() for daemon in daemons]
        for application in applications:
            application.begin()
        others = count - 1
        together = until(lambda: all(len(each.session.connected()) == others for each in applications)
                         and len({each.session.id for each in applications}) == 1)
        spent = middle([daemon.processor_seconds() - was for daemon, was in zip(daemons, before)])
        if together is None:
            sessions = len({each.session.id for each in applications})
            print(f"{count:12}    never: {sessions} sessions after {WAIT_SECONDS} s; {spent:.2f} s of a processor", flush=True)
            return False
        time.sleep(settle)
        before = [(daemon.processor_seconds(), daemon.wake_ups()) for daemon in daemons]
        time.sleep(rest)
        idle = [((daemon.processor_seconds() - was[0]) / rest * 100, (daemon.wake_ups() - was[1]) / rest)
                for daemon, was in zip(daemons, before)]
        before = [daemon.processor_seconds() for daemon in daemons]
        senders = [threading.Thread(target=each.say, daemon=True) for each in applications]
        for sender in senders:
            sender.start()
        said = until(lambda: all(len(each.came) >= others for each in applications))
        for sender in senders:
            sender.join(30)
        cost = middle([daemon.processor_seconds() - was for daemon, was in zip(daemons, before)])
        came = [latency for each in applications for latency in each.came] or [0]
        lost = sum(each.lost for each in applications) + count * others - len(came)
        memory = middle([daemon.resident_bytes() for daemon in daemons]) / 2**20
        print(f"{count:12} {together:8.1f} s {spent:8.2f} s {middle([x for x, _ in idle]):8.2f} {middle([x for _, x in idle]):8.1f}/s"
              f" {said or 0:9.2f} s {middle(came) * 1e3:7.0f} {max(came) * 1e3:7.0f} ms {lost:6} {cost:8.2f} s {memory:8.1f} MiB",
              flush=True)
        return said is not None and lost == 0
    finally:
        for daemon in daemons:
            daemon.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--applications", default="8,16,32,64", help="how many, one measurement each (default 8,16,32,64)")
    parser.add_argument("--settle", type=float, default=15, help="seconds between together and rest (default 15)")
    parser.add_argument("--rest", type=float, default=10, help="seconds at rest that are measured (default 10)")
    options = parser.parse_args()
    print("applications   together processor at rest: % wake-ups  all came    middle, maximum   lost processor    memory",
          flush=True)
    good = True
    for count in map(int, options.applications.split(",")):
        with tempfile.TemporaryDirectory(prefix="causeway-") as root:
            good = measure(root, count, options.settle, options.rest) and good
    # The program exits without stopping the client threads, because these would report that their daemons are gone.
    sys.stdout.flush()
    os._exit(0 if good else 1)


if __name__ == "__main__":
    main()
