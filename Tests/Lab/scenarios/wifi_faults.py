"""Faults of a box's Wi-Fi, one after the other. The status names each fault in one line. carol is in the group again
within seconds of the end of a fault. The group keeps its name and passphrase through all faults."""
# seconds: 240

import re
import sys
import time

from lab import check, main, say, step
from lab.hotplug import WIFI, block, plug_radio, pull_radio, switches
from lab.node import bearer
from lab.stage import Stage

BACK_SECONDS_MAX = 10
stage = None


def wifi(status):
    return bearer(status, "wifi-direct")


def is_linked(status):
    return any(link["name"] == "box" and link["state"] == "up" for link in status["links"])


def group(status):
    """The name and passphrase of the box's group, or None if there is no group."""
    match = re.fullmatch(r"\S+ (.+), \d+ MHz, \d+ stations, passphrase (\S+)", wifi(status)["detail"])
    return match and match.groups()


def wait_problem(text, timeout=15):
    """Wait until the status of the box contains `text` as its Wi-Fi problem. Prints the problem."""
    started = time.monotonic()
    problem = stage["box"].wait_status(
        f"says “{text}”", lambda status: text in wifi(status)["problem"] and wifi(status)["problem"], timeout)
    check("\n" not in problem, "one line says what", problem)
    say(f"          “{problem}” after {time.monotonic() - started:.1f} s")


def wait_back(remark, before, limit=BACK_SECONDS_MAX):
    """Wait until carol is in the same group as before the fault."""
    box, carol = stage["box"], stage["carol"]
    started = time.monotonic()
    status = box.wait_status(
        "has a group", lambda status: wifi(status)["state"] == "group-owner" and not wifi(status)["problem"] and status, 60)
    group_time = time.monotonic() - started
    carol.wait_status("is linked", is_linked, 90)
    took = time.monotonic() - started
    remark(f"group after {group_time:.1f} s, carol after {took:.1f} s")
    check(group(status) == before, "the group has its name and its passphrase", (group(status), before))
    check(took <= limit, f"carol is back within {limit} s", took)


def wait_lost():
    """Wait until carol has noticed that the link with the box is gone."""
    stage["carol"].wait_status("has lost the box", lambda status: not is_linked(status), 30)


def group_removed(before):
    with step("somebody removes the group: it is there again") as remark:
        stage.supplicants["box"].control("global", events=False).command(
            f"P2P_GROUP_REMOVE {wifi(stage['box'].status())['detail'].split()[0]}")
        wait_back(remark, before)


def supplicant_killed(before):
    with step("wpa_supplicant is killed, and started again after 5 s") as remark:
        stage.supplicants["box"].process.kill()
        wait_problem("wpa_supplicant")
        wait_lost()
        time.sleep(5)
        stage.supplicants["box"].start()
        wait_back(remark, before)


def blocked(before, seconds=30):
    with step(f"the radio is blocked (rfkill) for {seconds} s") as remark:
        number = switches(WIFI)[0]
        block(number, True)
        try:
            wait_problem("rfkill unblock wlan")
            doctor = stage["box"].cli("doctor", check=False)
            check("rfkill unblock wlan" in doctor, "doctor names it too", doctor)
            check("rfkill unblock wlan" in stage["box"].cli("log"), "and the log")
            time.sleep(seconds)
        finally:
            block(number, False)
        wait_back(remark, before)


def pulled(before):
    with step("the radio is pulled out; after 15 s another one is plugged in") as remark:
        pull_radio(stage.boxes["box"], "phy0")
        wait_problem("no interface wlan0")
        wait_lost()
        time.sleep(15)
        plug_radio(stage.boxes["box"], "new", "wlan0")
        wait_back(remark, before)


def restarted(before):
    with step("the daemon is restarted") as remark:
        stage["box"].restart()
        wait_back(remark, before)


FAULTS = {fault.__name__: fault for fault in (group_removed, supplicant_killed, blocked, restarted, pulled)}


def scenario():
    global stage
    with step("carol is in the box's group") as remark:
        stage = Stage(peers=("carol",))
        stage.wait_acquainted()
        before = group(stage["box"].wait_status("has a group", lambda status: group(status) and status))
        remark(before[0])
    failed = []
    for name in sys.argv[1:] or FAULTS:
        try:
            FAULTS[name](before)
        except Exception as failure:
            say(f"          {failure}")
            failed.append(name)
            time.sleep(20)
    with step("few lines were said"):
        for line in stage["box"].process.lines():
            say("          " + line[:160])
    check(not failed, "every fault was healed", failed)


main(scenario)
