"""The cost of an idle box: run.py BINARY rest [--seconds N]

The box has its default configuration, on a machine without Bluetooth, wpa_supplicant and avahi-daemon. The program
measures how often the box wakes up and its processor time, first alone and then with three peers on the loopback
interface. Run it in a network namespace."""
import argparse
import tempfile
import time

from daemons import Daemon, wait

SETTLE_SECONDS = 20


class Box(Daemon):
    """A daemon with all radios and discovery enabled, unlike the other daemons of these tests."""

    def write(self):
        super().write()
        with open(self.config) as file:
            text = file.read()
        with open(self.config, "w") as file:
            file.write(text[:text.index("[bluetooth]")])


def rest(box, peers, seconds):
    time.sleep(SETTLE_SECONDS)
    wake_ups, processor = box.wake_ups(), box.processor_seconds()
    time.sleep(seconds)
    print(f"{peers} peers: {(box.wake_ups() - wake_ups) / seconds:5.2f} wake-ups a second, "
          f"processor {(box.processor_seconds() - processor) / seconds * 100:6.3f} %", flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=int, default=60)
    seconds = options.parse_args().seconds
    with tempfile.TemporaryDirectory() as root:
        box = Box(root, "box")
        peers = [Daemon(root, f"peer{number}", [box], relay=False) for number in range(3)]
        try:
            box.start()
            rest(box, 0, seconds)
            for peer in peers:
                peer.start()
            wait("all are linked", lambda: len(box.neighbours()) == 3)
            rest(box, 3, seconds)
        finally:
            for daemon in [box, *peers]:
                daemon.stop()


if __name__ == "__main__":
    main()
