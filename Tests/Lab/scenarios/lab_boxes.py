"""Test of the lab: boxes on a switch, and nsbt. nsbt lets an unmodified program in a box open Bluetooth sockets. It
passes on signals and the exit status, and the program ends when nsbt is killed."""

import os
import signal

from lab import BluetoothAir, Box, Lan, Management, Process, check, main, step, wait_until

OPEN_SOCKET = "import socket, sys; socket.socket(31, socket.SOCK_RAW, 1); print('has', 'Bluetooth')"
OBEDIENT = """
import signal, socket, sys, time
kept = [socket.socket(31, 5, 0) for _ in range(10)]
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
signal.signal(signal.SIGHUP, lambda *_: print("reloaded", flush=True))
print("ready", flush=True)
while True: time.sleep(0.1)
"""


def start(box, name):
    process = box.spawn(name, "python3", "-c", OBEDIENT, bluetooth=True)
    wait_until("the program runs", lambda: "ready" in process.output())
    return process


def alive(pid):
    return os.path.exists(f"/proc/{pid}")


def scenario():
    with step("three boxes on a switch"):
        a, b, c = (Box(name) for name in ("alpha", "beta", "gamma"))
        lan = Lan(a, b, c)
        check(b.ping(a.address) and c.ping(b.address), "they reach each other")
        lan.plug(c, connected=False)
        check(not c.ping(a.address, count=1), "gamma is cut off")
        wait_until("gamma sees it", lambda: "NO-CARRIER" in c.run("ip", "link", "show", "eth0"))
        lan.plug(c, connected=True)
        wait_until("gamma is back", lambda: c.ping(a.address, count=1))
    with step("a box has no Bluetooth of its own"):
        check("has Bluetooth" not in a.run("python3", "-c", OPEN_SOCKET, check=False), "the socket is refused")
    with step("nsbt lends it"):
        check("has Bluetooth" in a.run("python3", "-c", OPEN_SOCKET, bluetooth=True), "the socket is there")
        check("eth0" in a.run("ip", "-br", "link", bluetooth=True), "the program is in the box's network")
    with step("the management socket answers in a box"):
        BluetoothAir(controllers=1)
        with Management() as management:
            check(management.indexes() == [0], "hci0 is there")
        script = ("import sys; sys.path.insert(0, '/lab')\nfrom lab import Management\n"
                  "m = Management(); m.power_on(0); print(m.address(0))")
        address = a.run("python3", "-c", script, bluetooth=True)
        check(address.endswith("00:AA:01:00:00:01"), "its address", address)
    with step("signals and the exit status pass through"):
        process = start(a, "obedient")
        process.child.send_signal(signal.SIGHUP)
        wait_until("SIGHUP arrives", lambda: "reloaded" in process.output())
        check(process.resident_kib() > 5000, "the resident memory is the program's", process.resident_kib())
        check(process.terminate() == 3, "the exit status is the program's")
    with step("kill -9 of the program"):
        process = start(a, "killed-program")
        check(process.kill() == 128 + signal.SIGKILL, "nsbt reports the signal")
    with step("kill -9 of nsbt takes the program along"):
        process = start(b, "killed-nsbt")
        pid = process.pid
        check(pid != process.child.pid, "the program has its own process")
        os.kill(process.child.pid, signal.SIGKILL)
        wait_until("the program is gone", lambda: not alive(pid), 2)
    with step("a program that cannot be started"):
        failed = Process("missing", "nsbt", f"/proc/{a.pid}/ns/net", "/no/such/program")
        check(failed.wait() == 126, "status 126", failed.output())


main(scenario)
