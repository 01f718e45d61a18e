"""wpa_supplicant of the box dies and is started again. The box reports this in one line of its status and makes its
group again. carol rejoins the group."""

import time

from lab import check, main, step
from lab.node import bearer
from lab.stage import Stage

DARK_SECONDS = 3


def wifi(status):
    return bearer(status, "wifi-direct")


def is_linked(status):
    return any(link["name"] == "box" and link["state"] == "up" for link in status["links"])


def scenario():
    with step("carol is in the box's group"):
        stage = Stage(peers=("carol",))
        box, carol = stage["box"], stage["carol"]
        stage.wait_acquainted()

    with step("wpa_supplicant of the box is killed: status says so") as remark:
        killed = time.monotonic()
        stage.supplicants["box"].process.kill()
        state = box.wait_status("its Wi-Fi has a problem", lambda status: wifi(status)["problem"] and wifi(status), 15)
        check("\n" not in state["problem"] and "wpa_supplicant" in state["problem"], "one line says what", state)
        check(not state["detail"], "of the lost group nothing is shown", state)
        remark(f"after {time.monotonic() - killed:.1f} s: “{state['problem']}”")
        carol.wait_status("has lost the box", lambda status: not is_linked(status), 30)
        time.sleep(DARK_SECONDS)
        check(box.process.is_running(), "the box runs on")

    with step("wpa_supplicant runs again: the box has a group, and carol is in it") as remark:
        started = time.monotonic()
        stage.supplicants["box"].start()
        box.wait_status(
            "has a group", lambda status: wifi(status)["state"] == "group-owner" and not wifi(status)["problem"], 30)
        remark(f"group after {time.monotonic() - started:.1f} s")
        carol.wait_status("is linked", is_linked, 90)
        stage.wait_acquainted()
        remark(f"carol after {time.monotonic() - started:.1f} s")
        links = box.status()["links"]
        check(len(links) == 1, "the box has one link to carol", links)

    with step("what the box said in the meantime"):
        lines = [line for line in box.process.lines() if "wifi-direct" in line]
        check(len(lines) <= 5, "no line for every attempt", lines)


main(scenario)
