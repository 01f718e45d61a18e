"""LEDs of the lab's machine: the kernel's LED class, with this module in place of hardware (Linux,
Documentation/leds/uleds.rst)."""

import os
import pathlib
import struct
import threading
import time

from .light import Light
from .process import run

NAME_BYTES = 64


class LED(Light):
    """The LED /sys/class/leds/NAME. The values of `changes` are its brightness, 0 or 1."""

    def __init__(self, name):
        run("modprobe", "uleds", timeout=120)
        run("modprobe", "ledtrig-timer", timeout=120)
        self.directory = pathlib.Path("/sys/class/leds") / name
        super().__init__()
        self._device = os.open("/dev/uleds", os.O_RDWR)
        os.write(self._device, struct.pack(f"<{NAME_BYTES}si", name.encode(), 1))
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            (brightness,) = struct.unpack("<i", os.read(self._device, 4))
            self.changes.append((time.monotonic(), brightness))
