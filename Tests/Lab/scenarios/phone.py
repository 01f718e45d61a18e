"""A phone is a full client with only the Bluetooth and TLS of its system. The phone is lab/client.py: it is written
only from docs/protocol.md, without code of the firmware or Linux's Bluetooth. It finds the box, links with it, and
becomes a peer of dave on Ethernet. It joins a session of an application there, and exchanges sealed messages with it,
using OpenSSL's DTLS.

The scenario prints the frames of the worked example in docs/protocol.md. The argument is the kind of advertising that
the box's controller supports: `legacy` or `extended`, which is the default."""

# variants: extended legacy
# seconds: 100

import sys

import causeway
from lab import BluetoothAir, Box, Node, Process, cable, check, main, say, step, wait_until
from lab.told import Story, invite

NAME = "Ada’s phone"
SECONDS = 40
CANARY = "the canary sings at noon"
LE_COST = "8000"
FAREWELL = "the battery is empty"


def scenario():
    with step("box with a Bluetooth controller, and dave on Ethernet"):
        air = BluetoothAir(controllers=1, sockets=["phone"], legacy="legacy" in sys.argv)
        computer, neighbour = Box("box"), Box("dave")
        near, far = cable(computer, neighbour)
        box = Node(computer, adapter="hci0", interfaces=[near], extra={"node": {"discovery-info": "role=relay"}})
        dave = Node(neighbour, interfaces=[far], extra={"node": {"relay": "no"}})
        ids = {node.name: node.status()["box"]["id"] for node in (box, dave)}

    with step("the phone finds the box, reads the PSM and opens the channel") as remark:
        phone = Story(Process("phone", "python3", "/lab/lab/client.py", air.socket_path("phone"), NAME, SECONDS, "dave", CANARY))
        found = phone.wait("found", 90)
        check(ids["box"].startswith(found["hint"]), "the scan response holds the start of the id", found)
        remark(f"PSM {phone.wait('psm')['value']}")

    with step("mutual TLS, and hellos both ways") as remark:
        established = phone.wait("established")
        check(established["peer"] == ids["box"], "the certificate proves the box's id", established)
        hello = phone.wait("hello")
        check(hello["name"] == "box" and hello["id"] == ids["box"], "the box's hello", hello)
        remark(established["tls"])

    with step("the box has a link with the phone"):
        phone_id = phone.lines("self")[0]["id"]

        def is_linked(status):
            return [link for link in status["links"] if link["peer"] == phone_id and link["state"] == "up"]

        (link,) = box.wait_status("link with the phone", is_linked, 10)
        check(link["name"] == NAME and link["bearer"] == "bluetooth-le", "under its name", link)

    with step("the phone verifies who is there, by their signatures"):
        for node in (box, dave):
            profile = phone.wait("profile", of=ids[node.name])
            check(profile["name"] == node.name, "the name in the profile", profile)
            phone.wait("topology", of=ids[node.name])
        check(phone.lines("profile", of=ids["box"])[0]["info"] == "role=relay", "the box's discovery info")

    with step("dave sees the phone through the box, and the box's topology lists it"):
        dave.wait_status("sees the phone", lambda status: any(
            peer["name"] == NAME and peer["id"] == phone_id and peer["hops"] == 2 and peer["info"] == ["speaks=text"]
            for peer in status["peers"]))

        def listed():
            neighbours = phone.lines("topology", of=ids["box"])[-1]["neighbours"].split(",")
            return any(neighbour.startswith(f"{phone_id}/{LE_COST}/") for neighbour in neighbours)

        wait_until("the box tells of its link with the phone", listed, 20)

    with step("an application of dave finds the phone's and invites it: it accepts, and they meet") as remark:
        session, sighting = invite(dave, phone)
        check(sighting.address.node.hex() == phone_id and sighting.info == {"from": "paper"}, "the phone's service", sighting)
        remark(phone.wait("sealed", 40, peer=ids["dave"])["dtls"])

    with step("they talk"):
        results = session.send(b"Hello phone, dave here.", timeout=20)
        check(results == {sighting.address: causeway.Result.DELIVERED}, "dave's line is delivered", results)
        check(phone.wait("text", 40)["text"] == "Hello phone, dave here.", "and shown on the phone")
        while not isinstance(event := session.next(40), causeway.Message):
            pass
        check((event.sender, event.data) == (sighting.address, CANARY.encode()), "the phone's line at dave's application", event)

    with step("pings are answered both ways"):
        phone.wait("ping")
        phone.wait("pong", 40)

    with step("the phone leaves the session with a farewell"):
        # On a slow machine the two may have lost each other and reconnected before, so earlier events are skipped.
        while not (isinstance(event := session.next(60), causeway.Member) and event.state == causeway.State.LEFT):
            pass
        check(event.text == FAREWELL, "dave's application hears it", event)

    with step("the phone says goodbye: the box lets it go at once") as remark:
        phone.wait("sent", 40, what="goodbye")
        box.wait_status("has no link with the phone", lambda status: not is_linked(status), 5)
        dave.wait_status("sees the phone no more", lambda status: not any(
            peer["id"] == phone_id for peer in status["peers"]), 15)
        refusals = box.status()["box"]["refusals"]
        check(not refusals, "the box found no fault with any frame", refusals)
        complaints = box.cli("log", "--level", "warning")
        remark(f"journal: {complaints or 'nothing to complain of'}")

    say("\nFrames for docs/protocol.md:")
    for what in ("hello", "topology", "profile", "services", "ping", "pong", "handshake", "sealed", "goodbye"):
        for pairs in phone.lines("sent", what=what):
            say(f"sent {what}: {pairs['bytes']}")
        for pairs in phone.lines({"sealed": "sealed-frame"}.get(what, what))[:1]:
            say(f"received {what}: {pairs['bytes']}")


main(scenario)
