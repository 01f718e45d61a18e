"""The machine's mDNS responder starts late, in each possible order: after D-Bus, together with D-Bus, and after a D-Bus
that died and left its socket. The box uses the responder within seconds, and its built-in responder until then."""
# seconds: 150

import time

from lab import Box, MulticastDNS, Node, cable, check, main, step, wait_until
from lab.node import bearer
from lab.stage import links_up

SECONDS_MAX = 10
# This time is longer than the time for which the box waits for the machine's responder.
ABSENT_SECONDS = 45


def scenario():
    with step("a box and its neighbour, both with the built-in responder"):
        computer, neighbour = Box("box"), Box("dave")
        near, far = cable(computer, neighbour)
        box = Node(computer, interfaces=[near])
        Node(neighbour, interfaces=[far])
        box.wait_status("sees dave", lambda status: [peer["name"] for peer in status["peers"]] == ["dave"], 30)
    slow = []

    def wait_used(remark):
        """Measure how soon the box uses avahi-daemon. The time begins when avahi-daemon has its host name, because it
        serves no client before."""
        wait_until("avahi-daemon is ready", machine.is_ready, 60)
        started = time.monotonic()
        box.wait_status("uses avahi-daemon", lambda status: bearer(status, "dns-sd")["state"] == "avahi-daemon", 90)
        took = time.monotonic() - started
        remark(f"used after {took:.1f} s")
        if took > SECONDS_MAX:
            slow.append(took)

    def wait_own():
        box.wait_status("uses its own", lambda status: bearer(status, "dns-sd")["state"] == "built-in", 90)

    with step("D-Bus and avahi-daemon come after a while") as remark:
        time.sleep(ABSENT_SECONDS)
        machine = MulticastDNS(computer)
        wait_used(remark)
    with step("avahi-daemon alone dies, and comes after a while") as remark:
        machine.daemon.kill()
        wait_own()
        time.sleep(15)
        machine.start()
        wait_used(remark)
    with step("D-Bus dies and leaves its socket behind; it comes after a while, and avahi-daemon 3 s later") as remark:
        machine.bus.kill()
        machine.daemon.kill()
        wait_own()
        time.sleep(ABSENT_SECONDS)
        machine.start_bus()
        time.sleep(3)
        machine.start()
        wait_used(remark)
    with step("dave is linked all the same"):
        box.wait_status("is linked with dave", lambda status: [link["name"] for link in links_up(status)] == ["dave"])
        check(not slow, f"avahi-daemon was used within {SECONDS_MAX} s each time", slow)


main(scenario)
