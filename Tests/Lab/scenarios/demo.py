"""The main use of the firmware. Three peers without a common radio meet through a relay box, invite each other, chat in
a session, send a file and send a stream."""

import os
import subprocess
import time

from lab import check, main, say, wait_until
from lab.command import Command, Talk, end_talks
from lab.node import PROGRAM
from lab.stage import Stage
from lab.story import elapsed
from lab.transfer import FILES, Transfer

FILE_BYTES, NAME = 1 << 20, "photo.jpg"
STREAM_LINES = 2000

DIM, BOLD, PLAIN = ("", "", "") if "NO_COLOR" in os.environ else ("\x1b[2m", "\x1b[1m", "\x1b[0m")


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

    heading("carol invites dave to a session, and dave is asked")
    invite(carol, dave)

    heading("bob and carol chat in a session, each way through two radios")
    talk(bob, carol)

    heading("dave sends bob a file of 1 MiB, and bob is asked")
    give(dave, bob)

    heading("bob pipes a stream to dave")
    pipe(bob, dave)

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
    """Print which node sees which peer as it happens, until every node sees all others."""
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


def invite(carol, dave):
    """carol invites dave, who runs no chat. The command `accept` asks dave, who decides."""
    door = Command(dave, "accept", "notes", on_terminal=True)
    notes = Talk(carol, dave, "notes", "--wait", 60)
    tell(f"dave is asked: {door.wait_question()}")
    door.answer("y")
    notes.wait_told("member", name=dave.name, state="connected")
    line = "The meeting is in the kitchen."
    notes.say_line(line)
    door.wait_told("message", name=carol.name, text=line)
    end_talks([notes])
    door.wait_told("member", name=carol.name, state="left")
    door.stop()
    door.end()
    tell(f"dave said yes, and reads: <{carol.name}> {line}")


def talk(bob, carol):
    """A chat in a session. The two find each other by their service, so nobody types an address."""
    talks = [Talk(bob, carol, "--wait", 60), Talk(carol, bob, "--wait", 60)]
    began = time.monotonic()
    for one, other in zip(talks, (carol, bob)):
        met, _ = one.wait_told("member", name=other.name, state="connected")
        tell(f"{one.name} has {other.name} in the session, after {met - began:.1f} s")
    lines = ("Hello carol, this is bob on Bluetooth.", "Hi bob, carol here on Wi-Fi Direct.")
    for one, other, line in zip(talks, reversed(talks), lines):
        one.say_line(line)
        other.wait_line(line)
    end_talks(talks)
    for one, line in zip(talks, (f"<carol> {lines[1]}", f"<bob> {lines[0]}")):
        check(one.lines() == [line], f"{one.name} got one line", one.lines())
    for one in reversed(talks):
        tell(f"{one.name} reads: {one.lines()[0]}")


def give(dave, bob):
    """Send a file, which the receiver has to accept. A file of this name exists at the receiver, and is not
    replaced."""
    directory = FILES / "bob"
    directory.mkdir(parents=True)
    (directory / NAME).write_text("bob's own")
    transfer = Transfer(dave, bob, FILE_BYTES, NAME, asks=True)
    tell(f"bob is asked: {transfer.receiving.wait_question()}")
    transfer.receiving.answer("y")
    transfer.file = directory / NAME.replace(".", "-2.")
    seconds = transfer.finish()
    check((directory / NAME).read_text() == "bob's own", "what bob had is as it was")
    tell(f"bob said yes, and has {transfer.file.name}, SHA-256 right: "
         f"{FILE_BYTES} bytes in {seconds:.1f} s, {FILE_BYTES / seconds / 1000:.0f} kB/s over LE")


def pipe(bob, dave):
    """Send a stream: the output of one program becomes the input of another, with the bytes in order."""
    def begin(node, *words, **files):
        return subprocess.Popen([PROGRAM, "pipe", "--config", node.configuration_file, *words], **files)

    lines = "".join(f"measurement {number}\n" for number in range(STREAM_LINES)).encode()
    listening = begin(dave, "--listen", "log", "--from", bob.status()["box"]["id"], stdout=subprocess.PIPE)
    sending = begin(bob, dave.name, "log", stdin=subprocess.PIPE)
    began = time.monotonic()
    sending.stdin.write(lines[:100])
    sending.stdin.flush()
    first = listening.stdout.read(100)
    tell(f"dave reads the first line {time.monotonic() - began:.1f} s after bob began, while bob goes on writing")
    sending.communicate(lines[100:], timeout=60)
    rest, _ = listening.communicate(timeout=60)
    check(sending.returncode == listening.returncode == 0, "both ends know that it is whole", (sending.returncode, listening.returncode))
    check(first + rest == lines, "every byte arrived, in order")
    tell(f"dave has all {STREAM_LINES} lines, {len(lines)} bytes")


main(scenario)
