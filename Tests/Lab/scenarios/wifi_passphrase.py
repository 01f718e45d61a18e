"""A device without Wi-Fi Direct, such as every iPhone. carol joins the box's group as an ordinary station, with the
network name and passphrase that the box's status shows. She becomes a peer of the box and of dave on Ethernet."""

import re

from lab import Box, Supplicant, check, main, step
from lab.node import bearer
from lab.stage import Stage


def scenario():
    with step("box with a Wi-Fi Direct group, and dave on Ethernet"):
        stage = Stage(peers=("dave",))
        box, dave = stage["box"], stage["dave"]
        stage.wait_acquainted()

    with step("the box's status tells how to join") as remark:

        def invitation(status):
            told = r"^\S+ (?P<ssid>.+), \d+ MHz, \d+ stations, passphrase (?P<passphrase>\S+)$"
            return re.search(told, bearer(status, "wifi-direct")["detail"])

        keys = box.wait_status("has a group", invitation).groupdict()
        remark(f"{keys['ssid']}, passphrase of {len(keys['passphrase'])} characters")

    with step("carol joins as a station and sees both") as remark:
        computer = stage.boxes["carol"] = Box("carol")
        # With p2p_disabled wpa_supplicant acts as if the radio did not support Wi-Fi Direct.
        stage.supplicants["carol"] = Supplicant(
            computer, computer.take_radio(1), configuration="p2p_disabled=1\n"
        )
        stage.add("carol", "text", wifi="wlan1", interfaces=["wlan1"],
                  extra={"wifi-direct": {"mode": "client", "frequency": 2437, **keys}})
        stage.wait_acquainted()
        (link,) = stage["carol"].status()["links"]
        check(link["name"] == "box", "carol's one link is with the box", link)
        check(link["bearer"] == "wifi-direct", "over the group", link)
        hops = {peer["name"]: peer["hops"] for peer in stage["carol"].status()["peers"]}
        check(hops == {"box": 1, "dave": 2}, "carol sees dave through the box", hops)
        remark(f"over {link['remote']}")


main(scenario)
