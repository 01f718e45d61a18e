"""IP over Bluetooth classic for programs without Causeway. A phone with only Bluetooth joins the box's bridge by PAN
and gets an address from the DHCP server of the Ethernet. It pings a host there and measures with iperf3. The phone goes
out of range and comes back, and the daemon is killed. Then come the attacks: a malformed setup, a silent channel, and
an eighth peer."""

import json
import os
import re
import time

from lab import BluetoothAir, Box, Machine, Management, Node, cable, check, classic, main, panu, run, say, station, step, wait_until
from lab.node import bearer

BOX, PHONE = 0, 1
PLACES = 7
FAR_ADDRESS, SUBNET = "10.9.0.2", "10.9.0"
EDR_BITS_PER_SECOND = 2_178_100          # of 3-DH5 packets, one way (Core 5.4, Vol 2, Part B, 6.5.4.1)
SETUP_SECONDS = 5
LEASES = f"""start {SUBNET}.100
end {SUBNET}.120
interface eth0
lease_file /tmp/leases
option subnet 255.255.255.0
"""
BASE = bytes.fromhex("00001000800000805f9b34fb")
HOSTILE = {
    "nothing of BNEP": (os.urandom(40).replace(b"\x01", b"\x02"), b""),
    "a frame before the setup": (b"\0" + bytes(14), b""),
    "a cut request": (panu.REQUEST[:5], b""),
    "a request with a tail": (panu.REQUEST + b"\0", b""),
    "UUIDs of three bytes": (b"\x01\x01\x03" + bytes(6), b"\x01\x02\0\x03"),
    "another role wanted": (b"\x01\x01\x02\x11\x17\x11\x15", b"\x01\x02\0\x01"),
    "another role of its own": (b"\x01\x01\x02\x11\x16\x11\x16", b"\x01\x02\0\x02"),
    "a UUID of another base": (b"\x01\x01\x10" + b"\0\0\x11\x16" + BASE[:-1] + b"\0" + b"\0\0\x11\x15" + BASE, b"\x01\x02\0\x01"),
}


def scenario():
    with step("the box: a bridge with its Ethernet, on which far serves addresses") as remark:
        air = BluetoothAir(controllers=2 + PLACES, wait=False)
        machine, far, phone = Machine("box"), Box("far"), Box("phone")
        near, _ = cable(machine, far, subnet=SUBNET)
        make_bridge(machine, near)
        (far.path("/run") / "udhcpd.conf").write_text(LEASES)
        far.spawn("dhcp", "busybox", "udhcpd", "-f", "/run/udhcpd.conf")
        far.spawn("iperf", "iperf3", "-s")
        classic.load()
        air.wait_ready()
        kernel = Management()

    with step("without BNEP in the kernel the box says so once, lives on, and doctor has the command") as remark:
        run("rmmod", "bnep", check=False)
        # The kernel loads the module on demand as long as it finds modprobe, so the scenario moves modprobe away.
        os.rename("/sbin/modprobe", "/sbin/modprobe.away")
        box = Node(machine, adapter="hci0", interfaces=["br0"], extra={"bluetooth": {"classic": "yes", "nap": "br0"}})
        status = box.wait_status("is discoverable", lambda status: is_discoverable(status) and status)
        problem = bearer(status, "bluetooth-nap")["problem"]
        check("modprobe bnep" in problem, "the status says so", status["bearers"])
        check(box.cli("log").count("modprobe bnep") == 1, "once", box.cli("log"))
        check("the kernel has no BNEP" in box.cli("doctor", check=False), "so does doctor", box.cli("doctor", check=False))
        remark(problem)
        os.rename("/sbin/modprobe.away", "/sbin/modprobe")
        panu.load()

    with step("with it peers may join; the journal warns at the start") as remark:
        box.restart()
        status = box.wait_status("is discoverable", lambda status: is_discoverable(status) and status)
        check(bearer(status, "bluetooth-nap")["state"] == "up", "it is up", status["bearers"])
        (warning,) = [line for line in box.cli("log").splitlines() if "plain Ethernet" in line]
        remark(warning)
        for index in range(1, 2 + PLACES):
            classic.power_on(kernel, index)
        addresses = [kernel.address(index) for index in range(2 + PLACES)]

    with step("an inquiry and BlueZ's sdptool tell of the access point, and of the box as before") as remark:
        # The kernel announces a new service only after two seconds, so the first answers may lack it.
        wait_until("NAP is in the answer", lambda: b"\x16\x11" in classic.inquire(kernel, PHONE, addresses[BOX]), 15, 1)
        record = run("sdptool", "-i", f"hci{PHONE}", "browse", addresses[BOX], timeout=60)
        for part in ("Service Name: Causeway", '"RFCOMM" (0x0003)', '"Network Access Point" (0x1116)', '"BNEP" (0x000f)', "PSM: 15", "Version: 0x0100"):
            check(part in record, f"{part} is in it", record)
        remark(" ".join(record.split("Service Name: Network")[1].split()))

    with step("a phone that has Bluetooth alone joins, and gets an address by DHCP") as remark:
        began = time.monotonic()
        channel, interface = panu.join(addresses[PHONE], addresses[BOX], phone)
        joined = time.monotonic() - began
        address, *_ = station.lease(phone, interface)
        remark(f"joined after {joined:.1f} s, {address} after {time.monotonic() - began:.1f} s")

    with step("the status shows it: address, interface, since when") as remark:
        detail = bearer(box.status(), "bluetooth-nap")["detail"]
        check(f"1 of {PLACES} peers" in detail and f"{addresses[PHONE]} bnep0" in detail, "it is there", detail)
        remark(detail)
        for command in ("status", "radios"):
            radios = [line for line in box.cli(command).split("\n\n") if "\nbluetooth-nap" in line][0]
            say("\n".join(f"    {line}" for line in [f"$ causeway {command}", *radios.splitlines()]))

    with step("it pings far, on Ethernet, in full frames too") as remark:
        said = phone.run("ping", "-c", "20", "-i", "0.2", FAR_ADDRESS)
        remark(said.splitlines()[-1])
        check(phone.run("ping", "-c", "3", "-i", "0.2", "-M", "do", "-s", "1472", FAR_ADDRESS), "1500 bytes of IP")
    for rate, words in ((None, "the lab's air without a rate"), (EDR_BITS_PER_SECOND, f"an air of {EDR_BITS_PER_SECOND} bit/s, that of 3-DH5 packets")):
        with step(f"iperf3 both ways, in {words}") as remark:
            air.set_rate(rate)
            remark(f"to far {iperf(phone)}, from far {iperf(phone, '-R')}")
            remark(phone.run("ping", "-c", "10", "-i", "0.2", FAR_ADDRESS).splitlines()[-1])
    air.set_rate(None)

    with step("out of range: its interface goes from the bridge; back in range it joins again") as remark:
        left = time.monotonic()
        air.set_range("hci0", "hci1", "far")
        wait_until("the interface is gone", lambda: not ports(machine), 20)
        gone = time.monotonic() - left
        box.wait_status("has no peer", lambda status: f"0 of {PLACES}" in bearer(status, "bluetooth-nap")["detail"])
        channel.close()
        air.set_range("hci0", "hci1", "near")
        back = time.monotonic()
        channel, interface = panu.join(addresses[PHONE], addresses[BOX], phone)
        station.lease(phone, interface)
        check(phone.ping(FAR_ADDRESS), "it reaches far again")
        remark(f"gone after {gone:.1f} s, reaches far {time.monotonic() - back:.1f} s after it is back")

    with step("the same phone comes again without having left: its new channel replaces the old one") as remark:
        answer = panu.ask(panu.connect(addresses[PHONE], addresses[BOX]), b"\x01\x01\x02\x11\x17\x11\x15")
        check(answer == b"\x01\x02\0\x01", "it is answered", answer)
        check(panu.ends(channel, 10), "the old channel ends")
        channel.close()
        wait_until("the interface is gone", lambda: not ports(machine), 10)
        channel, interface = panu.join(addresses[PHONE], addresses[BOX], phone)

    with step("SIGKILL: the next daemon ends what the kernel has kept, and the phone joins again") as remark:
        box.kill()
        check(ports(machine) == ["bnep0"], "the kernel has kept it", ports(machine))
        box.start()
        wait_until("it is gone", lambda: not ports(machine), 15)
        check(panu.ends(channel, 10), "its channel ends")
        channel.close()
        box.wait_status("is discoverable", is_discoverable)
        channel, interface = panu.join(addresses[PHONE], addresses[BOX], phone)
        station.lease(phone, interface)
        check(phone.ping(FAR_ADDRESS), "it reaches far again")

    with step("nonsense for a setup is refused by its code, or ends the channel; the phone goes on") as remark:
        for name, (request, expected) in HOSTILE.items():
            with panu.connect(addresses[2], addresses[BOX]) as stranger:
                answer = panu.ask(stranger, request)
                check(answer == expected, name, answer)
                check(panu.ends(stranger, 5), f"{name}: the channel ends")
        check(phone.ping(FAR_ADDRESS), "the phone reaches far")
        check(ports(machine) == ["bnep0"], "nobody has joined", ports(machine))
        remark(f"{len(HOSTILE)} kinds")

    with step("requests with UUIDs of four and sixteen bytes, and one with an extension, are welcome"):
        for request in (
            b"\x01\x01\x04" + b"\0\0\x11\x16" + b"\0\0\x11\x15", b"\x01\x01\x10" + b"\0\0\x11\x16" + BASE + b"\0\0\x11\x15" + BASE,
            b"\x81" + panu.REQUEST[1:] + b"\0\x05\x03\0\x04\x08\x00",
        ):
            with panu.connect(addresses[2], addresses[BOX]) as user:
                answer = panu.ask(user, request)
                check(answer == panu.SUCCESS, "it is welcome", (request, answer))
            wait_until("it has left", lambda: ports(machine) == ["bnep0"], 10)

    with step(f"a channel that says nothing ends after {SETUP_SECONDS} s") as remark:
        began = time.monotonic()
        with panu.connect(addresses[2], addresses[BOX]) as silent:
            check(panu.ends(silent, SETUP_SECONDS + 5), "it ends")
        remark(f"{time.monotonic() - began:.1f} s")

    with step(f"{PLACES} peers have joined, an eighth is sent away, until one leaves") as remark:
        users = [panu.connect(addresses[index], addresses[BOX]) for index in range(2, 1 + PLACES)]
        for user in users:
            check(panu.ask(user) == panu.SUCCESS, "it is welcome")
        wait_until("all are ports", lambda: len(ports(machine)) == PLACES, 10)
        check(panu.is_sent_away(addresses[1 + PLACES], addresses[BOX]), "the eighth is sent away")
        users.pop().close()
        box.wait_status("has a place", lambda status: f"{PLACES - 1} of {PLACES}" in bearer(status, "bluetooth-nap")["detail"])
        with panu.connect(addresses[1 + PLACES], addresses[BOX]) as eighth:
            check(panu.ask(eighth) == panu.SUCCESS, "now it is welcome")
        for user in users:
            user.close()
        wait_until("one is left", lambda: ports(machine) == ["bnep0"], 20)

    with step("peers come and go: the box has its memory and its descriptors back") as remark:
        before = (box.resident_kib(), box.process.descriptors())
        for _ in range(30):
            with panu.connect(addresses[2], addresses[BOX]) as user:
                check(panu.ask(user) == panu.SUCCESS, "it is welcome")
            wait_until("it has left", lambda: ports(machine) == ["bnep0"], 10, 0.02)
        wait_until("the descriptors are back", lambda: box.process.descriptors() <= before[1], 10)
        grown = box.resident_kib() - before[0]
        check(grown < 1024, "within 1 MiB", grown)
        remark(f"{grown} KiB after 30")

    with step("without the bridge a peer is refused, and status and doctor name the command"):
        machine.run("ip", "link", "set", "br0", "name", "br9")
        for _ in range(20):
            with panu.connect(addresses[2], addresses[BOX]) as user:
                answer = panu.ask(user)
                check(answer == b"\x01\x02\0\x04", "it can read why", answer)
        box.wait_status("says why", lambda status: "does not name a bridge" in bearer(status, "bluetooth-nap")["problem"])
        check("does not name a bridge" in box.cli("doctor", check=False), "so does doctor", box.cli("doctor", check=False))
        machine.run("ip", "link", "set", "br9", "name", "br0")

    with step("a box that ends takes the interfaces with it"):
        box.stop()
        wait_until("the bridge has its Ethernet alone", lambda: not ports(machine), 10)
        check(panu.ends(channel, 10), "the phone is told")


def make_bridge(machine, ethernet):
    """Make the bridge as an administrator does, with a fixed address. Otherwise it would get the address of a peer's
    interface."""
    address = json.loads(machine.run("ip", "-j", "link", "show", ethernet))[0]["address"]
    machine.run("ip", "link", "add", "br0", "address", address, "type", "bridge", "forward_delay", "0")
    machine.run("ip", "address", "flush", "dev", ethernet)
    machine.run("ip", "link", "set", ethernet, "master", "br0", "up")
    machine.run("ip", "address", "add", f"{SUBNET}.1/24", "dev", "br0")
    machine.run("ip", "link", "set", "br0", "up")


def ports(machine):
    """The names of the bridge's interfaces of Bluetooth peers."""
    return re.findall(r"^\d+: (bnep\d+)", machine.run("ip", "-o", "link", "show", "master", "br0", check=False), re.MULTILINE)


def is_discoverable(status):
    return "discoverable" in bearer(status, "bluetooth-classic")["detail"]


def iperf(phone, *options):
    told = json.loads(phone.run("iperf3", "-J", "-c", FAR_ADDRESS, "-t", "4", *options, timeout=60))
    return f"{told['end']['sum_received']['bits_per_second'] / 1e6:.2f} Mbit/s"


main(scenario)
