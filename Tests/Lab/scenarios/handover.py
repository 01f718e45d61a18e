"""bob has Bluetooth and Wi-Fi. A file begins over Bluetooth. When Wi-Fi appears, the file continues over Wi-Fi and is
faster. When Wi-Fi disappears, the file completes over Bluetooth. All of this is one transfer, and no byte is lost.

  dave ── Ethernet ── box ══ Bluetooth LE and, at times, Wi-Fi Direct ══ bob
"""

import time

from lab import Box, Supplicant, check, main, step, wait_until
from lab.box import set_radio_range
from lab.stage import Stage, links_up, look_for_doubles
from lab.transfer import Transfer

KIB = 1 << 10
FILE_BYTES = 1536 * KIB
OVER_WIFI_BYTES = 900 * KIB                          # the bytes that have arrived when Wi-Fi is switched off
PACE_BYTES = 128 * KIB                               # goodput is measured while this many bytes arrive
BLUETOOTH_RATE = 500_000                             # bit/s
CABLE_RATE = "2mbit"                                 # of dave's cable: the file takes longer than Wi-Fi lasts
TOGETHER, APART = 1, 2                               # the groups of two radios that are in range or out of range


def received(node, bearer):
    """The bytes that a node has received over its links of a bearer."""
    return sum(link["bytes_received"] for link in links_up(node.status(), bearer))


def pace(transfer):
    """Measure the bytes per second while `PACE_BYTES` arrive."""
    began, before = time.monotonic(), transfer.arrived()
    transfer.wait_arrived(before + PACE_BYTES)
    return (transfer.arrived() - before) / (time.monotonic() - began)


def scenario():
    with step("box, dave, and bob with two radios, of which Bluetooth alone reaches the box"):
        stage = Stage(peers=("dave",))
        computer = stage.boxes["bob"] = Box("bob")
        stage.supplicants["bob"] = Supplicant(computer, computer.take_radio(1))
        set_radio_range(1, APART)
        stage.add("bob", "files", adapter="hci1", wifi="wlan1", interfaces=["p2p-*"],
                  extra={"wifi-direct": {"mode": "client", "frequency": 2437}})
        stage.air.set_rate(BLUETOOTH_RATE)
        stage.boxes["dave"].impair("eth0", "rate", CABLE_RATE)
        stage.wait_acquainted()
        box, bob, dave = (stage[name] for name in ("box", "bob", "dave"))
        bearers = [link["bearer"] for link in links_up(bob.status())]
        check(bearers == ["bluetooth-le"], "bob's one link is Bluetooth", bearers)

    with step("dave sends bob a file, over Bluetooth") as remark:
        transfer = Transfer(dave, bob, FILE_BYTES)
        transfer.wait_arrived(1)
        remark(f"{pace(transfer) / 1000:.0f} kB/s")

    with step("Wi-Fi appears: a second link, and the transfer moves there") as remark:
        began = time.monotonic()
        set_radio_range(1, TOGETHER)
        bob.wait_status("has a link over Wi-Fi Direct", lambda status: links_up(status, "wifi-direct"), 40)
        remark(f"link after {time.monotonic() - began:.1f} s")
        wait_until("the file comes over it", lambda: received(bob, "wifi-direct") > PACE_BYTES // 4, 20, 0.1)
        before = received(bob, "wifi-direct")
        remark(f"{pace(transfer) / 1000:.0f} kB/s")
        check(received(bob, "wifi-direct") - before > PACE_BYTES // 2, "it goes on over Wi-Fi")
        status = look_for_doubles([bob])["bob"]
        check({peer["bearer"] for peer in status["peers"]} == {"wifi-direct"}, "the way to all is Wi-Fi", status["peers"])

    with step("Wi-Fi goes: the transfer is back on Bluetooth") as remark:
        transfer.wait_arrived(OVER_WIFI_BYTES)
        began = time.monotonic()
        set_radio_range(1, APART)
        bob.wait_status("its way is Bluetooth", lambda status: (
            not links_up(status, "wifi-direct") and {peer["bearer"] for peer in status["peers"]} == {"bluetooth-le"}), 40)
        held = transfer.arrived()
        remark(f"link lost after {time.monotonic() - began:.1f} s, at {held >> 10} KiB")
        check(held < FILE_BYTES, "a part of the file is still to come")
        wait_until("bytes arrive", lambda: transfer.arrived() > held, 40, 0.05)
        remark(f"bytes again after {time.monotonic() - began:.1f} s")

    with step("the file arrives whole, in one transfer") as remark:
        wait_until("the transfer ends", lambda: look_for_doubles((box, bob, dave)) and transfer.is_over(), 90, 0.5)
        remark(f"{transfer.finish():.1f} s in all")


main(scenario)
