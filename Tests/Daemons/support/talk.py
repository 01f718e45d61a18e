"""Two applications in one session, each on its own daemon. They use the client of Examples/python."""
import collections
import os
import queue
import threading
import time

import causeway
from causeway import CausewayError, Mode, Outcome, Result

SERVICE = "talk"
OUTSTANDING = 32


class Talk:
    """The two applications. `a` and `b` are daemons that are peers. The application on b returns each message that
    begins with “echo”."""

    def __init__(self, a, b, unsealed=False):
        self.ends = [causeway.Node.connect(SERVICE, f"{daemon.directory}/run/api.sock") for daemon in (a, b)]
        self.session, self.theirs = (end.open_session(SERVICE, unsealed=unsealed) for end in self.ends)
        invitations = self.ends[1].advertise(SERVICE)
        threading.Thread(target=lambda: invitations.next().accept(self.theirs), daemon=True).start()
        self.to = next(sighting.address for sighting in self.ends[0].browse(SERVICE) if sighting.kind == "found")
        outcome = self.session.invite(self.to).wait(30)
        if outcome[0] != Outcome.CONNECTED:
            raise SystemExit(f"the two applications do not meet: {outcome}")
        self.echoes, self.room = queue.SimpleQueue(), threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._answer, daemon=True).start()

    def round_trip(self):
        """Send one message and wait for its echo. Returns the seconds that this took."""
        start = time.perf_counter()
        sending = self.session.post(b"echo")
        self.echoes.get(timeout=30)
        seconds = time.perf_counter() - start
        sending.wait(60)
        return seconds

    def send_many(self, count, size, mode=Mode.RELIABLE):
        """Send `count` messages of `size` bytes and wait until all have arrived."""
        message, on_their_way = os.urandom(size), collections.deque()
        while count or on_their_way:
            if count and len(on_their_way) < OUTSTANDING:
                on_their_way.append(self.session.post(message, mode=mode))
                count -= 1
            elif self._result(on_their_way.popleft()) == Result.NO_ROOM:
                # A single event reports new buffer space for all refused messages together. So the results of all
                # messages in flight are read before the wait.
                count += 1 + sum(self._result(sending) == Result.NO_ROOM for sending in on_their_way)
                on_their_way.clear()
                self.room.wait(60)
                self.room.clear()

    def close(self):
        for end in self.ends:
            end.close()

    def _result(self, sending):
        result = sending.wait(60)[self.to]
        if result not in (Result.DELIVERED, Result.NO_ROOM):
            raise SystemExit(f"a message was not delivered: {result.name}")
        return result

    def _listen(self):
        for event in self.session:
            match event:
                case causeway.Message():
                    self.echoes.put(event.data)
                case causeway.Room():
                    self.room.set()

    def _answer(self):
        try:
            for event in self.theirs:
                if isinstance(event, causeway.Message) and event.data[:4] == b"echo":
                    self.theirs.post(event.data)
        except CausewayError:
            pass
