"""A GPIO chip of the lab's machine, by the kernel's gpio-sim (Linux, Documentation/admin-guide/gpio/gpio-sim.rst)."""

import os
import pathlib
import threading
import time

from .light import Light
from .process import run

LABEL = "lab-gpio"
LIGHT = 17
BUTTON = 27
KEYS = {"status-gpio": f"{LABEL}:{LIGHT}", "button-gpio": f"{LABEL}:{BUTTON}, active-low, pull-up"}


class Chip(Light):
    """The chip with the light and the button of board/lab/README.md. Only root may open the chip, because the lab
    has no udev that would grant access to others."""

    def __init__(self):
        run("modprobe", "configfs", timeout=120)
        run("modprobe", "gpio-sim", timeout=120)
        if not os.path.ismount("/sys/kernel/config"):
            run("mount", "-t", "configfs", "configfs", "/sys/kernel/config")
        self._configuration = pathlib.Path("/sys/kernel/config/gpio-sim/lab")
        bank = self._configuration / "bank0"
        bank.mkdir(parents=True)
        (bank / "num_lines").write_text("32")
        (bank / "label").write_text(LABEL)
        super().__init__()
        self.plug(True)
        threading.Thread(target=self._watch, daemon=True).start()

    def plug(self, connected):
        """Add the chip to the machine, or remove it."""
        (self._configuration / "live").write_text(str(int(connected)))
        if connected:
            name = (self._configuration / "bank0/chip_name").read_text().strip()
            self.device = pathlib.Path("/dev") / name
            self._lines = pathlib.Path("/sys/devices/platform") / (self._configuration / "dev_name").read_text().strip() / name

    def consumer(self, line):
        """The name of the program that uses a line, as the kernel's own tools report it. None if no program uses the
        line."""
        info = run("gpioinfo", "--chip", self.device, line, check=False)
        return info.split("consumer=")[1].split()[0].strip('"') if "consumer=" in info else None

    def pull(self, line, direction):
        (self._lines / f"sim_gpio{line}/pull").write_text(f"pull-{direction}")

    def press(self, seconds):
        """Press the button: connect its line to ground for `seconds`."""
        self.pull(BUTTON, "down")
        time.sleep(seconds)
        self.pull(BUTTON, "up")

    def _watch(self):
        """Record the changes of the light. The kernel does not report them, so this polls the line often."""
        while True:
            if (value := self._line_is_high()) != self.is_lit():
                self.changes.append((time.monotonic(), value))
            time.sleep(0.01)

    def _line_is_high(self):
        try:
            return (self._lines / f"sim_gpio{LIGHT}/value").read_text().strip() == "1"
        except OSError:
            return False
