"""What a scenario sees of a status LED, whatever drives it."""

import time


class Light:
    """`changes` contains (time, value) for each change, in the order in which a thread of the subclass appends them.
    A question is answered from `changes` alone. If it read the hardware, a change could be counted after an answer that
    contains it already."""

    def __init__(self):
        self.changes = []

    def is_lit(self):
        return bool(self.changes and self.changes[-1][1])

    def pattern(self, seconds=3):
        """Watch the LED for `seconds`. Returns how many times it was switched on, which is 0 for a steady LED, and
        whether it is lit at the end."""
        before = len(self.changes)
        time.sleep(seconds)
        return sum(1 for _, value in self.changes[before:] if value), self.is_lit()

    def lit_seconds(self, seconds):
        """Watch the LED for `seconds`. Returns the duration of each time that it was lit."""
        before = len(self.changes)
        time.sleep(seconds)
        changes = self.changes[before:]
        return [end - start for (start, value), (end, _) in zip(changes, changes[1:]) if value]
