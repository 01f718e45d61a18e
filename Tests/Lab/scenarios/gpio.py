"""A light and a button at GPIO lines. The light is read from the chip in five states: the box is alone, linked, has a
fault, was killed, and was stopped. The button is pressed for a short and for a long time."""

# seconds: 100

import time

from lab import Box, Node, Supplicant, cable, check, load_radios, main, step, wait_until
from lab.gpio import BUTTON, KEYS, LIGHT, Chip
from lab.node import bearer
from lab.stage import links_up
from lab.wifi import group_started


def scenario():
    with step("a box whose chip is not there runs, and says so"):
        load_radios(2)
        box, guest, dave = Box("box"), Box("guest"), Box("dave")
        supplicant, joiner = Supplicant(box, box.take_radio(0)), Supplicant(guest, guest.take_radio(1))
        near, far = cable(box, dave)
        box = Node(box, wifi="wlan0", interfaces=[near], extra={
            "board": {"status-gpio": "gpiochip7:17"}, "discovery": {"dns-sd": "embedded"}})
        fault = box.wait_status("names the chip", lambda status: [b for b in status["bearers"] if b["name"] == "gpio"])
        check("there is no GPIO chip gpiochip7" in fault[0]["problem"], "the status says so", fault)
        box.stop()

    with step("the chip of the configuration comes while the box runs: it is alone, a flash every 20 s") as remark:
        box.reconfigure({"board": KEYS, "wifi-direct": {"frequency": 2437, "wps": "button"},
                         "discovery": {"dns-sd": "embedded"}, "trust": {"policy": "first-use"}})
        box.start()
        time.sleep(2)
        chip = Chip()
        wait_until("it takes the light", lambda: chip.consumer(LIGHT) == "causeway", 15, 0.2)
        wait_until("and the button", lambda: chip.consumer(BUTTON) == "causeway", 15, 0.2)
        box.wait_status("has its group", lambda status: bearer(status, "wifi-direct")["state"] == "group-owner", 30)
        wait_until("no fault is left", lambda: not faults(box.status()))
        time.sleep(1)
        wait_until("the light is dark", lambda: not chip.is_lit())
        flashes = chip.lit_seconds(42)
        check(len(flashes) == 2, "two flashes in 42 s", chip.changes)
        check(all(lit < 1 for lit in flashes), "short ones", flashes)
        remark(f"{', '.join(f'{lit * 1000:.0f} ms' for lit in flashes)}")

    with step("dave is linked: it is lit, and stays so"):
        dave = Node(dave, interfaces=[far], extra={"discovery": {"dns-sd": "embedded"}})
        box.wait_status("has a link", links_up)
        wait_until("it is lit", chip.is_lit)
        check(chip.pattern(12) == (0, True), "it stays lit", chip.changes)

    with step("a fault: it blinks fast") as remark:
        supplicant.process.kill()
        box.wait_status("has a fault", faults)
        blinks, _ = chip.pattern()
        check(blinks >= 5, "it blinks fast", chip.changes)
        remark(f"{blinks} times in 3 s")
        supplicant.start()
        box.wait_status("has its group", lambda status: bearer(status, "wifi-direct")["state"] == "group-owner", 30)
        wait_until("it is lit again", lambda: chip.pattern(1) == (0, True))

    with step("a short press: the light blinks slowly, and a device joins by WPS; before, it could not") as remark:
        group = bearer(box.status(), "wifi-direct")["detail"].split()[0]
        owner, member = supplicant.control(group), joiner.control()
        member.command("P2P_SET disallow_freq 5000-6000")
        member.command("P2P_FIND 20 freq=2437")
        address = member.wait_event(r"P2P-DEVICE-FOUND .*p2p_dev_addr=(\S+) ", 20)[1]
        check("open for WPS" not in bearer(box.status(), "wifi-direct")["detail"], "the door is shut")
        chip.press(0.3)
        released = time.monotonic()
        owner.wait_event("WPS-PBC-ACTIVE", 10)
        remark(f"wpa_supplicant opens {time.monotonic() - released:.2f} s after the release")
        wait_until("the status says so", lambda: "open for WPS" in bearer(box.status(), "wifi-direct")["detail"])
        blinks, _ = chip.pattern(4)
        check(2 <= blinks <= 5, "it blinks slowly", chip.changes)
        member.command(f"P2P_CONNECT {address} pbc join")
        _, role, _ = group_started(member)
        check(role == "client", "it has joined", role)
        wait_until("it is lit again", lambda: chip.pattern(1) == (0, True))
        check("open for WPS" not in bearer(box.status(), "wifi-direct")["detail"], "the door is shut behind it")

    with step("a touch and a press of 3 s do nothing; one of 5 s asks for the board to be switched off"):
        power_off = box.runtime / "poweroff"
        for seconds in (0.01, 3):
            chip.press(seconds)
            time.sleep(0.5)
        check(not power_off.exists() and "button: held" not in box.cli("log"), "nothing happened")
        chip.press(5)
        wait_until("it asks", power_off.exists, 3)
        wait_until("nobody heard it: it gives up", lambda: "no unit switches the board off" in box.cli("log"), 20, 0.5)
        check(not power_off.exists(), "what it asked is withdrawn")

    with step("the chip goes and comes: the status says so, and the light is lit again"):
        chip.plug(False)
        box.wait_status("has a fault", lambda status: {"gpio", "button"} & {b["name"] for b in faults(status)}, 30)
        chip.plug(True)
        box.wait_status("has none", lambda status: not faults(status), 30)
        wait_until("it is lit", chip.is_lit, 15)
        check(chip.consumer(BUTTON) == "causeway", "the button is its own again")

    with step("SIGKILL: it is dark, and both lines are free"):
        box.kill()
        check(chip.pattern() == (0, False), "it is dark", chip.changes)
        check(chip.consumer(LIGHT) is None and chip.consumer(BUTTON) is None, "nobody has the lines")

    with step("the box stops: it is dark"):
        box.start()
        box.wait_status("has a link", links_up, 40)
        wait_until("it is lit", chip.is_lit, 15)
        box.stop()
        check(chip.pattern() == (0, False), "it is dark", chip.changes)


def faults(status):
    return [b for b in status["bearers"] if b["state"] == "fault" or b["problem"]]


main(scenario)
