"""File transfers between nodes, with checks that the files arrive unchanged."""

import contextlib
import hashlib
import os
import pathlib

from .command import Command
from .story import check, wait_until

FILES = pathlib.Path("/tmp/files")
# The maximum number of bytes sent twice after an interruption: records that had been sent and had not arrived.
AGAIN_BYTES_MAX = 320 << 10


class Transfer:
    """One file of random bytes from `causeway send` to `causeway receive`. The constructor starts both commands."""

    def __init__(self, sender, receiver, byte_count, name="photo.bin", data=None, timeout=120, asks=False):
        """With `asks` the receiver runs on a terminal and asks whether to accept the file."""
        self.byte_count = byte_count
        self.directory = FILES / receiver.name
        self.file = self.directory / name
        self.directory.mkdir(parents=True, exist_ok=True)
        source = FILES / sender.name / name
        source.parent.mkdir(parents=True, exist_ok=True)
        data = data or os.urandom(byte_count)
        source.write_bytes(data)
        self.digest = hashlib.sha256(data).hexdigest()
        wanted = () if asks else ("--from", sender.status()["box"]["id"])
        self.receiving = Command(receiver, "receive", self.directory, "--count", "1", *wanted, on_terminal=asks)
        self.sending = Command(sender, "send", source, receiver.name, "--wait", timeout)

    def arrived(self):
        """The number of bytes that the receiver has written."""
        if self.file.exists():
            return self.byte_count
        with contextlib.suppress(FileNotFoundError):
            return sum(path.stat().st_size for path in self.directory.glob(".*.causeway-part/files/*"))
        return self.byte_count                       # the complete file was moved after the first look

    def wait_arrived(self, byte_count, timeout=60):
        wait_until(f"{byte_count} bytes have arrived", lambda: self.arrived() >= byte_count or self.is_over(), timeout, 0.02)
        self.check_under_way()

    def is_over(self):
        return self.sending.is_done() or self.receiving.is_done()

    def check_under_way(self):
        check(not self.is_over(), "the transfer is under way", lambda: (self.sending.report(), self.receiving.report()))

    def finish(self, timeout=120):
        """Wait for the end, and check the file. Returns the seconds from the offer until the sender reports that the
        file is stored."""
        self.sending.end(0, timeout)
        self.receiving.end(0, timeout)
        for command, word in ((self.sending, "asking"), (self.sending, "sent"), (self.receiving, "received")):
            check(len(command.told(word)) == 1, f"{command} tells “{word}” once", command.report)
        check(digest(self.file) == self.digest, "the file arrived unaltered")
        check([path.name for path in self.directory.glob(".*")] == [], "nothing unfinished is left")
        (offered, _), (ended, sent) = self.sending.told("asking")[0], self.sending.told("sent")[0]
        self.again = sent["moved"] - self.byte_count
        check(0 <= self.again <= AGAIN_BYTES_MAX, "what had arrived is not sent again", self.again)
        return ended - offered


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def send_file(sender, receiver, byte_count, timeout=120, name="photo.bin"):
    """Send a file of random bytes and check its hash at the receiver. Returns the seconds that this took."""
    return Transfer(sender, receiver, byte_count, name, timeout=timeout).finish(timeout)
