"""Many daemons on one LAN: run.py BINARY hall [--nodes N[,N...]] [--settle SECONDS] [--rest SECONDS] [--leave K]

Each daemon has its own network namespace with one interface, which is a port of a bridge. No traffic leaves this
machine. For each N the program measures the time until every node sees all others, and the cost of a node at rest. Then
K nodes leave at once and come back, and the program measures the time until every node sees all others again. Needs
root."""
import argparse
import statistics
import tempfile
import time

from lan import Attendee, begin, follow, make_network, whole

WAIT_SECONDS = 120


def measure(count, settle, rest, leave):
    with tempfile.TemporaryDirectory(prefix="causeway-") as root:
        attendees = [Attendee(root, number + 1) for number in range(count)]
        try:
            start = begin(attendees)
            found = follow(attendees, lambda: whole(attendees, count - 1), WAIT_SECONDS) and time.monotonic() - start
            follow(attendees, lambda: False, settle)
            before, at = [attendee.costs() for attendee in attendees], time.monotonic()
            follow(attendees, lambda: False, rest)
            span = time.monotonic() - at
            spent = [tuple(new - old for new, old in zip(attendee.costs(), was)) for attendee, was in zip(attendees, before)]
            links = [len(attendee.neighbours()) for attendee in attendees]
            returned = come_back(attendees, leave) if leave else None
        finally:
            for attendee in attendees:
                attendee.stop()
    processor, sent, wake_ups = (statistics.mean(column) for column in zip(*spent))
    print(f"{count:5} {seconds(found):>9} {min(links):4}–{max(links):<4} {sent / 1000 * 60 / span:12,.0f} "
          f"{processor / span * 100:10.2f} {wake_ups / span:10.1f} {seconds(returned):>11}", flush=True)


def come_back(attendees, leave):
    """Kill the first `leave` attendees, and start them again when the others have noticed. Returns the seconds from
    this start until every attendee sees all others."""
    leavers, stayers = attendees[:leave], attendees[leave:]
    for attendee in leavers:
        attendee.stop()
    if follow(stayers, lambda: whole(stayers, len(stayers) - 1), WAIT_SECONDS) is None:
        return None
    start = begin(leavers)
    if follow(attendees, lambda: whole(attendees, len(attendees) - 1), WAIT_SECONDS) is None:
        return None
    return time.monotonic() - start


def seconds(value):
    return f"{value:.1f} s" if value else "never"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="8,16", help="how many daemons, one measurement each (default 8,16)")
    parser.add_argument("--settle", type=float, default=60, help="seconds between whole and rest (default 60)")
    parser.add_argument("--rest", type=float, default=60, help="seconds at rest that are measured (default 60)")
    parser.add_argument("--leave", type=int, help="how many leave at once and come back (default: half)")
    options = parser.parse_args()
    make_network()
    print("nodes whole after links     kB/min each  CPU % each wake-ups/s back after", flush=True)
    for count in map(int, options.nodes.split(",")):
        measure(count, options.settle, options.rest, options.leave if options.leave is not None else count // 2)


if __name__ == "__main__":
    main()
