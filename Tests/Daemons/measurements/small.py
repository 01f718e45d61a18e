"""The cost of short messages: run.py BINARY small [BYTES]

Three daemons run on the loopback interface: a – box – b. An application at a sends to one at b, with as many messages
in flight as the local API allows. Both applications write and read many packets of the local API in one system call.

The program prints messages per second, messages per frame, and the processor time of each daemon per message. Frames
are half of those that the box forwards, because each one from a is acknowledged by one from b."""
import os
import signal
import socket
import sys
import tempfile
import time

import causeway
from daemons import Daemon

NAME, SERVICE, SESSION, INVITATION, FIRST_MESSAGE = "small", 2, 3, 4, 1000
SECONDS, ROUNDS = 3, 3
DONE, WELCOME, INVITED, INVITATION_ENDED, SENT, ROOM = 128, 129, 132, 133, 138, 139


class Application:
    """A client with a service, and with a session whose messages all arrive here."""

    def __init__(self, daemon):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(f"{daemon.directory}/run/api.sock")
        self.rest, self.heard = b"", []
        self.say(causeway.hello(1, NAME), causeway.open_session(SESSION, NAME, 0, 0))
        self.say(causeway.advertise(SERVICE, NAME, {}), causeway.window(SESSION, 1 << 62))
        welcome = self.wait(WELCOME)
        self.results_max = int.from_bytes(welcome[-4:-2])
        self.address = causeway.Address(welcome[10:26], int.from_bytes(self.wait(DONE, SERVICE)[-4:]))

    def say(self, *packets):
        self.socket.sendall(b"".join(packets))

    def packets(self):
        """Receive once. Returns the complete packets: the type, the number, and the rest of each."""
        data, offset, found = self.rest + self.socket.recv(65_536), 0, []
        while len(data) - offset >= 4:
            end = offset + 4 + int.from_bytes(data[offset:offset + 4])
            if end > len(data):
                break
            found.append((data[offset + 4], int.from_bytes(data[offset + 5:offset + 9]), data[offset + 9:end]))
            offset = end
        self.rest = data[offset:]
        return found

    def wait(self, kind, number=None):
        """Wait for the next event of a type, about the object `number` or about any. Returns the event's fields."""
        while True:
            for index, event in enumerate(self.heard):
                if event[0] == kind and number in (None, event[1]):
                    return self.heard.pop(index)[2]
            self.heard += self.packets()

    def meet(self, other):
        """Invite another application into a session, and wait until it has joined."""
        while True:
            self.say(causeway.invite(INVITATION, SESSION, other.address, 30_000, b""))
            if self.wait(DONE, INVITATION)[0] == 0:
                break
            time.sleep(0.2)                 # the other node is not a peer yet
        other.say(causeway.answer(INVITATION, int.from_bytes(other.wait(INVITED)[:4]), SESSION, ""))
        assert self.wait(INVITATION_ENDED, INVITATION)[4] == 0, "the invitation is not accepted"

    def send_for(self, seconds, data):
        """Send the same message repeatedly. Returns the number of delivered messages and the seconds."""
        delivered, waiting, hears_of_room, number = 0, 0, True, FIRST_MESSAGE
        start = time.monotonic()
        while (more := time.monotonic() - start < seconds) or waiting:
            if more and hears_of_room and waiting < self.results_max:
                numbers = range(number, number + self.results_max - waiting)
                self.say(*(causeway.send(each, SESSION, 0, [], data) for each in numbers))
                waiting, number = self.results_max, numbers.stop
            for kind, _, fields in self.packets():
                if kind == SENT:
                    delivered += fields[-1] == 0
                    hears_of_room = hears_of_room and fields[-1] != 2
                elif kind == DONE:
                    waiting -= 1
                elif kind == ROOM:
                    hears_of_room = True
            hears_of_room = hears_of_room or not waiting
        return delivered, time.monotonic() - start


def reader_of(application):
    """Start a process that reads and discards all packets to an application. The caller kills the process."""
    reader = os.fork()
    if reader == 0:
        while application.socket.recv(262_144):
            pass
        os._exit(0)
    return reader


def main():
    data = os.urandom(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
    with tempfile.TemporaryDirectory() as root:
        box = Daemon(root, "box").start()
        a, b = (Daemon(root, name, [box], relay=False).start() for name in "ab")
        here, there = Application(a), Application(b)
        here.meet(there)
        reader = reader_of(there)
        for _ in range(ROUNDS):
            frames, before = box.status["box"]["frames_forwarded"], [daemon.processor_seconds() for daemon in (a, box, b)]
            delivered, seconds = here.send_for(SECONDS, data)
            frames = box.status["box"]["frames_forwarded"] - frames
            spent = ", ".join(f"{daemon.name} {(daemon.processor_seconds() - used) / delivered * 1e6:.1f}"
                              for daemon, used in zip((a, box, b), before))
            print(f"{len(data)} bytes: {delivered / seconds:7.0f} messages a second, {2 * delivered / frames:5.1f} in a frame; "
                  f"µs a message: {spent}", flush=True)
        os.kill(reader, signal.SIGKILL)
        os.waitpid(reader, 0)
        for daemon in (a, b, box):
            daemon.stop()


if __name__ == "__main__":
    main()
