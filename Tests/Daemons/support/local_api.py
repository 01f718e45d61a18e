"""Functions for tests of the local API, beside the client of Examples/python."""
import time


def path(daemon):
    """The socket at which a daemon serves the local API."""
    return f"{daemon.directory}/run/api.sock"


def following(session, kind, timeout=20, **fields):
    """The next event of a kind whose fields have these values. Earlier events are discarded."""
    end = time.monotonic() + timeout
    while True:
        event = session.next(timeout=max(0.01, end - time.monotonic()))
        if isinstance(event, kind) and all(getattr(event, name) == value for name, value in fields.items()):
            return event
        assert event is not None, f"the session ended before {kind.__name__} {fields}"
