"""The main job: three peers that share no radio meet through a relay box, talk, and send a file."""

import re

from lab import check, main, say, wait_until
from lab.stage import Command, Stage
from lab.story import elapsed
from lab.transfer import send_file

FILE_BYTES = 1 << 20

DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


def tell(text):
    say(f"{DIM}{elapsed():6.1f} s{PLAIN}  {text}")


def heading(text):
    say(f"\n{BOLD}{text}{PLAIN}")


def scenario():
    heading("A relay box and three peers; no two peers share a radio or a cable")
    say("    bob   ── Bluetooth LE ──┐\n    carol ── Wi-Fi Direct ──┤ box\n    dave  ── Ethernet ──────┘\n")
    stage = Stage()
    box, bob, carol, dave = (stage[name] for name in ("box", "bob", "carol", "dave"))
    tell("four nodes are up: box, bob, carol, dave")

    heading("They find each other through the box")
    meet(stage)

    heading("bob and carol chat, each way through two radios")
    chat(bob, carol)

    heading("dave sends bob a file of 1 MiB")
    seconds = send_file(dave, bob, FILE_BYTES)
    tell(f"bob has it, SHA-256 right: {FILE_BYTES} bytes in {seconds:.1f} s, {FILE_BYTES / seconds / 1000:.0f} kB/s over LE")

    heading("causeway status, on the box")
    say(box.cli("status"))
    heading("causeway log --level notice, on the box")
    say(box.cli("log", "--level", "notice"))
    resident = box.resident_kib()
    tell(f"the box holds {resident / 1024:.1f} MiB of memory")
    status = box.status()
    check(len(status["links"]) == 3, "the box has a link to each peer, and one only", status["links"])
    check(status["box"]["frames_forwarded"] > 0, "the box forwarded frames")


def meet(stage):
    """Say who sees whom as it happens, until everybody sees everybody."""
    names = set(stage.nodes)
    seen = set()

    def look():
        for name, node in stage.nodes.items():
            for peer in node.status()["peers"]:
                if (name, peer["name"]) in seen:
                    continue
                seen.add((name, peer["name"]))
                hops = f"{peer['hops']} hop" + ("s" if peer["hops"] > 1 else "")
                info = ", ".join(peer["info"])
                tell(f"{name:5} sees {peer['name']:5} {hops} over {peer['bearer']}  ({info})")
        return len(seen) == len(names) * (len(names) - 1)

    wait_until("everybody sees everybody", look, 90, 0.3)
    bearers = {name: stage[name].status()["links"][0]["bearer"] for name in names - {"box"}}
    expected = {"bob": "bluetooth-le", "carol": "wifi-direct", "dave": "ethernet"}
    check(bearers == expected, "each peer reaches the box over its own bearer only", bearers)


def chat(bob, carol):
    listening = Command(bob, "peer", "chat", "--to", "carol", "--wait-for", "1", "--seconds", "60",
                        input="Hello carol, this is bob on Bluetooth.\n")
    answering = Command(carol, "peer", "chat", "--to", "bob", "--wait-for", "1", "--seconds", "60",
                        input="Hi bob, carol here on Wi-Fi Direct.\n")
    for name, output in (("carol", answering.wait()), ("bob", listening.wait())):
        lines = [line for line in output.splitlines() if re.match(r"<\w+> ", line)]
        check(len(lines) == 1, f"{name} got one line", output)
        tell(f"on {name}'s screen: {lines[0]}")


main(scenario)
