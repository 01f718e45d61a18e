"""Test of the lab: a Wi-Fi Direct group by push button, IP traffic within it, and a member whose wpa_supplicant is
killed."""

from lab import Box, Supplicant, check, load_radios, main, step
from lab.wifi import join_group


def scenario():
    with step("two boxes with a radio each"):
        load_radios(2)
        a, b = Box("alpha"), Box("beta")
        owner = Supplicant(a, a.take_radio(0))
        member = Supplicant(b, b.take_radio(1))
    with step("beta joins alpha's group") as remark:
        owner_interface, member_interface = join_group(owner, member)
        remark(f"{owner_interface}, {member_interface}")
    with step("IPv4 within the group"):
        check(b.ping("192.168.49.1"), "beta reaches the owner")
    with step("IPv6 within the group"):
        address = a.link_local(owner_interface)
        b.link_local(member_interface)
        check(b.ping(f"{address}%{member_interface}"), "beta reaches the owner's link-local address")
    with step("the owner notices that a member is gone"):
        events = owner.control()
        member.process.kill()
        events.wait_event("AP-STA-DISCONNECTED", 15)


main(scenario)
