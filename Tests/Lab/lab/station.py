"""A phone as an ordinary Wi-Fi station. It joins a network by name and passphrase, and requests an address with
BusyBox's DHCP client."""

import os
import re

# udhcpc runs this script for each of its events, and does not set the address itself.
SCRIPT = """#!/bin/bash
[ "$1" = bound ] && ip address replace "$ip/$mask" dev "$interface"
echo "$1 $ip/$mask router=$router dns=$dns server=$serverid lease=$lease"
"""


def network(control, ssid, passphrase):
    """Join a network by its name and passphrase, as in a phone's settings. `control` is the control socket of the
    station's interface."""
    number = control.command("ADD_NETWORK")
    for key, value in (("ssid", f'"{ssid}"'), ("psk", f'"{passphrase}"'), ("key_mgmt", "WPA-PSK"), ("scan_freq", 2437)):
        control.command(f"SET_NETWORK {number} {key} {value}")
    control.command(f"SELECT_NETWORK {number}")
    control.wait_event("CTRL-EVENT-CONNECTED", 40)


def lease(phone, interface="wlan1"):
    """Request an address and set it. Returns the address, the router, the name servers, the DHCP server, and the
    seconds of the lease."""
    with open("/tmp/lease.sh", "w") as script:
        script.write(SCRIPT)
    os.chmod("/tmp/lease.sh", 0o755)
    told = phone.run("busybox", "udhcpc", "-i", interface, "-f", "-n", "-q", "-t", "8", "-s", "/tmp/lease.sh")
    return re.search(r"^bound (\S+)/\S+ router=(\S*) dns=(\S*) server=(\S+) lease=(\d+)$", told, re.MULTILINE).groups()
