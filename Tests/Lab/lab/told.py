"""The output of client.py, the phone's program, while it runs."""

import re

import causeway

from .story import check, wait_until


class Story:
    """The events that client.py has printed, as a list of (word, {key: value})."""

    def __init__(self, process):
        self.process = process

    def lines(self, word, **wanted):
        found = []
        for line in self.process.lines():
            first, *rest = re.split(r" (?=\w+=)", line)
            pairs = dict(pair.split("=", 1) for pair in rest)
            if first == word and wanted.items() <= pairs.items():
                found.append(pairs)
        return found

    def wait(self, word, timeout=30, **wanted):
        def look():
            found = self.lines(word, **wanted)
            if not found and not self.process.is_running():
                raise AssertionError(f"the phone ended: {self.process.output()[-2000:]}")
            return found

        return wait_until(f"the phone tells “{word}”", look, timeout)[-1]


def invite(node, phone):
    """Let an application on `node` find the phone's application and invite it, and wait until both are in one session.
    Returns the session and the phone's service as it was found."""
    application = causeway.Node.connect("story", str(node.runtime / "api.sock"))
    session, sightings = application.open_session("story"), application.browse("story")
    while (sighting := sightings.next(40)).kind != "found":
        pass
    outcome = session.invite(sighting.address, b"come in").wait(40)
    check(outcome == (causeway.Outcome.CONNECTED, ""), "the invitation connected them", outcome)
    check(phone.wait("invited")["context"] == "come in", "the phone reads the context")
    check(phone.wait("joined")["session"] == session.id.hex(), "and joins this session")
    return session, sighting
