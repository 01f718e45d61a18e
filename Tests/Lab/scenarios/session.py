"""One session of three applications that share no radio: bob on Bluetooth LE, carol on Wi-Fi Direct, dave on Ethernet.
Each uses its own daemon through the client in Examples/python. They form the session by auto-join, all send messages to
all others, and dave opens a stream to bob. A fourth application is stopped for a minute, as in a debugger. carol's
daemon is killed, the others see that carol left and continue, and carol returns."""

# seconds: 150

import hashlib
import os
import pathlib
import random
import signal
import sys
import time

import causeway
import lab
from lab import Process, check, main, step, wait_until
from lab.application import Application, everybody_sends_to_everybody
from lab.stage import Stage

STREAM_BYTES = 256 << 10
STOPPED_SECONDS = 60
BYSTANDER = pathlib.Path(lab.__file__).with_name("bystander.py")


def scenario():
    with step("a box, and three peers of which no two share a radio") as remark:
        stage = Stage()
        stage.wait_acquainted(90)

    with step("three applications gather in one session, uninvited by hand") as remark:
        began = time.monotonic()
        bob, carol, dave = applications = [Application(stage[name]) for name in ("bob", "carol", "dave")]
        for one in applications:
            others = [other for other in applications if other is not one]
            wait_until(f"{one.name} meets the others", lambda: one.meets(others), 40, 0.05)
        remark(f"after {time.monotonic() - began:.1f} s")
        check(len({one.session.id for one in applications}) == 1, "it is one session")

    with step("everybody sends to everybody") as remark:
        times = everybody_sends_to_everybody(applications)
        remark(f"{sorted(times)[len(times) // 2]:.0f} ms in the middle, {max(times):.0f} ms at most, for {len(times)} pairs")

    with step("a stream from Ethernet to Bluetooth arrives whole") as remark:
        data = random.Random(1).randbytes(STREAM_BYTES)
        began = time.monotonic()
        stream = dave.session.open_stream("pictures", bob.address)
        stream.write(data, timeout=60)
        stream.finish(timeout=60)
        seconds = time.monotonic() - began
        wait_until("bob has read it", lambda: bob.streams, 5, 0.05)
        name, received = bob.streams[0]
        check(name == "pictures" and hashlib.sha256(received).digest() == hashlib.sha256(data).digest(), "bit by bit")
        remark(f"{STREAM_BYTES} bytes in {seconds:.1f} s, {STREAM_BYTES / seconds / 1000:.0f} kB/s over LE")

    with step(f"an application beside dave's stops for {STOPPED_SECONDS} s: the session stands, and nobody waits for it") as remark:
        bystander = Process("bystander", sys.executable, BYSTANDER, stage["dave"].runtime / "api.sock")
        wait_until("it gathers", lambda: bystander.lines(), 20, 0.1)
        stopped = causeway.Address(dave.address.node, int(bystander.lines()[0]))
        for one in applications:
            wait_until(f"{one.name} meets it", lambda: stopped in one.session.connected(), 40, 0.05)
        os.kill(bystander.pid, signal.SIGSTOP)
        times, sent, ends = [], [], time.monotonic() + STOPPED_SECONDS
        while time.monotonic() < ends:
            sent.append(f"line {len(sent)}")
            results = bob.session.send(sent[-1].encode(), timeout=20)
            check(set(results.values()) == {causeway.Result.DELIVERED}, "its daemon takes its messages meanwhile", results)
            times += everybody_sends_to_everybody(applications)
            time.sleep(5)
        check(all(stopped in one.session.connected() for one in applications), "it is still a member")
        os.kill(bystander.pid, signal.SIGCONT)
        wait_until("it reads what it was sent, in order", lambda: bystander.lines()[1:] == sent, 10, 0.1)
        bystander.kill()
        for one in applications:
            wait_until(f"{one.name} sees it leave", lambda: (stopped, causeway.State.LEFT) in one.states, 10, 0.05)
        remark(f"{sorted(times)[len(times) // 2]:.0f} ms in the middle, {max(times):.0f} ms at most, for the others' {len(times)} messages")

    with step("carol's daemon is killed: she is away, and the others go on") as remark:
        began = time.monotonic()
        stage["carol"].kill()
        gone = (carol.address, causeway.State.AWAY)
        for one in (bob, dave):
            wait_until(f"{one.name} sees carol away", lambda: gone in one.states, 40, 0.05)
        remark(f"after {time.monotonic() - began:.1f} s")
        everybody_sends_to_everybody([bob, dave])

    with step("carol is back: her application gathers anew, and nobody sees her twice") as remark:
        stage["carol"].start()
        began = time.monotonic()
        former, carol = carol, Application(stage["carol"])
        check(carol.address == former.address, "she has the address that she had", carol.address)
        applications = [bob, carol, dave]
        for one in applications:
            others = [other for other in applications if other is not one]
            wait_until(f"{one.name} meets the others", lambda: one.meets(others), 60, 0.05)
        remark(f"after {time.monotonic() - began:.1f} s")
        check(all(len(one.session.connected()) == 2 for one in applications), "two others each")
        everybody_sends_to_everybody(applications)

    for gone, witness in ((dave, carol), (bob, carol)):
        with step(f"{gone.name}'s daemon is killed and starts without an application: no ghost stays") as remark:
            stage[gone.name].kill()
            stage[gone.name].start()
            began = time.monotonic()
            wait_until(f"{witness.name} is told that {gone.name} left", lambda: (gone.address, causeway.State.LEFT) in witness.states,
                       30, 0.02)
            remark(f"gone {time.monotonic() - began:.2f} s after the start")

    with step("what the box was left with") as remark:
        box = stage["box"].status()["box"]
        check(box["frames_forwarded"] > 0, "it forwarded frames")
        remark(f"{stage['box'].resident_kib() / 1024:.1f} MiB of memory; {box['frames_forwarded']} frames forwarded")


main(scenario)
