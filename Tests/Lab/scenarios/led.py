"""The LED of the box. It flashes now and then while the box is alone, is lit while a peer is linked, and blinks fast
when a peer's key has changed. It is dark when the daemon does not run."""

from lab import Box, Node, cable, check, main, step, wait_until
from lab.led import LED
from lab.stage import links_up


def scenario():
    with step("a box with an LED is alone: a flash every 2 s") as remark:
        led = LED("status")
        box, dave = Box("box"), Box("dave")
        near, far = cable(box, dave)
        box = Node(box, interfaces=[near], extra={
            "node": {"discovery-info": "role=relay"}, "trust": {"policy": "first-use"}, "board": {"status-led": "status"},
            "discovery": {"dns-sd": "embedded"}})
        flashes, _ = led.pattern(6)
        check(2 <= flashes <= 4, "it flashes now and then", led.changes)
        remark(f"{flashes} flashes in 6 s")

    with step("dave is linked: it is lit"):
        dave = Node(dave, interfaces=[far], extra={"discovery": {"dns-sd": "embedded"}})
        box.wait_status("has a link", links_up)
        wait_until("it is lit", led.is_lit)
        check(led.pattern() == (0, True), "and stays so", led.changes)

    with step("dave comes with another key: it blinks fast, the status has an alarm") as remark:
        box.wait_status("dave's key is pinned", lambda status: "dave" in box.cli("identity", "show"), 30)
        dave.stop()
        dave.forget()
        dave.start()
        box.wait_status("has an alarm", lambda status: status["box"]["alarm"], 30)
        blinks, _ = led.pattern()
        check(blinks >= 10, "it blinks fast", led.changes)
        remark(f"{blinks} times in 3 s")

    with step("the operator says that it is right: it is lit again"):
        box.cli("identity", "untrust", "dave")
        box.wait_status("has a link", links_up, 60)
        check(led.pattern() == (0, True), "it is lit", led.changes)

    with step("the box stops: it is dark"):
        box.stop()
        check(led.pattern() == (0, False), "it is dark", led.changes)


main(scenario)
