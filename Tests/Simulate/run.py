#!/usr/bin/env python3
"""Runs many seeds of the simulation on all processors and adds up their results.

run.py SIMULATE [--seeds N] [--first N] [--workers N] [--expect-failure] [--commit TEXT]

The exit status is 1 if a seed failed. With --expect-failure the run stops at the first failure, and the status is 1 if
no seed failed. Each failure is printed with the command that replays it. The first failures are shrunk, and the line
that keeps them as regressions is printed.
"""
import argparse
import os
import queue
import subprocess
import sys
import threading
import time

SHRUNK_MAX = 3
PROGRESS_SECONDS = 15
# The number of seeds in a chunk, which a worker takes at once. Some seeds take as long as fifty others.
CHUNK = 10
# The bounds of Liar.swift in milliseconds: until a newcomer is a peer, until messages have arrived, and until the
# network is as before the attack. VERIFIED_MAX limits the signatures that a machine verifies per second during the
# attack by session tables.
LIAR_BOUNDS = (5000, 70000, 5000)
VERIFIED_MAX = 200
# The state that a newcomer has to reach, by the kind of attack.
PEER = "a peer of all nodes"
SERVED = {
    "handshakes": f"{PEER} with an answer of each victim",
    "channels": f"{PEER} with an answer of each victim",
    "tables": f"{PEER} and in a session with the victim",
    "invitations": f"{PEER} and in a session with the victim",
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulate")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--expect-failure", action="store_true")
    parser.add_argument("--commit", default=os.environ.get("CAUSEWAY_COMMIT", "unknown"))
    return parser.parse_args()


class Totals:
    SUMS = ("events", "frames", "delivered", "failed", "milliseconds", "alarms", "real", "canaries", "sealed",
            "unreliable", "twice", "met", "stepsmet")

    def __init__(self):
        self.count = 0
        self.sums = dict.fromkeys(self.SUMS, 0)
        self.faults = {}
        self.convergence = {"healed": [], "rerouted": [], "lost": [], "returned": []}
        self.hash = 0
        self.rerouting = {}
        self.nodes = []
        self.liars = {}
        self.halls = []
        self.failures = []
        self.cryptography = "stand-in"

    def add(self, values):
        self.count += 1
        for name in self.SUMS:
            self.sums[name] += int(values[name])
        self.nodes.append(int(values["nodes"]))
        if values["shape"].startswith("hall") and values["healed"] != "-":
            self.halls.append((int(values["nodes"]), int(values["healed"])))
        self.hash ^= int(values["hash"])
        if values["rerouted"] != "-":
            hops = int(values["diameter"])
            self.rerouting[hops] = max(self.rerouting.get(hops, 0), int(values["rerouted"]))
        for name, taken in self.convergence.items():
            if values[name] != "-":
                taken.append(int(values[name]))
        if values["liar"] != "-":
            lie, *numbers = values["liar"].split(":")
            *taken, verified, slack = map(int, numbers)
            shares = [time / (bound + slack) for time, bound in zip(taken, LIAR_BOUNDS)]
            known = self.liars.setdefault(lie, [0] * 8)
            self.liars[lie] = [known[0] + 1] + [max(pair) for pair in zip(known[1:], [verified] + taken + shares)]
        if values["faults"] != "-":
            for fault in values["faults"].split(","):
                name, count = fault.split(":")
                self.faults[name] = self.faults.get(name, 0) + int(count)


def percentile(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))]


def report(totals, options, seconds):
    sums = totals.sums
    print(f"commit {options.commit}, seeds {options.first} to {options.first + options.seeds - 1}: {totals.count} run, "
          f"{len(totals.failures)} failed")
    rate = 1 / max(seconds, 0.001)
    print(f"{seconds:.0f} s: {totals.count * rate:.1f} seeds/s, {sums['events'] * rate:.0f} events/s, "
          f"{sums['milliseconds'] / 3_600_000:.1f} hours simulated ({sums['milliseconds'] / 1000 * rate:.0f} times real time)")
    if totals.nodes:
        print(f"{sum(totals.nodes)} machines in networks of {min(totals.nodes)} to {max(totals.nodes)}, "
              f"{sums['frames']} frames, {sums['delivered']} messages delivered, {sums['failed']} reported as failed, "
              f"{sums['unreliable']} unreliable messages received")
    print(f"{sums['events']} events, all traces together {totals.hash:016x}; run twice with the same trace: {sums['twice']} seeds")
    print(f"cryptography: {totals.cryptography} in {sums['real']} seeds (every 50th), the stand-in in the others; "
          f"{sums['sealed']} frames encrypted; the canary was in {sums['canaries']} frames between machines without encryption, and in no other")
    print(f"sessions: members connected {sums['met']} times in these networks, and {sums['stepsmet']} times in scenarios of single steps")
    print("faults: " + ", ".join(f"{name} {count}" for name, count in sorted(totals.faults.items()))
          + f"; alarms about duplicate keys {sums['alarms']}")
    titles = {"healed": "after all faults", "rerouted": "after a silent failure of a wire, routes",
              "lost": "    then the peers", "returned": "after its return"}
    for name, taken in totals.convergence.items():
        if taken:
            taken.sort()
            print(f"converged {titles[name]}: median {percentile(taken, .5)} ms, 90 % {percentile(taken, .9)}, "
                  f"99 % {percentile(taken, .99)}, longest {taken[-1]}")
    if totals.rerouting:
        print("routes after a silent failure of a wire, longest by diameter (bound: 2900 ms over Ethernet, 5000 ms over others, + 250 ms a hop, "
              "+ 20 s in a hall, + 65 s over Bluetooth, + 130 s in a room): "
              + ", ".join(f"{hops}: {taken} ms" for hops, taken in sorted(totals.rerouting.items())))
    if totals.halls:
        sizes = sorted(size for size, _ in totals.halls)
        healed = sorted(time for _, time in totals.halls)
        print(f"halls: {len(sizes)} networks, median {percentile(sizes, .5)} machines, most {sizes[-1]}; converged after all "
              f"faults: median {percentile(healed, .5)} ms, 90 % {percentile(healed, .9)}, longest {healed[-1]}")
    for lie, (count, verified, *times) in sorted(totals.liars.items()):
        newcomer, delivery, after = [f"{time} ms ({share * 100:.0f} % of the bound)" for time, share in zip(times, times[3:])]
        print(f"during the attack {lie} ({count} seeds), longest: the newcomer is {SERVED.get(lie, PEER)} after {newcomer}; other "
              f"messages are delivered after {delivery}; the network has recovered {after} after the attack; {verified} signatures verified per second")
    if totals.liars:
        print("    bounds: {} ms, {} ms, {} ms, and 250 ms a hop in each; during the attack tables {} signatures per second".format(
            *LIAR_BOUNDS, VERIFIED_MAX))


def worker(options, chunks, results, children):
    """Runs chunks of seeds. If a process dies, starts a new process after the seed at which the first one died."""
    while True:
        try:
            seed, end = chunks.get_nowait()
        except queue.Empty:
            break
        while seed < end:
            child = subprocess.Popen([options.simulate, "run", str(seed), str(end - seed)], text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     env={**os.environ, "SWIFT_BACKTRACE": "enable=no"})
            children.append(child)
            errors = []
            drain = threading.Thread(target=lambda: errors.extend(child.stderr), daemon=True)
            drain.start()
            current = seed
            for line in child.stdout:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "begin":
                    current = int(rest)
                else:
                    results.put((word, rest))
            code = child.wait()
            drain.join()
            if code == 0:
                break
            if code == -15:
                return results.put(("end", ""))
            said = next((line.strip() for line in errors if line.strip()), "")
            results.put(("FAILED", f"{current} the process died of {code}: {said}"))
            seed = current + 1
    results.put(("end", ""))


def main():
    options = arguments()
    options.workers = max(1, min(options.workers, options.seeds))
    totals = Totals()
    results = queue.Queue()
    children = []
    start = time.monotonic()
    chunks = queue.Queue()
    end = options.first + options.seeds
    for first in range(options.first, end, CHUNK):
        chunks.put((first, min(first + CHUNK, end)))
    for _ in range(options.workers):
        threading.Thread(target=worker, args=(options, chunks, results, children), daemon=True).start()
    working = options.workers
    told = start
    while working:
        word, rest = results.get()
        if word == "end":
            working -= 1
        elif word.startswith("cryptography="):
            totals.cryptography = word.partition("=")[2]
        elif word == "done":
            totals.add(dict(pair.split("=", 1) for pair in rest.split(" ")))
        elif word == "FAILED":
            seed, _, what = rest.partition(" ")
            totals.failures.append(int(seed))
            print(f"seed {seed}: {what}\n  replay: make sim SEED={seed}", flush=True)
            if options.expect_failure:
                chunks.queue.clear()
                for child in children:
                    child.terminate()
        now = time.monotonic()
        if now - told >= PROGRESS_SECONDS:
            told = now
            print(f"  {totals.count} of {options.seeds} seeds, {totals.count / (now - start):.1f}/s, "
                  f"{len(totals.failures)} failed", flush=True)
    report(totals, options, time.monotonic() - start)
    if options.expect_failure:
        print(f"found after {totals.count} seeds" if totals.failures else "nothing was found")
        sys.exit(0 if totals.failures else 1)
    gain = subprocess.run([options.simulate, "gain"], text=True, capture_output=True)
    print(gain.stdout, end="", flush=True)
    for seed in totals.failures[:SHRUNK_MAX]:
        shrunk = subprocess.run([options.simulate, "shrink", str(seed)], text=True, capture_output=True,
                                env={**os.environ, "SWIFT_BACKTRACE": "enable=no"})
        print(f"seed {seed}, {shrunk.stdout.strip() or 'could not be shrunk'}")
    sys.exit(1 if totals.failures or totals.count < options.seeds or gain.returncode else 0)


main()
