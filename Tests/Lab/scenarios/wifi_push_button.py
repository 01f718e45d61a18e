"""Three devices join the box's Wi-Fi Direct group by push button at the same moment. WPS refuses devices that push at
the same time, so the box admits one device after the other. A refused device repeats its attempt."""

import time

from lab import Box, Node, Supplicant, check, load_radios, main, step
from lab.wifi import find_device

DEVICES = 3
PAUSE = 3       # seconds between the end of an attempt and the next one, far below the two minutes of WPS


def scenario():
    with step("box with a Wi-Fi Direct group, and three devices that have found the group"):
        load_radios(1 + DEVICES)
        box = Box("box")
        supplicants = [Supplicant(box, box.take_radio(0))]
        node = Node(box, wifi="wlan0", interfaces=["p2p-*"], extra={"wifi-direct": {"frequency": 2437}})
        node.wait_status("has a group", lambda status: "DIRECT-" in str(status["bearers"]))
        waiting = {}
        for number in range(1, 1 + DEVICES):
            place = Box(f"device{number}")
            supplicants.append(Supplicant(place, place.take_radio(number)))
            waiting[place.name] = supplicants[-1].control()
        owners = {find_device(control, "Causeway-[0-9a-f]{16}") for control in waiting.values()}
        check(len(owners) == 1, "they found one owner", owners)
        (owner,) = owners
        for control in waiting.values():
            control.command("P2P_STOP_FIND")

    with step("the three devices join at the same moment") as remark:
        began, refused, joined = time.monotonic(), 0, []
        while waiting:
            for control in waiting.values():
                control.command(f"P2P_CONNECT {owner} pbc join freq=2437")
            for name, control in list(waiting.items()):
                if control.wait_event(r"P2P-GROUP-(STARTED|FORMATION-FAILURE)", 30)[1] == "STARTED":
                    joined.append(f"{name} after {time.monotonic() - began:.1f} s")
                    del waiting[name]
                else:
                    refused += 1
            check(time.monotonic() - began < 60, "all three joined within a minute", (joined, list(waiting)))
            time.sleep(PAUSE)
        check(refused > 0, "at least one device was refused, so they really joined at the same moment")
        remark(f"{', '.join(joined)}; {refused} attempts were refused")


main(scenario)
