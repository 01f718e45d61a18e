"""Peers over Bluetooth LE that limit what the box may send. bob is behind a phone's Bluetooth host, which grants 1, 2,
5 or 12 credits. bob receives a file, and chat lines during the transfer. Then bob stalls in the middle of a file: once
for as long as a phone may stop an application, and once for longer. carol's kernel has short receive buffers for
sockets, for which it would grant fewer credits than a unit needs."""

# seconds: 110

import os
import pathlib
import random
import signal
import time

from lab import BluetoothAir, Box, Node, Process, cable, check, main, step, wait_until
from lab.command import Talk, end_talks
from lab.stage import links_up, peer_names
from lab.transfer import Transfer

PORT, RATE = 5000, 1_000_000
FEW, USUAL = (1, 2, 5), 12
FILE_BYTES, LINES, LINE_MILLISECONDS_MAX = 128 << 10, 4, 2000
UNDER_WAY_BYTES = 8 << 10                            # the bytes of the file that were sent before the first line
PAUSE_SECONDS, STALL_SECONDS_MAX = 15, 30
# The short buffer is twice 5700 bytes. The current kernel needs 14 KB for the units that the box sends.
RECEIVE_BUFFER, SHORT_BUFFER = pathlib.Path("/proc/sys/net/core/rmem_default"), 11400


class Phone:
    """bob's node, and the Bluetooth host of bob's phone."""

    def __init__(self, box, air):
        self.box, self.air = box, air
        self.node = Node(box, interfaces=["lo"], extra={
            "node": {"relay": "no"}, "ip": {"loopback": "yes", "peers": f"127.0.0.1:{PORT}"}})

    def switch_on(self, credits):
        # The host runs in bob's network, and accepts connections there. The socket of the air is in the machine's /run.
        self.host = Process(f"host-{credits}", "nsenter", "-t", self.box.pid, "-n", "python3", "/lab/lab/le_carrier.py",
                            self.air.socket_path("phone"), PORT, credits)

    def switch_off(self):
        self.host.terminate()

    def stand_still(self):
        self.host.child.send_signal(signal.SIGUSR1)
        os.kill(self.node.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.node.process.pid, signal.SIGCONT)
        self.host.child.send_signal(signal.SIGUSR2)


def links_made(box):
    """The number of links over Bluetooth LE that have been up so far, from the journal."""
    return box.cli("log", "--level", "notice").count(": up over bluetooth-le with ")


def bytes_sent(box):
    """The bytes that the box has sent over its Bluetooth LE link."""
    return sum(link["bytes_sent"] for link in links_up(box.status(), "bluetooth-le"))


def wait_alone(box):
    box.wait_status("has no link over Bluetooth", lambda status: not links_up(status, "bluetooth-le"), 60)


def wait_seen(box, dave, name):
    box.wait_status(f"has a link with {name}", lambda status: links_up(status, "bluetooth-le"), 60)
    dave.wait_status(f"sees {name}", lambda status: name in peer_names(status), 60)


def file_with_lines(box, dave, bob, name):
    """Send a file, and chat lines during the transfer. Returns the file's bytes per second and the milliseconds of each
    line."""
    talks = talk, heard = [Talk(a, b, "--wait", 60) for a, b in ((dave, bob), (bob, dave))]
    talk.say_line("first")
    heard.wait_line("first")
    before, made = bytes_sent(box), links_made(box)
    transfer, took = Transfer(dave, bob, FILE_BYTES, name), []
    wait_until("the file is under way", lambda: bytes_sent(box) >= before + UNDER_WAY_BYTES, 30, 0.02)
    while len(took) < LINES:
        time.sleep(random.uniform(0.02, 0.1))
        said = talk.say_line(f"line {len(took)}")
        took.append((heard.wait_line(f"line {len(took)}") - said) * 1000)
    transfer.check_under_way()
    seconds = transfer.finish()
    check(links_made(box) == made, "it is the same link", lambda: box.cli("log"))
    check(max(took) <= LINE_MILLISECONDS_MAX, f"a line takes at most {LINE_MILLISECONDS_MAX} ms", took)
    end_talks(talks)
    return FILE_BYTES / seconds, took


def scenario():
    with step("box and dave on Ethernet, and erin; bob behind a phone's Bluetooth host"):
        air = BluetoothAir(controllers=2, sockets=["phone"])
        boxes = {name: Box(name) for name in ("box", "dave", "erin", "bob", "carol")}
        ends = {name: cable(boxes["box"], boxes[name]) for name in ("dave", "erin")}
        box = Node(boxes["box"], adapter="hci0", interfaces=[near for near, _ in ends.values()])
        dave, erin = [Node(boxes[name], interfaces=[far], extra={"node": {"relay": "no"}}) for name, (_, far) in ends.items()]
        phone = Phone(boxes["bob"], air)
        bob = phone.node
        air.set_rate(RATE)

    for credits in FEW:
        with step(f"bob's phone grants {credits} credit{'s' * (credits > 1)}: a file and lines arrive, over one link") as remark:
            phone.switch_on(credits)
            wait_seen(box, dave, "bob")
            rate, took = file_with_lines(box, dave, bob, f"{credits}.bin")
            remark(f"{rate / 1000:.1f} kB/s, lines {', '.join(f'{line:.0f}' for line in took)} ms")
            phone.switch_off()
            wait_alone(box)

    with step(f"bob stands still for {PAUSE_SECONDS} s in the middle of a file: only he waits, and his link stays") as remark:
        phone.switch_on(USUAL)
        wait_seen(box, dave, "bob")
        made = links_made(box)
        transfer = Transfer(dave, bob, 2 * FILE_BYTES, "pause.bin")
        transfer.wait_arrived(FILE_BYTES // 2)
        phone.stand_still()
        stood, held = time.monotonic(), transfer.arrived()
        seconds = Transfer(dave, erin, 2 << 20).finish()
        time.sleep(max(0, stood + PAUSE_SECONDS - time.monotonic()))
        check("accepts no frames" in box.cli("log"), "the journal says so", lambda: box.cli("log"))
        phone.go_on()
        on = time.monotonic()
        wait_until("bytes arrive again", lambda: transfer.arrived() > held, 20, 0.02)
        remark(f"erin had 2 MiB in {seconds:.1f} s; bytes arrive {time.monotonic() - on:.1f} s after he goes on")
        transfer.finish()
        check(links_made(box) == made, "it is the same link", lambda: box.cli("log"))
        check("accepts frames again" in box.cli("log"), "the journal says that, too", lambda: box.cli("log"))

    with step("he stands still without end: the link ends, and the journal says why") as remark:
        transfer = Transfer(dave, bob, 2 * FILE_BYTES, "stall.bin")
        transfer.wait_arrived(FILE_BYTES // 2)
        phone.stand_still()
        stood = time.monotonic()
        wait_until("the link ends", lambda: not links_up(box.status(), "bluetooth-le"), STALL_SECONDS_MAX, 0.2)
        took = time.monotonic() - stood
        said = [line for line in box.cli("log", "--level", "warning").splitlines() if "accepted no frames for" in line]
        check(len(said) == 1, "in one line", lambda: box.cli("log"))
        remark(f"after {took:.1f} s: “{said[0].split(': ', 1)[1]}”")

    with step("he goes on: the file does") as remark:
        phone.go_on()
        on = time.monotonic()
        transfer.finish()
        remark(f"{time.monotonic() - on:.1f} s")
        phone.switch_off()
        wait_alone(box)

    with step(f"carol's kernel gives receive buffers of {SHORT_BUFFER} bytes: a file and lines arrive") as remark:
        usual = RECEIVE_BUFFER.read_text()
        RECEIVE_BUFFER.write_text(f"{SHORT_BUFFER}\n")
        carol = Node(boxes["carol"], adapter="hci1", extra={"node": {"relay": "no"}})
        wait_seen(box, dave, "carol")
        RECEIVE_BUFFER.write_text(usual)
        rate, took = file_with_lines(box, dave, carol, "short.bin")
        remark(f"{rate / 1000:.1f} kB/s, lines {', '.join(f'{line:.0f}' for line in took)} ms")


main(scenario)
