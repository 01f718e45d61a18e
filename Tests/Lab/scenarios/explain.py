"""What `causeway explain` finds about radios: a peer out of range, a killed wpa_supplicant, a missing adapter."""

import json

from lab import Box, Node, check, main, say, step, wait_until
from lab.stage import Stage


def explain(node, *names):
    return json.loads(node.cli("explain", *names, "--json", check=False))


def wait_cause(node, names, cause, timeout=60):
    """Wait until a node reports that two nodes cannot communicate for this cause. Prints the output for people."""
    wait_until(f"{node.name} says “{cause}”",
               lambda: not (said := explain(node, *names))["can_talk"] and cause in said["verdict"], timeout)
    text = node.cli("explain", *names, check=False)
    check(all(len(line) <= 80 for line in text.splitlines()), "it fits 80 columns", text)
    say(text)


def scenario():
    with step("bob on Bluetooth LE and carol on Wi-Fi Direct talk by way of the box"):
        stage = Stage(peers=("bob", "carol"))
        box = stage["box"]
        stage.wait_acquainted()
        said = explain(box, "bob")
        check(said["verdict"].startswith("1 link: bluetooth-le to bob; frames of up to 4096 bytes"), "a link to bob", said)
        wait_until("they can talk, as the box sees it", lambda: explain(box, "bob", "carol")["can_talk"], 20)
        said = explain(box, "bob", "carol")
        check([hop["bearer"] for hop in said["route"]] == ["bluetooth-le", "wifi-direct"], "two links", said)
        say(box.cli("explain", "bob", "carol"))

    with step("bob is out of range"):
        stage.air.set_range("hci0", "hci1", "far")
        wait_cause(box, ("bob",), "the link was up, then")

    with step("wpa_supplicant of the box is killed"):
        stage.supplicants["box"].process.kill()
        wait_cause(box, ("carol",), "wifi-direct does not work here: ")
        check("wpa_supplicant" in explain(box, "carol")["verdict"], "it is named")

    with step("a box without an adapter, that trusts bob's key"):
        lonely = Node(Box("lonely"), adapter="hci7")
        lonely.cli("identity", "trust", said["from"]["id"], "--name", "bob")
        wait_cause(lonely, ("bob",), "bluetooth-le does not work here: ")
        check(explain(lonely, "bob")["remedy"] == "causeway doctor", "the remedy")


main(scenario)
