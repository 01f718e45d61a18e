"""Files on their way from node to node, and whether they arrive unaltered."""

import hashlib
import os
import pathlib

from .stage import Command
from .story import check, wait_until

FILES = pathlib.Path("/tmp/files")


class Transfer:
    """One file of random bytes from `causeway peer send` to `causeway peer receive`, under way from the start."""

    def __init__(self, sender, receiver, byte_count, name="photo.bin", timeout=120):
        self.byte_count = byte_count
        self.directory = FILES / receiver.name
        self.file = self.directory / name
        self.directory.mkdir(parents=True, exist_ok=True)
        source = FILES / sender.name / name
        source.parent.mkdir(parents=True, exist_ok=True)
        data = os.urandom(byte_count)
        source.write_bytes(data)
        self.digest = hashlib.sha256(data).hexdigest()
        self.receiving = Command(
            receiver, "peer", "receive", self.directory, "--count", "1", timeout=timeout)
        self.sending = Command(sender, "peer", "send", source, "--to", receiver.name, timeout=timeout)

    def arrived(self):
        """Bytes that the receiver has written."""
        if self.file.exists():
            return self.byte_count
        return max((path.stat().st_size for path in self.directory.glob("*.part")), default=0)

    def wait_arrived(self, byte_count, timeout=60):
        wait_until(f"{byte_count} bytes have arrived", lambda: self.arrived() >= byte_count or self.is_over(), timeout, 0.02)
        self.check_under_way()

    def is_over(self):
        return self.sending.is_done() or self.receiving.is_done()

    def check_under_way(self):
        check(not self.is_over(), "the transfer is under way", lambda: (self.sending.failure, self.receiving.failure))

    def finish(self, timeout=120):
        """Wait for its end; the seconds that it took in all."""
        self.sending.wait(timeout)
        self.receiving.wait(timeout)
        story = self.receiving.output
        check(story.count(f"receiving {self.file.name} from") == 1, "it was offered once", story)
        check(digest(self.file) == self.digest, "the file arrived unaltered")
        check(not list(self.directory.glob("*.part")), "nothing unfinished is left")
        return self.sending.seconds


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def send_file(sender, receiver, byte_count, timeout=120, name="photo.bin"):
    """Send a file of random bytes, check what arrived by its hash; seconds that it took."""
    return Transfer(sender, receiver, byte_count, name, timeout).finish(timeout)
