"""An ordinary phone, without Wi-Fi Direct, without a daemon and without an address. It joins the box's group as a WPA2
station with the output of `causeway join`, and gets an address by DHCP (BusyBox's client). An app on the phone, a
program written only from docs/protocol.md, connects to an application of dave on Ethernet. The phone gets the same
address again later, and reads the status page."""

# seconds: 90

import json
import time

import causeway
from lab import Box, Supplicant, check, main, step
from lab.stage import Stage
from lab.station import lease, network
from lab.told import Story, invite

NAME = "Ada’s phone"
SECONDS = 60
LINE = "the canary sings at noon"
READ_PAGE = "import urllib.request;print(urllib.request.urlopen('http://192.168.49.1/',timeout=20).read().decode())"


def scenario():
    with step("box with a Wi-Fi Direct group, and dave on Ethernet"):
        stage = Stage(peers=("dave",))
        box, dave = stage["box"], stage["dave"]
        stage.wait_acquainted()
        box.wait_status("has a group", lambda status: any(each["state"] == "group-owner" for each in status["bearers"]))

    with step("a phone that has only a network and a passphrase joins") as remark:
        invitation = json.loads(box.cli("join", "--json"))
        began = time.monotonic()
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

    with step("an app on it becomes a peer of dave") as remark:
        app = Story(phone.spawn("app", "python3", "/lab/lab/client.py", "192.168.49.1:41820", NAME, SECONDS, "dave", "yes?"))
        established = app.wait("established")
        check(established["peer"] == invitation["id"], "the key is the one of the code", established)
        dave.wait_status("sees the phone", lambda status: any(
            peer["name"] == NAME and peer["hops"] == 2 for peer in status["peers"]))
        (link,) = [link for link in box.status()["links"] if link["name"] == NAME]
        check(link["bearer"] == "wifi-direct" and link["remote"].startswith(address + ":"), "over the group", link)
        remark(established["tls"])

    with step("an application of dave invites it, and they talk") as remark:
        session, sighting = invite(dave, app)
        results = session.send(LINE.encode(), timeout=20)
        check(results == {sighting.address: causeway.Result.DELIVERED}, "dave's line is delivered", results)
        check(app.wait("text", 40)["text"] == LINE, "and shown on the phone")
        remark(f"{time.monotonic() - began:.1f} s from the code to the first line")

    with step("it asks for its address again, and keeps it"):
        check(lease(phone)[0] == address, "whoever comes back keeps its address")

    with step("the status page tells of the box and of dave"):
        page = phone.run("python3", "-c", READ_PAGE)
        for part in ("<h1>box</h1>", f"<code>{invitation['id']}</code>", "<bdi>dave</bdi>"):
            check(part in page, f"{part} is in the page", page)
        check(invitation["passphrase"] not in page, "the passphrase is not")


main(scenario)
