"""A radio without Wi-Fi Direct: the box opens an ordinary access point. A phone joins the access point by name and
passphrase, gets an address, and an app on the phone becomes a peer. When wpa_supplicant is killed, the access point
comes back with the same name."""

# seconds: 90

import json

from lab import Box, Node, Supplicant, check, load_radios, main, step
from lab.station import lease, network
from lab.told import Story

NAME = "Ada’s phone"
NO_P2P = "p2p_disabled=1\n"


def scenario():
    with step("a box whose radio knows no Wi-Fi Direct") as remark:
        load_radios(2)
        computer, phone = Box("box"), Box("phone")
        supplicant = Supplicant(computer, computer.take_radio(0), configuration=NO_P2P)
        box = Node(computer, wifi="wlan0", interfaces=["ap-*"])
        box.wait_status("has an access point", lambda status: any(each["state"] == "group-owner" for each in status["bearers"]))
        invitation = json.loads(box.cli("join", "--json"))
        remark(invitation["ssid"])

    with step("a phone joins it and gets an address") as remark:
        station = Supplicant(phone, phone.take_radio(1), configuration=NO_P2P).control("wlan1")
        network(station, invitation["ssid"], invitation["passphrase"])
        remark(lease(phone)[0])
        check(phone.ping("192.168.49.1"), "the box answers")

    with step("an app on it becomes a peer of the box"):
        app = Story(phone.spawn("app", "python3", "/lab/lab/client.py", "192.168.49.1:41820", NAME, 5))
        check(app.wait("established")["peer"] == invitation["id"], "the key is the one of the code")
        box.wait_status("sees the phone", lambda status: any(peer["name"] == NAME for peer in status["peers"]))

    with step("wpa_supplicant is killed and started again: the same name, and the phone is back"):
        supplicant.process.kill()
        station.wait_event("CTRL-EVENT-DISCONNECTED", 30)
        supplicant.start()
        station.wait_event("CTRL-EVENT-CONNECTED", 90)
        again = json.loads(box.cli("join", "--json"))
        check(again["ssid"] == invitation["ssid"], "the same name", again)


main(scenario)
