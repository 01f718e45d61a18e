"""IP over Bluetooth classic into the Wi-Fi group, with the daemon in the sandbox of its unit. A phone with only
Bluetooth gets its address from the box, pings an ordinary Wi-Fi station of the group and measures with iperf3. The
group is removed, the bridge is removed, and the daemon is killed. Then a hostile peer requests every address, sends
false DHCP offers, and claims the address of the box."""

# init: systemd
# seconds: 200

import json
import re
import shutil
import struct
import time

from lab import BluetoothAir, Box, Machine, Management, Node, Supplicant, check, classic, main, panu, run, say, station, step, wait_until
from lab.box import load_radios
from lab.node import bearer
from lab.service import CONFIGURATION_FILE, UNIT_FILE, Service

BRIDGE, OWN = "p2p-causeway", "192.168.49.1"
EDR_BITS_PER_SECOND = 2_178_100          # the rate of 3-DH5 packets, as in bluetooth_nap
BACK_SECONDS_MAX = 10
ADDRESSES = 54                           # the number of addresses that the box assigns: 192.168.49.201 to .254
FALSE_LEASES = """start 192.168.49.60
end 192.168.49.69
interface {interface}
lease_file /tmp/leases
option subnet 255.255.255.0
"""
READ_PAGE = f"import urllib.request;print(urllib.request.urlopen('http://{OWN}/',timeout=20).read().decode())"
# Sends two ARP announcements of the box's address (RFC 5227, 3), like a host that takes over the address.
CLAIM = """
import socket, sys, time
claim = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
claim.bind((sys.argv[1], 0))
own, address = claim.getsockname()[4], socket.inet_aton(sys.argv[2])
for _ in range(2):
    claim.send(b"\\xff" * 6 + own + bytes.fromhex("0806000108000604" + "0001") + own + address + bytes(6) + address)
    time.sleep(1.2)
"""
service = Service()


def scenario():
    with step("the unit with nap = group: the group is a port of the box's own bridge, which has its address") as remark:
        air = BluetoothAir(controllers=2, wait=False)
        load_radios(2)
        machine, anna, phone = Machine("box"), Box("anna"), Box("phone")
        run("bash", "-c", "systemd-sysusers - < /lab/config/causeway.sysusers")
        supplicant = Supplicant(machine, "wlan0")
        UNIT_FILE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("/lab/config/causeway.service", UNIT_FILE)
        run("systemctl", "daemon-reload", timeout=60)
        CONFIGURATION_FILE.parent.mkdir()
        air.wait_ready()
        classic.load()
        panu.load()
        service.configure({
            "node": {"display-name": "box"},
            "bluetooth": {"adapter": "hci0", "classic": "yes", "nap": "group"},
            "wifi-direct": {"interface": "wlan0", "frequency": 2437},
            "ip": {"interfaces": "p2p-*"},
        })
        service.control("restart")
        service.wait_status("has a group, and may be found", is_serving, 60)
        group = wait_until("the group is a port", lambda: group_ports(machine), 10)[0]
        say(machine.run("ip", "-br", "address", "show", "dev", BRIDGE).strip())
        check(OWN not in machine.run("ip", "address", "show", "dev", group), "the port has no address")
        check("inet6" not in machine.run("ip", "address", "show", "dev", group), "of IPv6 neither")
        service.wait_status("has links at the bridge", lambda status: any(
            each["name"] == "wifi-direct" and each["detail"].startswith(BRIDGE + " ") for each in status["bearers"]), 20)
        doctor = service.cli("doctor", check=False)
        check("nap" not in doctor, "doctor misses nothing", doctor)
        remark(group)

    with step("anna, an ordinary Wi-Fi station, joins, has an address by DHCP, and reads the status page") as remark:
        invitation = json.loads(service.cli("join", "--json"))
        wifi = Supplicant(anna, anna.take_radio(1), configuration="p2p_disabled=1\n")
        control = wifi.control(wifi.interface)
        station.network(control, invitation["ssid"], invitation["passphrase"])
        address, *_ = station.lease(anna)
        check("<h1>box</h1>" in anna.run("python3", "-c", READ_PAGE), "the page is there")
        anna.spawn("iperf", "iperf3", "-s")
        remark(address)

    with step("a phone that has Bluetooth alone joins, and gets its address from the box") as remark:
        kernel = Management()
        classic.power_on(kernel, 1)
        own, box = kernel.address(1), kernel.address(0)
        began = time.monotonic()
        channel, interface = panu.join(own, box, phone)
        joined = time.monotonic() - began
        leased, _, _, server, _ = station.lease(phone, interface)
        check((leased[:11], server) == ("192.168.49.", OWN), "it is the box's", (leased, server))
        remark(f"joined after {joined:.1f} s, {leased} after {time.monotonic() - began:.1f} s")
        say(f"    {bearer(service.status(), 'bluetooth-nap')['detail']}")

    with step("it pings anna, in full frames too; iperf3 both ways") as remark:
        said = phone.run("ping", "-c", "20", "-i", "0.2", address)
        remark(said.splitlines()[-1])
        check(phone.run("ping", "-c", "3", "-i", "0.2", "-M", "do", "-s", "1472", address), "1500 bytes of IP")
        for rate, words in ((None, "no rate"), (EDR_BITS_PER_SECOND, f"{EDR_BITS_PER_SECOND} bit/s")):
            air.set_rate(rate)
            say(f"          {words}: to anna {iperf(phone, address)}, from anna {iperf(phone, address, '-R')}")
        air.set_rate(None)

    with step("a Causeway node on anna finds the box by itself: multicast passes the bridge") as remark:
        began = time.monotonic()
        node = Node(anna, interfaces=["wlan1"], extra={"node": {"relay": "no"}})
        status = service.wait_status("is linked with anna", linked, 40)
        remark(f"{linked(status)['bearer']} at {linked(status)['remote']} after {time.monotonic() - began:.1f} s")
        check(linked(status)["bearer"] == "wifi-direct", "it is a link of the group", status["links"])

    with step("the group is removed: the phone keeps the box meanwhile, and reaches anna again") as remark:
        supplicant.control("global", events=False).command(f"P2P_GROUP_REMOVE {group}")
        began = time.monotonic()
        check(phone.ping(OWN, 1), "the box answers without a group")
        group = wait_until("the group is a port again", lambda: [name for name in group_ports(machine) if name != group], 30)[0]
        there = time.monotonic() - began
        wait_until("the phone reaches anna", lambda: phone.ping(address, 1), 60, 0.2)
        took = time.monotonic() - began
        remark(f"{group} after {there:.1f} s, anna after {took:.1f} s")
        check(took <= BACK_SECONDS_MAX, "within seconds", took)
        check(station.lease(anna)[0] == address, "anna keeps her address")

    with step("somebody removes the bridge: there is another one with the group; the phone joins again") as remark:
        machine.run("ip", "link", "del", BRIDGE)
        began = time.monotonic()
        wait_until("the bridge is there, and the group in it", lambda: group_ports(machine), 20)
        there = time.monotonic() - began
        go(air, "far", machine)
        channel.close()
        go(air, "near", machine)
        began = time.monotonic()
        channel, interface = panu.join(own, box, phone)
        station.lease(phone, interface)
        wait_until("the phone reaches anna", lambda: phone.ping(address, 1), 60, 0.2)
        remark(f"bridge after {there:.1f} s, anna {time.monotonic() - began:.1f} s after the phone is back")

    with step("the daemon is killed, and systemd starts it: both are in the bridge again") as remark:
        machine.run("systemctl", "kill", "--signal", "KILL", "causeway.service")
        began = time.monotonic()
        check(panu.ends(channel, 30), "the phone's channel ends")
        channel.close()
        service.wait_status("has a group, and may be found", is_serving, 60)
        channel, interface = panu.join(own, box, phone)
        station.lease(phone, interface)
        wait_until("the phone reaches anna", lambda: phone.ping(address, 1), 60, 0.2)
        remark(f"{time.monotonic() - began:.1f} s")

    with step(f"the phone asks for {ADDRESSES + 6} addresses under false names: those who have one keep it"):
        for number in range(ADDRESSES + 6):
            discover(phone, interface, number)
        check(station.lease(anna)[0].startswith("192.168.49."), "anna has one")
        check(station.lease(phone, interface)[0].startswith("192.168.49."), "the phone too")

    with step("what nobody bounds: the phone gives addresses too, and claims the box's own") as remark:
        (phone.path("/run") / "udhcpd.conf").write_text(FALSE_LEASES.format(interface=interface))
        liar = phone.spawn("dhcp", "busybox", "udhcpd", "-f", "/run/udhcpd.conf")
        servers = [station.lease(anna)[3] for _ in range(3)]
        liar.terminate()
        anna.ping(OWN, 1)
        before = neighbour(anna)
        phone.run("python3", "-c", CLAIM, interface, OWN)
        after = wait_until("anna believes it", lambda: neighbour(anna) not in (before, None) and neighbour(anna), 10)
        go(air, "far", machine)
        began = time.monotonic()
        wait_until("anna reaches the box again", lambda: anna.ping(OWN, 1) and neighbour(anna) == before, 90, 0.5)
        remark(f"servers {servers}; {OWN} was at {before}, then {after}; right {time.monotonic() - began:.1f} s after it has left")
        service.wait_status("is linked with anna", linked, 60)

    with step("a box that ends takes bridge and group with it"):
        node.stop()
        service.control("stop")
        wait_until("the bridge is gone", lambda: BRIDGE not in machine.run("ip", "-o", "link"), 10)


def is_serving(status):
    return (bearer(status, "wifi-direct")["state"] == "group-owner" or any(
        each["state"] == "group-owner" for each in status["bearers"])) and "discoverable" in bearer(
            status, "bluetooth-classic")["detail"] and status


def group_ports(machine):
    """The names of the bridge's interfaces of the Wi-Fi group."""
    return re.findall(r"^\d+: (p2p-wlan0-\d+)", machine.run("ip", "-o", "link", "show", "master", BRIDGE, check=False), re.MULTILINE)


def go(air, place, machine):
    """Move the phone out of range and wait until the box has noticed, or move it back into range."""
    air.set_range("hci0", "hci1", place)
    if place == "far":
        wait_until("its interface is gone", lambda: "bnep" not in machine.run("ip", "-o", "link"), 20)


def linked(status):
    return next((link for link in status["links"] if link["name"] == "anna" and link["state"] == "up"), None)


def neighbour(box):
    """The Ethernet address that `box` has in its neighbour cache for the relay box, or None."""
    found = re.search(r"lladdr (\S+)", box.run("ip", "neighbour", "show", OWN))
    return found and found[1]


def discover(box, interface, number):
    """Request a DHCP offer (DHCPDISCOVER) with an Ethernet address that no other request uses."""
    packet = struct.pack(">BBBBIHH16x", 1, 1, 6, 0, number, 0, 0x8000) + bytes([2, 0, 0, 0, 1, number]) + bytes(10 + 192)
    packet += b"\x63\x82\x53\x63" + bytes([53, 1, 1, 255])
    script = (
        "import socket,sys;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.setsockopt(1,25,sys.argv[1].encode());"
        "s.setsockopt(1,6,1);s.bind(('',68));s.sendto(bytes.fromhex(sys.argv[2]),('255.255.255.255',67))")
    box.run("python3", "-c", script, interface, packet.hex())


def iperf(phone, address, *options):
    told = json.loads(phone.run("iperf3", "-J", "-c", address, "-t", "4", *options, timeout=60))
    return f"{told['end']['sum_received']['bits_per_second'] / 1e6:.2f} Mbit/s"


main(scenario)
