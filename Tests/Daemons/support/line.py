"""Three daemons on the loopback interface, a – box – b. a and b are linked only with the box, and have an application
each."""
import time

from daemons import Daemon
from talk import Talk

SEALED, CLEAR = "sealed", "in clear"


class Network:
    """The network a – box – b, with an application at a and at b."""

    def __init__(self, root, title):
        extra = "[peer]\nencryption = none\n" if title == CLEAR else ""
        name = title.replace(" ", "-")
        self.box = Daemon(root, f"{name}-box", extra=extra)
        self.a = Daemon(root, f"{name}-a", [self.box], relay=False, extra=extra)
        self.b = Daemon(root, f"{name}-b", [self.box], relay=False, extra=extra)
        for daemon in (self.box, self.a, self.b):
            daemon.start()
        self.talk = Talk(self.a, self.b, unsealed=title == CLEAR)

    def round_trips(self, count=1000, pause=0.002):
        """Measure `count` round trips. Returns the microseconds of each."""
        times = []
        for _ in range(count):
            times.append(self.talk.round_trip() * 1e6)
            time.sleep(pause)
        return times

    def send(self, count, size, mode):
        """Send `count` messages. Returns the seconds, the processor seconds of the box, and the frames that the box
        forwarded."""
        frames = self.box.status["box"]["frames_forwarded"]
        before, start = self.box.processor_seconds(), time.monotonic()
        self.talk.send_many(count, size, mode)
        seconds, used = time.monotonic() - start, self.box.processor_seconds() - before
        return seconds, used, self.box.status["box"]["frames_forwarded"] - frames

    def stop(self):
        self.talk.close()
        for daemon in (self.a, self.b, self.box):
            daemon.stop()
