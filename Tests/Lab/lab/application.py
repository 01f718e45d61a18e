"""The applications of a scenario: clients of the local API, with Examples/python. Auto-join connects them in one
session."""

import threading
import time

import causeway
import resources

from .story import check, wait_until

SERVICE = "story"


class Application:
    """A client of the local API. Its thread handles the events of its session. Files that are offered to it are stored
    in `directory`."""

    def __init__(self, node, members_max=0, unsealed=False, directory=None):
        self.name, self.directory = node.name, directory
        self.node = causeway.Node.connect("story", str(node.runtime / "api.sock"))
        self.session = self.node.open_session(SERVICE, members_max, unsealed=unsealed)
        self.messages, self.states, self.streams, self.telling = [], [], [], []
        self.transfers = resources.Transfers(self.session, directory, accept=lambda incoming: None if directory else "no directory")
        threading.Thread(target=self.listen, daemon=True).start()
        self.session.gather()
        self.service = self.node.advertise(SERVICE, {"name": self.name})
        self.address = self.session.address

    def listen(self):
        for event in self.session:
            match event:
                case causeway.Message():
                    self.messages.append((event.sender, event.data))
                case causeway.Member():
                    self.states.append((event.address, causeway.State(event.state)))
                case causeway.IncomingStream() if not self.transfers.take(event):
                    threading.Thread(target=self.read, args=[event], daemon=True).start()

    def read(self, stream):
        self.streams.append((stream.name, b"".join(stream)))

    def meets(self, others):
        return {other.address for other in others} <= set(self.session.connected())


def everybody_sends_to_everybody(applications):
    """Send a message between each directed pair of applications, one after the other. Returns the milliseconds of each
    message, from the request to the acknowledgement by the receiver."""
    times = []
    for sender in applications:
        for receiver in applications:
            if sender is receiver:
                continue
            line = f"{sender.name} to {receiver.name}".encode()
            began = time.monotonic()
            results = sender.session.send(line, to=[receiver.address], timeout=20)
            times.append((time.monotonic() - began) * 1000)
            check(results == {receiver.address: causeway.Result.DELIVERED}, f"{line.decode()}: delivered", results)
            wait_until(f"{line.decode()} is read", lambda: (sender.address, line) in receiver.messages, 5, 0.02)
    return times
