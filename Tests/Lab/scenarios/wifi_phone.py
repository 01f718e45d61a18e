"""A phone as most are: no Wi-Fi Direct, no Causeway, no address. It joins the box's group as an ordinary WPA2 station with what `causeway
join` shows, gets an address by DHCP (BusyBox's client), and reads the status page. Then an app on it, a program written from
docs/protocol.md alone, becomes a peer of dave on Ethernet."""

# seconds: 60

import json

from lab import Box, Supplicant, check, main, step
from lab.stage import Stage
from lab.station import lease, network
from lab.told import Story

NAME = "Ada’s phone"
READ_PAGE = "import urllib.request;print(urllib.request.urlopen('http://192.168.49.1/',timeout=20).read().decode())"


def scenario():
    with step("box with a Wi-Fi Direct group, and dave on Ethernet"):
        stage = Stage(peers=("dave",))
        box, dave = stage["box"], stage["dave"]
        stage.wait_acquainted()
        box.wait_status("has a group", lambda status: any(each["state"] == "group-owner" for each in status["bearers"]))

    with step("a phone that has only a network and a passphrase joins") as remark:
        invitation = json.loads(box.cli("join", "--json"))
        check(invitation["id"] == box.status()["box"]["id"], "the fingerprint is the box's id", invitation)
        phone = Box("phone")
        station = Supplicant(phone, phone.take_radio(1), configuration="p2p_disabled=1\n")
        network(station.control(station.interface), invitation["ssid"], invitation["passphrase"])
        remark(invitation["uri"])

    with step("it gets an address, and neither a router nor a name server") as remark:
        address, router, dns, server, seconds = lease(phone)
        check(address.startswith("192.168.49.2"), "an address of the group", address)
        check((router, dns, server, seconds) == ("", "", "192.168.49.1", "3600"), "and no way elsewhere", (router, dns, server, seconds))
        check(phone.ping("192.168.49.1"), "the box answers")
        remark(address)

    with step("and the same one again"):
        check(lease(phone)[0] == address, "whoever comes back keeps its address")

    with step("the status page tells of the box and of dave"):
        page = phone.run("python3", "-c", READ_PAGE)
        for part in ("<h1>box</h1>", f"<code>{invitation['id']}</code>", "<bdi>dave</bdi>"):
            check(part in page, f"{part} is in the page", page)
        check(invitation["passphrase"] not in page, "the passphrase is not")

    with step("an app on it becomes a peer of dave") as remark:
        app = Story(phone.spawn("app", "python3", "/lab/lab/client.py", "192.168.49.1:41820", NAME, 10))
        established = app.wait("established")
        check(established["peer"] == invitation["id"], "the key is the one of the code", established)
        dave.wait_status("sees the phone", lambda status: any(
            peer["name"] == NAME and peer["hops"] == 2 for peer in status["peers"]))
        (link,) = [link for link in box.status()["links"] if link["name"] == NAME]
        check(link["bearer"] == "wifi-direct" and link["remote"].startswith(address + ":"), "over the group", link)
        remark(established["tls"])


main(scenario)
