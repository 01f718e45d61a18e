"""Faults of a box's Bluetooth, one after the other. The status names each fault in one line. bob is linked again within
seconds of the end of a fault."""
# seconds: 280

import os
import signal
import sys
import time

from lab import BluetoothAir, check, main, say, step
from lab.hotplug import BLUETOOTH, block, switches
from lab.node import bearer
from lab.stage import Stage

BACK_SECONDS_MAX = 10
# After a silent controller this takes longer: pauses between power cycles are up to a minute, and kernel and controller
# are out of sync.
BACK_SECONDS_MAX_SILENT = 60
stage = None


def bluetooth(status):
    return bearer(status, "bluetooth-le")


def is_linked(status):
    return any(link["name"] == "bob" and link["state"] == "up" for link in status["links"])


def wait_problem(text, timeout=15):
    """Wait until the status of the box contains `text` as its Bluetooth problem. Prints the problem."""
    started = time.monotonic()
    problem = stage["box"].wait_status(
        f"says “{text}”", lambda status: text in bluetooth(status)["problem"] and bluetooth(status)["problem"], timeout)
    check("\n" not in problem, "one line says what", problem)
    say(f"          “{problem}” after {time.monotonic() - started:.1f} s")


def wait_back(remark, limit=BACK_SECONDS_MAX):
    box = stage["box"]
    started = time.monotonic()
    box.wait_status("is up", lambda status: not bluetooth(status)["problem"], 90)
    up = time.monotonic() - started
    box.wait_status("bob is linked", is_linked, 90)
    took = time.monotonic() - started
    remark(f"up after {up:.1f} s, bob after {took:.1f} s")
    check(took <= limit, f"bob is back within {limit} s", took)


def restarted():
    for rest in (0, 35):
        # 35 s are longer than the 30 s after which the ATT channel is closed, so both states are tested.
        time.sleep(rest)
        with step(f"the daemon is restarted {rest} s after bob was linked") as remark:
            stage["box"].restart()
            wait_back(remark)


def blocked(seconds=30):
    with step(f"the adapter is blocked (rfkill) for {seconds} s") as remark:
        number = switches(BLUETOOTH)[0]
        block(number, True)
        try:
            wait_problem("rfkill unblock bluetooth")
            doctor = stage["box"].cli("doctor", check=False)
            check("rfkill unblock bluetooth" in doctor, "doctor names it too", doctor)
            check("rfkill unblock bluetooth" in stage["box"].cli("log"), "and the log")
            time.sleep(seconds)
        finally:
            block(number, False)
        wait_back(remark)


def pulled():
    with step("the adapters are pulled out, and plugged in again after 15 s") as remark:
        stage.air.process.kill()
        wait_problem("no Bluetooth controller hci0")
        time.sleep(15)
        stage.air = BluetoothAir(controllers=2)
        wait_back(remark)


def silent():
    with step("the adapters do not answer for 30 s") as remark:
        os.kill(stage.air.process.pid, signal.SIGSTOP)
        try:
            wait_problem("does not answer", 60)
            time.sleep(30)
        finally:
            os.kill(stage.air.process.pid, signal.SIGCONT)
        wait_back(remark, BACK_SECONDS_MAX_SILENT)


FAULTS = {fault.__name__: fault for fault in (restarted, blocked, pulled, silent)}


def scenario():
    global stage
    with step("bob is linked over Bluetooth"):
        stage = Stage(peers=("bob",))
        stage.wait_acquainted()
    failed = []
    for name in sys.argv[1:] or FAULTS:
        try:
            FAULTS[name]()
        except Exception as failure:
            say(f"          {failure}")
            failed.append(name)
            time.sleep(20)
    with step("what the box said"):
        for line in stage["box"].process.lines():
            say("          " + line[:160])
    check(not failed, "every fault was healed", failed)


main(scenario)
