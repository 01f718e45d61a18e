"""A metronome: peers agree on a clock over unreliable messages, and tick together.

    python3 metronome.py                            # on each machine; --every 0.5 for two beats in a second

Everybody follows the clock of the member with the lowest address. The model is that of NTP (RFC 5905, section 8): a question
leaves at t1 and arrives at t2, its answer leaves at t3 and arrives at t4; t1 and t4 by our clock, t2 and t3 by theirs. Then

    skew       = ((t1 - t2) + (t4 - t3)) / 2        how far our clock is ahead of theirs
    round trip = (t4 - t1) - (t3 - t2)

If both ways take equally long the skew is exact. Ways take no negative time, so it is never wrong by more than half the round
trip, however the two ways share it: that is the bound that is printed. Queues make round trips longer, and say nothing about
clocks; so of the last answers the one with the smallest bound counts (a minimum filter). Two clocks drift apart by at most 100
millionths, which the bound of an older answer grows by. A lost message costs nothing: there is another question soon.
The clock that is followed is trusted; a member that lies about it makes us tick when it wants, and nothing else.
"""
import argparse
import collections
import struct
import sys
import threading
import time

from causeway import SOCKET, CausewayError, Message, Mode, Node

ASK_SECONDS, BEAT_SECONDS_MIN = 0.2, 0.05
ANSWERS_KEPT, QUESTIONS_KEPT = 32, 64       # an answer to no question is ignored
DRIFT, QUESTION, ANSWER = 100e-6, struct.Struct(">cq"), struct.Struct(">cqqq")


class Clock:
    """Our clock, and how far it is ahead of the one that we follow."""

    def __init__(self, ahead):
        self._ahead, self._lock = round(ahead * 1e9), threading.Lock()
        self.follow(None)

    def now(self):
        """Nanoseconds by our clock, which knows no date and is never set."""
        return time.monotonic_ns() + self._ahead

    def follow(self, leader):
        with self._lock:
            self.leader, self._asked = leader, collections.deque(maxlen=QUESTIONS_KEPT)
            self._answers = collections.deque(maxlen=ANSWERS_KEPT)

    def question(self):
        with self._lock:
            self._asked.append(self.now())
            return QUESTION.pack(b"?", self._asked[-1])

    def hear(self, sender, data, now):
        """Returns the answer to a question; takes an answer to one of ours."""
        if data[:1] == b"?" and len(data) == QUESTION.size:
            return ANSWER.pack(b"!", QUESTION.unpack(data)[1], now, self.now())
        if data[:1] == b"!" and len(data) == ANSWER.size and sender == self.leader:
            _, t1, t2, t3 = ANSWER.unpack(data)
            trip = (now - t1) - (t3 - t2)
            with self._lock:
                if t1 in self._asked and 0 <= t3 - t2 and 0 <= trip:
                    self._asked.remove(t1)
                    self._answers.append((now, ((t1 - t2) + (now - t3)) / 2, trip))

    def estimate(self):
        """The best one that the last answers allow: by how much it may be wrong, skew and round trip. None before the first."""
        now = self.now()
        with self._lock:
            return min(((trip / 2 + DRIFT * (now - at), skew, trip) for at, skew, trip in self._answers), default=None)


def converse(session, clock):
    for event in session:
        now = clock.now()
        if isinstance(event, Message) and (answer := clock.hear(event.sender, event.data, now)):
            session.send(answer, [event.sender], Mode.UNRELIABLE)


def beats(session, clock, every):
    """Waits for each beat: its number by the clock that is followed, and how well we know that; None if it is our own."""
    period, last, asked = round(max(every, BEAT_SECONDS_MIN) * 1e9), None, 0
    while True:
        leader = min([session.address, *session.connected()])
        if leader != (clock.leader or session.address):
            clock.follow(None if leader == session.address else leader)
        if clock.leader and time.monotonic() >= asked + ASK_SECONDS:
            asked = time.monotonic()
            session.send(clock.question(), [leader], Mode.UNRELIABLE)
        estimate = clock.estimate()
        there = clock.now() - (round(estimate[1]) if estimate else 0)
        if there // period != last and (estimate or not clock.leader):
            if last is not None:
                yield there // period, estimate
            last = there // period
        time.sleep(min(0.05, (period - there % period) / 1e9))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--beats", type=int, metavar="N", help="end after so many")
    parser.add_argument("--ahead", type=float, default=0.0, metavar="SECONDS", help="set this clock wrong, to see it found")
    parser.add_argument("--socket", default=SOCKET)
    options = parser.parse_args()
    try:
        session = Node.connect("metronome", options.socket).gather("metronome", members_max=64)
        clock = Clock(options.ahead)
        listener = threading.Thread(target=converse, args=(session, clock), daemon=True)
        listener.start()
        for count, (number, estimate) in enumerate(beats(session, clock, options.every), 1):
            bound, skew, trip = estimate or (0, 0, 0)
            known = f"skew {skew / 1e9:+.6f} s, at most {bound / 1e6:.3f} ms wrong (round trip {trip / 1e6:.3f} ms)"
            print(f"beat {number}: {known if estimate else 'ours is the clock'}; {len(session.connected()) + 1} of us", flush=True)
            if count == options.beats or not listener.is_alive():
                break
    except (CausewayError, KeyboardInterrupt) as error:
        sys.exit(f"metronome: {error}")


if __name__ == "__main__":
    main()
