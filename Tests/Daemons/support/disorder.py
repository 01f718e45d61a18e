"""Applications that send requests in random order: disorder.py SOCKET SEED SECONDS [CLIENTS]

Each application is a client of docs/local-api.md. It opens sessions, invites, auto-joins, sends and streams at random,
mostly as the protocol allows. It writes its packets in pieces, pauses its reads, and disconnects in the middle of
packets. For the last two seconds the clients only read. At the end the program prints one line: its requests and the
received events, counted by kind."""
import collections
import random
import socket
import sys
import time

import causeway
from causeway import Address, Mode, Reader

TYPES = ["story", "tale"]
UNSENT_MAX, UNREAD_ROUNDS = 400_000, [5, 50, 500]
REST_SECONDS = 2
LIMITS = [0, 100, 41_000, 200_000, 2**40, 2**64 - 1]
# The kinds of requests, each with its relative frequency.
WISHES = {"open": 4, "advertise": 4, "invite": 8, "answer": 8, "stream": 8, "take": 8, "write": 24, "end": 4, "send": 16, "leave": 2,
          "close": 1, "eject": 1, "decide": 1, "connect": 1, "cancel": 1, "window": 2, "browse": 0.3, "pause": 1, "go": 0.5,
          "spoil": 0.3}


class Stream:
    def __init__(self, is_own):
        self.is_own, self.limit, self.count = is_own, 0, 0


class Client:
    known, told = [], collections.Counter()

    def __init__(self, path, name, chance):
        self.path, self.name, self.chance, self.socket = path, name, chance, None
        self.connect()

    def connect(self):
        self.unread, self.unsent, self.last, self.pause = b"", b"", 0, 0
        self.sessions, self.streams, self.offered, self.invitations = {}, {}, [], []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(self.path)
        self.socket.setblocking(False)
        self.ask(causeway.hello(self.number(), self.name))
        for kind in TYPES:
            self.ask(causeway.browse(self.number(), kind))

    def number(self):
        self.last += 1
        return self.last

    def ask(self, packet):
        if len(self.unsent) < UNSENT_MAX:
            self.unsent += packet

    def close(self):
        self.socket.close()
        self.socket = None

    # Events

    def move(self):
        """Write one piece of the waiting packets and read one piece, unless the client pauses its reads."""
        try:
            if self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent[:self.chance.choice([1, 100, 4096, 300_000])]):]
            if self.pause > 0:
                self.pause -= 1
                return
            data = self.socket.recv(self.chance.choice([100, 4096, 65_536]))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.close()
        self.unread += data
        while len(self.unread) >= 4 and len(self.unread) >= 4 + int.from_bytes(self.unread[:4]):
            end = 4 + int.from_bytes(self.unread[:4])
            packet, self.unread = self.unread[4:end], self.unread[end:]
            self.hear(Reader(packet))

    def hear(self, event):
        kind, number = event.number(1), event.number(4)
        self.told[kind] += 1
        match kind:
            case 130:
                _, node, _ = event.number(2), event.bytes(16), event.peer()
                self.known += [Address(node, event.service()[0]) for _ in range(event.number(1))]
                del self.known[:-100]
            case 132:
                self.invitations.append(event.number(4))
            case 135:
                self.sessions.pop(number, None)
            case 136 if number in self.sessions:
                self.sessions[number].append(event.address())
            case 140:
                self.offered.append(event.number(4))
            case 141 if number in self.streams:
                self.streams[number].count += event.number(4)
            case 142 if number in self.streams:
                self.streams[number].limit = event.number(8)
            case 143:
                self.streams.pop(number, None)

    # Requests

    def wish(self):
        if self.socket is None:
            return self.connect()
        some = self.chance.choice
        session = some([0, *self.sessions])
        members = self.sessions.get(session) or self.known or [Address(bytes(16), 1)]
        to, number = some(members), self.number()
        match self.chance.choices([*WISHES], [*WISHES.values()])[0]:
            case "open":
                self.sessions[number] = []
                self.ask(causeway.open_session(number, some(TYPES), some([0, 0, 0, 1, 2]), some([0, 0, 2, 8, 64]), some([False] * 9 + [True])))
                self.ask(causeway.window(number, some(LIMITS)))
                if some([False, True]):
                    self.ask(causeway.gather(self.number(), number))
            case "advertise":
                self.ask(causeway.advertise(some([number, 4]), some(TYPES), {"of": self.name * some([1, 9])}))
            case "invite":
                self.ask(causeway.invite(number, session, some(self.known or members), some([0, 100, 5_000, 2**32 - 1]), bytes(some([0, 4096, 4097]))))
            case "answer" if self.invitations:
                self.ask(causeway.answer(number, self.invitations.pop(), session, "no" if session == 0 else ""))
            case "stream":
                self.streams[number] = Stream(True)
                self.ask(causeway.open_stream(number, session, to, "n" * some([1, 63, 64])))
            case "take" if self.offered:
                self.streams[number] = Stream(False)
                self.ask(causeway.take(number, self.offered.pop(), some([1, 1, 1, 0]), some(LIMITS)))
            case "write" if self.streams:
                which = some([*self.streams])
                self.write(which, self.streams[which])
            case "end" if self.streams:
                self.ask(some([causeway.finish, causeway.reset])(number, some([*self.streams])))
            case "send":
                every = [some(members) for _ in range(some([0, 1, 1, 2, 64]))]
                self.ask(causeway.send(number, session, some(list(Mode)), every, bytes(some([0, 100, 1900, 1901, 20_000, 65_000, 65_001]))))
            case "leave":
                self.ask(causeway.leave(number, session, "bye"))
            case "close":
                self.ask(causeway.close(number, self.chance.randint(1, self.last)))
            case "eject":
                self.ask(causeway.eject(number, session, to, "out"))
            case "decide":
                self.ask(causeway.decide(number, session, to, some([False, True])))
            case "connect":
                self.ask(causeway.connect(number, session, to, some([100, 5_000])))
            case "cancel":
                self.ask(causeway.cancel(number, self.chance.randint(1, self.last)))
            case "window":
                self.ask(causeway.window(session, some(LIMITS)))
            case "browse":
                self.ask(causeway.browse(number, some([*TYPES, ""])))
            case "pause":
                self.pause = some(UNREAD_ROUNDS)
            case "go":
                self.close()
            case "spoil":
                packet = bytearray(causeway.send(number, session, Mode.RELIABLE, members[:3], bytes(100)))
                packet[self.chance.randrange(4, len(packet))] ^= 255
                self.ask(bytes(packet))

    def write(self, number, stream):
        """Write bytes up to the window of the stream, and in one of 50 calls more than that."""
        if not stream.is_own:
            return self.ask(causeway.stream_window(number, stream.count + self.chance.choice(LIMITS[:4])))
        room = stream.limit - stream.count + self.chance.choice([0] * 49 + [5_000])
        while room > 0:
            part = min(room, self.chance.choice([1, 4096, 4096, 4096]))
            self.ask(causeway.write(number, bytes(part)))
            stream.count, room = stream.count + part, room - part


def main():
    path, seed, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    chance = random.Random(seed)
    clients = [Client(path, f"disorder {seed} {number}", chance) for number in range(int((sys.argv[4:] or ["12"])[0]))]
    end, wishes = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for client in clients:
            for _ in range(chance.choice([0, 1, 3])):
                client.wish()
                wishes += 1
            if client.socket:
                client.move()
        time.sleep(0.002)
    end += REST_SECONDS
    while time.monotonic() < end:
        for client in clients:
            client.pause = 0
            if client.socket:
                client.move()
        time.sleep(0.002)
    print(f"{wishes} wishes, {sum(Client.told.values())} events: {dict(sorted(Client.told.items()))}", flush=True)


if __name__ == "__main__":
    main()
