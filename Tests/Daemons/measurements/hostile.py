"""The cost of a hostile member of the mesh for other nodes: run.py BINARY hostile [--attacks NAME[,NAME...]] [--rounds N]
[--messages N] [--round-trips N]

The network is a – box – b as in `relay`, with two more applications at the box. The attacker is a process with its own
key. It links with the box and violates the protocol.

For each attack the program measures the time of 50 MB from a to b, the round trips of messages, and the box's processor
time. In turn with the attack it measures the same beside an honest neighbour, which sends as many frames of the same
length. Attacks that do not rely on frames are compared with a network without an attacker. Names joined by + are
several attacks at once, each from its own address.

During the attack the program measures two times of a new node: until it is everybody's peer, and until its applications
are in sessions with those at the box. After the attack it measures the time until the network is as before. The
assertions are in hostile_test; this program only prints."""
import argparse
import dataclasses
import statistics
import tempfile
import time

from attacks import ATTACKS, Process, join, recover, stage
from talk import Mode

# A transfer of 50 MB takes half a second. The times of shorter transfers vary by half.
MESSAGES, MESSAGE_BYTES = 3_200, 16_384
TRANSFERS = 4
ROUND_TRIPS = 1000


class Processes:
    """Several sender processes at once. Each sender is given as its name, its frames per second, and the length of a
    frame."""

    def __init__(self, network, senders):
        self.processes = []
        try:
            for place, sender in enumerate(senders, 1):
                self.processes.append(Process(network, *sender, place))
        except BaseException:
            self.stop()
            raise

    def stop(self):
        return [process.stop() for process in self.processes]


def parts(attack):
    return [(name, *ATTACKS[name][1:]) for name in attack.split("+")]


@dataclasses.dataclass
class Costs:
    """Measurements in several rounds: the seconds of each transfer from a to b; the mean microseconds of the messages
    of each round; the microseconds of each round trip; and the share of a processor that the box used in each round."""
    transfers: list = dataclasses.field(default_factory=list)
    means: list = dataclasses.field(default_factory=list)
    round_trips: list = dataclasses.field(default_factory=list)
    loads: list = dataclasses.field(default_factory=list)

    def add(self, network, messages, round_trips):
        self.transfers.extend(network.send(messages, MESSAGE_BYTES, Mode.BULK)[0] for _ in range(TRANSFERS))
        used, start = network.box.processor_seconds(), time.monotonic()
        times = network.round_trips(round_trips)
        self.loads.append((network.box.processor_seconds() - used) / (time.monotonic() - start))
        # Some messages meet a burst of the attacker and others do not. So a round is represented by the mean and not by
        # the median.
        self.means.append(statistics.fmean(times))
        self.round_trips += times

    def compared(self, other):
        """The ratios of `other` to these costs: for transfer times, and for message times."""
        return [statistics.median(theirs) / statistics.median(own) for own, theirs in (
            (self.transfers, other.transfers), (self.means, other.means))]

    def __str__(self):
        """The median and the 95th percentile of the round trips in milliseconds, and the box's load."""
        times = sorted(self.round_trips)
        return (f"{statistics.median(times) / 1000:7.2f} {times[int(len(times) * 0.95)] / 1000:7.2f} ms"
                f"{statistics.median(self.loads):5.0%}")


def measure(network, attack, rounds, *amounts):
    """Measure in turn beside the attackers, and beside honest neighbours or nobody. Returns the costs of both cases,
    the attackers' frames per second and links, and the honest neighbours' frames per second."""
    hostile, honest_pace = parts(attack), 0
    beside_him, beside_other = Costs(), Costs()
    told = [(rate, 1) for _, rate, _ in hostile]
    for number in range(rounds):
        honest_ones = [("honest", pace, length) for (pace, _), (_, _, length) in zip(told, hostile) if length]
        turns = [(beside_him, hostile), (beside_other, honest_ones)]
        # Each case is first in every second round, so that other load of the machine affects both cases alike.
        for costs, senders in turns if number % 2 == 0 else reversed(turns):
            processes = Processes(network, senders)
            try:
                costs.add(network, *amounts)
            finally:
                end = processes.stop()
            if senders is hostile:
                told = [ended for ended in end if ended] or told
            else:
                honest_pace = sum(ended[0] for ended in end if ended)
    return beside_him, beside_other, (sum(pace for pace, _ in told), sum(links for _, links in told)), honest_pace


def disturb(network, applications, newcomer, before, name):
    """Attack, and let a new node join. Returns three times in seconds: until the new node is everybody's peer, until
    its applications are in sessions, and from the end of the attack until the state is as before."""
    process = Processes(network, parts(name))
    try:
        start = time.monotonic()
        joined = join(network, newcomer)
        applications.visit(newcomer)
        in_session = time.monotonic() - start
        process.stop()
        return joined, in_session, recover(network, applications, newcomer, before)
    finally:
        process.stop()
        newcomer.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--attacks", default=",".join([*ATTACKS, "forged+flows", "invented+replays"]))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of {MESSAGE_BYTES} bytes in a transfer")
    parser.add_argument("--round-trips", type=int, default=ROUND_TRIPS, help="in a round")
    options = parser.parse_args()
    print("attack            frames/s  honest  links  50 MB  message  median     p95     CPU  newcomer   session  as before   "
          "without him: median, p95, CPU")
    with tempfile.TemporaryDirectory(prefix="causeway-") as root:
        network, applications, newcomer, before = stage(root)
        try:
            for name in options.attacks.split(","):
                his, other, (pace, links), honest_pace = measure(
                    network, name, options.rounds, options.messages, options.round_trips)
                ratios = his.compared(other)
                joined, in_session, after = disturb(network, applications, newcomer, before, name)
                print(f"{name:16} {pace:9,.0f} {honest_pace:7,.0f} {links:6} {ratios[0]:6.2f} {ratios[1]:8.2f} {his} {joined:7.1f} s "
                      f"{in_session:7.1f} s {after:8.1f} s   {other}", flush=True)
        finally:
            applications.stop()
            network.stop()


if __name__ == "__main__":
    main()
