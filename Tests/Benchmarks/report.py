"""The results of all rounds as tables in Markdown. The ratios are in the first tables."""
import collections
import os
import pathlib
import platform
import re
import statistics
import subprocess
import time

from bars import bars
from ends import WORMHOLE, missing
from systems import PACKED_BYTES, PACKED_MESSAGES, RECEIVERS_MAX, SIZES, first_version

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
US, MILLI, MEGA, GIGA = 1e6, 1e3, 1e-6, 1e9
BUSY = 0.9


def spread(values, form="{:.2f}"):
    """The median of the values. If there are several values, their extremes follow in brackets."""
    values = [value for value in values if value is not None]
    if not values:
        return "–"
    middle = form.format(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({form.format(min(values))}–{form.format(max(values))})"


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


class Report:
    def __init__(self, mode, systems, missing):
        self.mode, self.systems, self.missing = mode, systems, missing
        self.titles = [system.title for system in systems]
        self.flows = collections.defaultdict(dict)      # (title, receivers, size, one by one) → {round: figures}
        self.trips = collections.defaultdict(dict)      # title → {round: figures}
        self.messages, self.files, self.handshakes = {}, {}, {}
        self.starts, self.resident = collections.defaultdict(list), {}
        self.took = 0

    def flow(self, number, system, receivers, size, one_by_one, figures):
        self.flows[system.title, receivers, size, one_by_one][number] = figures

    def round_trips(self, number, system, figures):
        self.trips[system.title][number] = figures

    def application(self, number, figures):
        self.messages[number] = figures

    def file(self, number, figures):
        self.files[number] = figures

    def handshake(self, number, figures):
        self.handshakes[number] = figures

    def start(self, system, seconds):
        self.starts[system.title].append(seconds)

    def memory(self, system, figures):
        self.resident[system.title] = figures

    # Values of each round, and the ratios within each round

    def costs(self, title, size, receivers=1, one_by_one=False):
        """The processor time of each round: seconds per gigabyte for large messages, microseconds per message for
        others."""
        scale = GIGA / size if size > 4096 else US
        return [figures["cost"] * scale for figures in self.flows[title, receivers, size, one_by_one].values()]

    def times(self, title, which):
        return [figures[which] * US for figures in self.trips[title].values()]

    @staticmethod
    def ratios(values, limits):
        return [value / limit for value, limit in zip(values, limits) if limit]

    # Tables

    def relays(self):
        return [system for system in self.systems if system.title != "kernel"]

    def ratio_table(self):
        rows = []
        pairs = [(system.title, system.beside) for system in self.relays() if system.protocol != "hub"]
        # The second row compares end-to-end sealing with a relay that decrypts and encrypts all data.
        for title, beside in [pairs[0], (pairs[0][0], "hub, TLS"), *pairs[1:]]:
            row = [title, beside]
            for size, one_by_one in ((64, False), (64, True), (1024, False), (16384, False)):
                row.append(spread(self.ratios(self.costs(title, size, 1, one_by_one), self.costs(beside, size, 1, one_by_one))))
            row += [spread(self.ratios(self.times(title, which), self.times(beside, which))) for which in ("p50", "p99")]
            rows.append(row)
        return table(["relay", "÷", "64 B", "64 B, each sent alone", "1 KiB", "16 KiB", "round trip p50", "p99"], rows)

    def cost_table(self):
        rows = []
        for system in self.relays():
            rows.append([system.title, *(spread(self.costs(system.title, *case), "{:.3f}") for case in ((64,), (64, 1, True), (1024,), (16384,)))])
        return table(["relay", "64 B, µs", "64 B, each sent alone, µs", "1 KiB, µs", "16 KiB, s/GB"], rows)

    def rate_table(self, receivers):
        rows = []
        for title in self.titles:
            row = [title]
            for size in SIZES:
                rates = [figures["rate"] for figures in self.flows[title, receivers, size, False].values()]
                row.append(spread([rate * size * MEGA for rate in rates], "{:.0f}") if size > 4096 else spread([rate / 1e3 for rate in rates], "{:.0f}"))
            if receivers == 1:
                row += [spread(self.times(title, which), "{:.0f}") for which in ("p50", "p99")]
            else:
                row += [spread(self.costs(title, size, receivers), "{:.3f}") if title != "kernel" else "–" for size in SIZES]
            rows.append(row)
        tail = ["round trip p50, µs", "p99, µs"] if receivers == 1 else ["64 B, µs a delivery", "1 KiB, µs", "16 KiB, s/GB"]
        return table(["", "64 B, k/s", "1 KiB, k/s", "16 KiB, MB/s", *tail], rows)

    def bottleneck_table(self):
        rows = []
        for title in self.titles:
            row = [title]
            for size in SIZES:
                rounds = list(self.flows[title, 1, size, False].values())
                row.append(bottleneck({name: statistics.median(figures[name] for figures in rounds)
                                       for name in ("relay", "publisher", "receiver", "machine", "softirq")}))
            rows.append(row)
        return table(["", *(f"{size} B" for size in SIZES)], rows)

    def memory_table(self):
        rows = [[title, spread([value * MILLI for value in self.starts[title]], "{:.1f}"),
                 *([f"{value * MEGA:.1f}" for value in self.resident[title]] if title in self.resident else ["–"] * 4)] for title in self.starts]
        return table(["relay", "start, ms", "no link, MB", "8", "64", "all have left"], rows)

    def file_table(self):
        ways = list(next(iter(self.files.values())))
        best = [max(value for way, value in figures.items() if way.startswith("scp")) for figures in self.files.values()] if any(
            way.startswith("scp") for way in ways) else []
        return table(["way", "÷ the better scp of the round", "MB/s"],
                     [[way, spread(self.ratios([figures[way] for figures in self.files.values()], best)),
                       spread([figures[way] * MEGA for figures in self.files.values()], "{:.0f}")] for way in ways])

    def handshake_table(self):
        box, other = ([figures[name] * MILLI for figures in self.handshakes.values()] for name in ("box", "openssl"))
        return table(["side that is dialled", "÷ openssl", "processor, ms"],
                     [["box, with admission", spread(self.ratios(box, other)), spread(box)], ["openssl s_server", "1", spread(other)]])

    def target_table(self):
        rows = []
        box, inside, hub, hub_tls = "Causeway", "Causeway, inside TLS", "hub", "hub, TLS"

        def row(what, values, target, beside, limits, form="{:.2f}", least=False, factor=1):
            if not values:
                return
            value = statistics.median(values)
            kept = value >= target if least else value <= target
            ratio = spread(self.ratios(values, [limit * factor for limit in limits])) if limits else "–"
            rows.append([what, spread(values, form), ("≥ " if least else "≤ ") + f"{target:g}", "yes" if kept else "no", beside, ratio])

        applications = [figures["cost"] * US for figures in self.messages.values()]
        row("64 B of one application, µs a message", applications, 0.05, "hub, 64 B", self.costs(hub, 64), "{:.3f}")
        packed = [figures["cost"] * US / PACKED_MESSAGES for figures in self.flows[box, 1, PACKED_BYTES, False].values()]
        row(f"64 B, {PACKED_MESSAGES} in a frame, a flow without a pause, µs a message", packed, 0.05, "hub, 64 B", self.costs(hub, 64), "{:.3f}")
        if "nats" in self.titles:
            row("64 B, one message a frame, µs", self.costs(box, 64), 0.25, "0.4 × nats", self.costs("nats", 64), "{:.3f}", factor=0.4)
        else:
            row("64 B, one message a frame, µs", self.costs(box, 64), 0.25, "hub", self.costs(hub, 64), "{:.3f}")
        row("1 KiB, µs", self.costs(box, 1024), 0.66, "hub", self.costs(hub, 1024), "{:.3f}")
        row("16 KiB, s/GB", self.costs(box, 16384), 0.45, "hub", self.costs(hub, 16384))
        row("16 KiB inside TLS, s/GB", self.costs(inside, 16384), 1.5, "hub, TLS", self.costs(hub_tls, 16384))
        if self.files and any(way.startswith("scp") for way in next(iter(self.files.values()))):
            ratios = [figures["Causeway"] / max(value for way, value in figures.items() if way.startswith("scp")) for figures in self.files.values()]
            row("a file, daemon to daemon ÷ scp's better cipher", ratios, 1.0, "scp", None, least=True)
        for which, target in (("p50", 0.5), ("p99", 1.0)):
            row(f"round trip {which} ÷ hub, TLS", self.ratios(self.times(box, which), self.times(hub_tls, which)), target, "hub, TLS", None)
        if box in self.resident:
            row("resident with 64 links, MB", [self.resident[box][2] * MEGA], 8, "hub, TLS", [self.resident[hub_tls][2] * MEGA], "{:.1f}")
            row("resident after they left, MB", [self.resident[box][3] * MEGA], 4.5, "hub, TLS", [self.resident[hub_tls][3] * MEGA], "{:.1f}")
        row("handshake of a link, box, ms", [figures["box"] * MILLI for figures in self.handshakes.values()], 1.5, "openssl s_server",
            [figures["openssl"] * MILLI for figures in self.handshakes.values()])
        return table(["what", "box", "target", "met", "beside", "ratio"], rows)

    # Text

    def heading(self):
        versions = [f"{system.title} {version}" for system in self.systems if system.alone and not system.tls and (version := system.version())]
        openssl = first_version("openssl", "version")
        ends = {"sshd": lambda: f", OpenSSH {first_version('ssh', '-V')}",
                "magic-wormhole": lambda: f", magic-wormhole {first_version(WORMHOLE / 'wormhole', '--version')}"}
        versions.append(f"OpenSSL {openssl}" + "".join(version() for name, version in ends.items() if name not in missing()))
        flows = [figures for (_, receivers, _, _), rounds in self.flows.items() if receivers == 1 for figures in rounds.values()]
        others = statistics.median(max(0, flow["machine"] - flow["relay"] - flow["publisher"] - flow["receiver"]) for flow in flows)
        absent = f" Not installed, and therefore not here: {', '.join(self.missing)}." if self.missing else ""
        cipher = next(iter(self.flows["hub, TLS", 1, 64, False].values()))["cipher"]
        rounds = f"{self.mode.rounds} round" + "s" * (self.mode.rounds > 1)
        return (f"{processor()}; {processor_count()} processors; Linux {platform.release()}; {time.strftime('%-d %B %Y')}. {rounds} of "
                f"{self.mode.seconds:g} s a flow, {self.took / 60:.0f} min in all. {', '.join(versions)}. "
                f"TLS is 1.3 with {cipher} and certificates of both sides. Medians of the rounds, and their extremes. While messages "
                f"flowed, other processes took {others:.0%} of a processor in the middle.{absent}\n")

    def frames(self):
        frames = spread([figures["frames"] for figures in self.messages.values()])
        return f"For a message of one application the box forwards {frames} frames, the acknowledgement among them.\n"

    def text(self, picture="benchmarks.svg"):
        parts = [self.heading(), "### Beside the targets\n", self.target_table(), self.frames(),
                 "### The relay's processor time, one publisher and one receiver: ratios\n", self.ratio_table(), f"![]({picture})\n",
                 "### The same in figures\n", self.cost_table(), "### Rates and round trips, 1 → 1\n", self.rate_table(1),
                 f"### 1 → {RECEIVERS_MAX}: deliveries\n", self.rate_table(RECEIVERS_MAX),
                 "### Who was the bottleneck, 1 → 1\n", self.bottleneck_table(),
                 "### Start and memory\n", self.memory_table(), f"### A file of {self.mode.file_bytes >> 20} MiB over one cable\n", self.file_table(),
                 "### A handshake\n", self.handshake_table()]
        return "\n".join(parts)

    def figure(self):
        rows = {}
        for system in self.relays():
            rows[system.title] = [statistics.median(self.ratios(self.costs(system.title, size), self.costs("hub", size))) for size in SIZES]
        return bars("The relay's processor time for a message ÷ the plain hub's", [f"{size} B" for size in SIZES], rows)

    def write(self, markdown, picture):
        """Replace the text between the two marks in an existing Markdown file, or write a new file. Also write the
        chart."""
        text = markdown.read_text() if markdown.exists() else f"{BEGIN}\n{END}\n"
        if BEGIN not in text or END not in text:
            raise SystemExit(f"{markdown}: the marks {BEGIN} and {END} are missing")
        before, after = text[:text.index(BEGIN) + len(BEGIN)], text[text.index(END):]
        markdown.write_text(f"{before}\n{self.text(os.path.relpath(picture, markdown.parent))}\n{after}")
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(self.figure())


def bottleneck(shares):
    """The name of what limits a flow: a process that used nearly a whole processor, the machine if all processors were
    busy, or the window."""
    ends = {name: shares[name] for name in ("relay", "publisher", "receiver")}
    busiest = max(ends, key=ends.get)
    if ends[busiest] > BUSY:
        who = busiest
    elif shares["machine"] > BUSY * processor_count():
        who = "machine"
    else:
        who = "window"
    return f"{who}: " + ", ".join(f"{name[0]} {value:.0%}" for name, value in ends.items()) + f", all {shares['machine']:.0%}, si {shares['softirq']:.0%}"


def processor_count():
    return len(re.findall(r"^processor\s", pathlib.Path("/proc/cpuinfo").read_text(), re.M))


def processor():
    found = re.search(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return found.group(1) if found else subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip()
