"""Test of the lab: Avahi on two boxes. One box finds the service of the other box over Ethernet."""

from lab import Box, MulticastDNS, cable, check, main, step

SERVICE = "_causeway._tcp"


def scenario():
    with step("two boxes and a cable"):
        a, b = Box("alpha"), Box("beta")
        cable(a, b)
        check(b.ping(a.address), "beta reaches alpha")
    with step("Avahi on both"):
        publisher, browser = MulticastDNS(a), MulticastDNS(b)
    with step("beta resolves alpha's service") as remark:
        publisher.publish("alpha's box", SERVICE, 4711, "id=42")
        found = browser.browse(SERVICE)
        matches = [entry for entry in found if entry[3] == "alpha.local" and entry[4] == a.address and entry[5] == 4711]
        check(matches, "the service has alpha's name, address and port", found)
        remark(f"{matches[0][4]}:{matches[0][5]}")
    with step("nothing is heard through an unplugged cable"):
        a.set_link("eth0", up=False)
        check(not b.ping(a.address, count=1), "alpha is unreachable")


main(scenario)
