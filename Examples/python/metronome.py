"""A metronome: peers agree on a clock over unreliable messages and tick together.

    python3 metronome.py                            # on each machine; --every 0.5 for two beats per second

Every member follows the clock of the member with the lowest address. The model is that of NTP (RFC 5905, section 8): a request
leaves at t1 and arrives at t2, and its reply leaves at t3 and arrives at t4; t1 and t4 by our clock, t2 and t3 by theirs. Then

    skew       = ((t1 - t2) + (t4 - t3)) / 2        how far our clock is ahead of theirs
    round trip = (t4 - t1) - (t3 - t2)

If both directions take equally long, the skew is exact. No direction takes negative time, so the error is at most half the
round trip; the program prints this bound. Queues lengthen round trips and carry no information about clocks, so the reply with
the smallest bound among the last ones is used (a minimum filter). Two clocks drift apart by at most 100 ppm, and the bound of
an older reply grows accordingly. A lost message costs nothing, because another request follows soon. The leader's clock is
trusted: a lying member can only shift our ticks.
"""
import argparse
import collections
import struct
import sys
import threading
import time

from causeway import SOCKET, CausewayError, Message, Mode, Node

ASK_SECONDS, BEAT_SECONDS_MIN = 0.2, 0.05
ANSWERS_KEPT, QUESTIONS_KEPT = 32, 64       # a reply to a request that is not kept is ignored
DRIFT, QUESTION, ANSWER = 100e-6, struct.Struct(">cq"), struct.Struct(">cqqq")


class Clock:
    """This member's clock, and the estimate of its skew to the leader's clock."""

    def __init__(self, ahead):
        self._ahead, self._lock = round(ahead * 1e9), threading.Lock()
        self.follow(None)

    def now(self):
        """Nanoseconds by this member's clock, which is monotonic and never set."""
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
        """Returns the reply to a member's request. Records the leader's reply to a request of this member, and returns None."""
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
        """The estimate with the smallest error bound: bound, skew and round trip, in ns. None before the first reply."""
        now = self.now()
        with self._lock:
            return min(((trip / 2 + DRIFT * (now - at), skew, trip) for at, skew, trip in self._answers), default=None)


def converse(session, clock):
    for event in session:
        now = clock.now()
        if isinstance(event, Message) and (answer := clock.hear(event.sender, event.data, now)):
            session.send(answer, [event.sender], Mode.UNRELIABLE)


def beats(session, clock, every):
    """Yields each beat as its number by the leader's clock and the estimate. It is None if this member is the leader."""
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
    parser.add_argument("--beats", type=int, metavar="N", help="stop after N beats")
    parser.add_argument("--ahead", type=float, default=0.0, metavar="SECONDS", help="set this clock ahead, as a test")
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
            print(f"beat {number}: {known if estimate else 'this clock leads'}; {len(session.connected()) + 1} members", flush=True)
            if count == options.beats or not listener.is_alive():
                break
    except (CausewayError, KeyboardInterrupt) as error:
        sys.exit(f"metronome: {error}")


if __name__ == "__main__":
    main()
