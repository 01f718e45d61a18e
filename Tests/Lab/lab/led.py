"""LEDs of the lab's machine: the kernel's LED class, with this module in place of hardware (Linux,
Documentation/leds/uleds.rst)."""

import os
import pathlib
import struct
import threading
import time

from .process import run

NAME_BYTES = 64


class LED:
    """The LED /sys/class/leds/NAME. `changes` contains (time, brightness) for each change."""

    def __init__(self, name):
        run("modprobe", "uleds", timeout=120)
        run("modprobe", "ledtrig-timer", timeout=120)
        self.directory = pathlib.Path("/sys/class/leds") / name
        self.changes = []
        self._device = os.open("/dev/uleds", os.O_RDWR)
        os.write(self._device, struct.pack(f"<{NAME_BYTES}si", name.encode(), 1))
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            (brightness,) = struct.unpack("<i", os.read(self._device, 4))
            self.changes.append((time.monotonic(), brightness))

    def pattern(self, seconds=3):
        """Watch the LED for `seconds`. Returns how many times it was switched on, which is 0 for a steady LED, and
        whether it is lit at the end."""
        before = len(self.changes)
        time.sleep(seconds)
        return sum(1 for _, brightness in self.changes[before:] if brightness), self.is_lit()

    def is_lit(self):
        return bool(self.changes and self.changes[-1][1])
