"""Figures of the main scenario: the time from start until every bearer is on the air, goodput over Wi-Fi Direct and
Bluetooth LE, and memory.

Rates and times of virtual radios in an emulated machine are only for comparisons between runs. Real radios have other
figures."""

from lab import main, say, step, wait_until
from lab.stage import Stage
from lab.story import elapsed
from lab.transfer import send_file

FILE_BYTES = 1 << 20


def bearers_up(node):
    """The bearers that are on the air according to the status."""
    up = set()
    for bearer in node.status()["bearers"]:
        if bearer["name"] == "bluetooth-le" and "advertising" in bearer["detail"]:
            up.add("bluetooth-le")
        if bearer["name"] == "wifi-direct" and bearer["state"] == "group-owner":
            up.add("wifi-direct")
        if bearer["name"] == "ethernet" and bearer["state"] == "up":
            up.add("ethernet")
        if bearer["name"] == "dns-sd" and bearer["state"] in ("built-in", "avahi-daemon"):
            up.add("dns-sd")
    return up


def scenario():
    with step("four nodes are up"):
        stage = Stage()
    box = stage["box"]
    with step("everybody sees everybody"):
        stage.wait_acquainted(90)

    box.stop()
    with step("the box, from start to every bearer on the air"):
        began = elapsed()
        box.start(wait=False)
        wait_until("the box answers", box.is_answering, 20, 0.05)
        missing = {"ethernet", "dns-sd", "bluetooth-le", "wifi-direct"}

        def look():
            for name in sorted(bearers_up(box) & missing):
                missing.discard(name)
                say(f"           {name:13} after {elapsed() - began:5.2f} s")
            return not missing

        wait_until("every bearer is on the air", look, 60, 0.05)
    with step("everybody sees everybody again"):
        stage.wait_acquainted(90)
    for receiver, bearer in (("carol", "Wi-Fi Direct"), ("bob", "Bluetooth LE")):
        with step(f"dave sends {receiver} 1 MiB, over Ethernet and {bearer}") as remark:
            seconds = send_file(stage["dave"], stage[receiver], FILE_BYTES, name=f"to-{receiver}.bin")
            remark(f"{FILE_BYTES / seconds / 1000:.0f} kB/s")
    with step("memory of the box") as remark:
        remark(f"{box.resident_kib() / 1024:.1f} MiB resident with three peers")


main(scenario)
